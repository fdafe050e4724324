"""Every metric that there is, in the order in which they are told."""

from typing import Final

from fastquorum.observe.families import Metric
from fastquorum.observe.kafka import KAFKA_METRICS
from fastquorum.observe.kafka_controller import KAFKA_CONTROLLER_METRICS
from fastquorum.observe.own import OWN_METRICS

METRICS: Final[tuple[Metric, ...]] = (*KAFKA_METRICS, *KAFKA_CONTROLLER_METRICS, *OWN_METRICS)
