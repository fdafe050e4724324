"""`fastquorum wire ...`: Kafka's frames."""
