"""A Kafka-KRaft-compatible metadata quorum, embeddable in Python. See README.md."""

from fastquorum._build_info import BuildInfo, build_info

__all__ = ["BuildInfo", "build_info"]

__version__ = "0.1.0"
