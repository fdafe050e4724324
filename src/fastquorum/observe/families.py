"""What a metric is: a name, a meaning, and how its values are read from what is known of a node at one moment."""

from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from fastquorum.node.metrics import NodeMetrics
from fastquorum.observe.process import ProcessFigures
from fastquorum.observe.stages import StageCounts
from fastquorum.observe.window import Recent

Kind = Literal["gauge", "counter", "histogram", "summary"]
Labels = tuple[tuple[str, str], ...]
US_PER_S: Final = 1_000_000


class NodeView(NamedTuple):
    """One node at one moment."""

    node: NodeMetrics
    stages: tuple[StageCounts, ...]
    recent: Recent
    process: ProcessFigures
    is_ready: bool
    """The verdict of /readyz."""


class MetricPoint(NamedTuple):
    """One value of a metric. For a histogram it is a stage's counts; exporters give the bounds in seconds."""

    value: float | StageCounts
    labels: Labels = ()
    suffix: str = ""
    """Suffix in a summary: `_count` or `_sum`; its quantiles have none."""


class Metric(NamedTuple):
    """A metric, declared once for every exporter. Without points it is absent."""

    name: str
    kind: Kind
    help: str
    points: Callable[[NodeView], Iterable[MetricPoint]]


def gauge(name: str, help: str, read: Callable[[NodeView], float | None]) -> Metric:
    """One value that goes up and down; not told while it is None."""
    return Metric(name, "gauge", help, _single(read))


def counter(name: str, help: str, read: Callable[[NodeView], float | None]) -> Metric:
    """One value that only grows; not told while it is None."""
    return Metric(name, "counter", help, _single(read))


def _single(read: Callable[[NodeView], float | None]) -> Callable[[NodeView], Iterable[MetricPoint]]:
    def points(view: NodeView) -> Iterable[MetricPoint]:
        value = read(view)
        return () if value is None else (MetricPoint(value),)

    return points
