"""The Prometheus text format, version 0.0.4: written for scrapers, and read back by `fastquorum top`.

Source: Prometheus, "Exposition formats".
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from fastquorum.observe.catalogue import METRICS
from fastquorum.observe.families import US_PER_S, Metric, MetricPoint, NodeView
from fastquorum.observe.own import UP, UP_HELP
from fastquorum.observe.stages import StageCounts

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_UP: Final = Metric(UP, "gauge", UP_HELP, lambda _: ())
ALL: Final = (_UP, *METRICS)
"""Everything that a page may hold."""


def page(view: NodeView | None) -> str:
    """Return everything that is known; None: the replica does not answer."""
    registry = CollectorRegistry()
    registry.register(_View(view))
    return generate_latest(registry).decode()


class _View:
    """Families of samples of one moment, as prometheus-client collects them."""

    def __init__(self, view: NodeView | None) -> None:
        self._view = view

    def collect(self) -> Iterator[Family]:
        yield _family(_UP, [MetricPoint(float(self._view is not None))])
        if self._view is not None:
            families = (_family(metric, metric.points(self._view)) for metric in METRICS)
            yield from (each for each in families if each.samples)


def _family(metric: Metric, points: Iterable[MetricPoint]) -> Family:
    family = Family(metric.name.removesuffix("_total"), metric.help, metric.kind)  # a counter gets its `_total` back
    for point in points:
        labels = dict(point.labels)
        if isinstance(point.value, StageCounts):
            _add_histogram(family, labels, point.value)
        else:
            family.add_sample(metric.name + point.suffix, labels, point.value)
    return family


def _add_histogram(family: Family, labels: dict[str, str], stage: StageCounts) -> None:
    for bound_us, upto in (*stage.buckets, (math.inf, stage.count)):
        bound = "+Inf" if math.isinf(bound_us) else f"{bound_us / US_PER_S:g}"
        family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, upto)
    family.add_sample(f"{family.name}_sum", labels, stage.sum_us / US_PER_S)
    family.add_sample(f"{family.name}_count", labels, stage.count)


# --- read back --------------------------------------------------------------------------------------------------------


class Samples:
    """A page, by name."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._by_name: dict[str, list[Sample]] = {}
        for each in samples:
            self._by_name.setdefault(each.name, []).append(each)

    def all(self, name: str) -> list[Sample]:
        return self._by_name.get(name, [])

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of the first sample with these labels; None if there is none."""
        for each in self.all(name):
            if all(each.labels.get(key) == text for key, text in labels.items()):
                return each.value
        return None

    def stage(self, family: str, name: str) -> StageCounts:
        """Return a stage's histogram as it was served."""
        buckets = sorted(
            (round(float(each.labels["le"]) * US_PER_S, 3), int(each.value))
            for each in self.all(f"{family}_bucket")
            if each.labels.get("stage") == name and each.labels["le"] != "+Inf"
        )
        count = self.value(f"{family}_count", stage=name) or 0
        total = self.value(f"{family}_sum", stage=name) or 0.0
        return StageCounts(name, int(count), total * US_PER_S, tuple(buckets))


def parse(text: str) -> Samples:
    """Parse a page in this format, of a server of ours; ValueError if it is not one."""
    try:
        return Samples(sample for family in text_string_to_metric_families(text) for sample in family.samples)
    except (ValueError, IndexError) as error:  # the parser indexes past the end of some broken labels
        raise ValueError(f"not a page of metrics: {error}") from error
