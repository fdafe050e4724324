"""Kafka's requests and responses, declared as data, one module for each family."""
