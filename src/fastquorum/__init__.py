"""A Kafka-KRaft-compatible metadata quorum, embeddable in Python. See README.md."""

__version__ = "0.1.0"
