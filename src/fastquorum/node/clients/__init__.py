"""Kafka's client APIs on a node's listener."""
