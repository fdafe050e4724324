"""Every metric that there is, in the order in which they are told; and the Grafana dashboard that shows them."""

from importlib import resources
from typing import Final

from fastquorum.observe.families import Metric
from fastquorum.observe.kafka import KAFKA_METRICS
from fastquorum.observe.kafka_controller import KAFKA_CONTROLLER_METRICS
from fastquorum.observe.own import OWN_METRICS

METRICS: Final[tuple[Metric, ...]] = (*KAFKA_METRICS, *KAFKA_CONTROLLER_METRICS, *OWN_METRICS)
DASHBOARD: Final = "grafana.json"


def dashboard() -> str:
    """Return the dashboard as JSON that Grafana imports."""
    return resources.files("fastquorum.observe").joinpath(DASHBOARD).read_text(encoding="utf-8")
