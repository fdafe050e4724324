"""Brokers register, beat, are fenced and go; what a controller of KIP-380's days tells them."""
