"""Registration, heartbeats, fencing and shutdown of brokers; the control requests of KIP-380."""
