"""The Prometheus text format, version 0.0.4: written for scrapers, and read back by `fastquorum top`.

Source: Prometheus, "Exposition formats".
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fastquorum.observe.catalogue import METRICS
from fastquorum.observe.families import US_PER_S, Labels, Metric, MetricPoint, NodeView
from fastquorum.observe.own import UP, UP_HELP
from fastquorum.observe.stages import StageCounts

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_UP: Final = Metric(UP, "gauge", UP_HELP, lambda _: ())
ALL: Final = (_UP, *METRICS)
"""Everything that a page may hold."""
_LINE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)(?: -?\d+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?')
_ESCAPES: Final = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def page(view: NodeView | None) -> str:
    """Everything that is known; None: that the replica does not answer."""
    lines = list(_lines(_UP, [MetricPoint(float(view is not None))]))
    if view is not None:
        for metric in METRICS:
            lines += _lines(metric, list(metric.points(view)))
    return "\n".join(lines) + "\n"


def _lines(metric: Metric, points: list[MetricPoint]) -> Iterator[str]:
    if not points:
        return
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for point in points:
        if isinstance(point.value, StageCounts):
            yield from _histogram(metric.name, point.labels, point.value)
        else:
            yield _sample(metric.name + point.suffix, point.labels, point.value)


def _histogram(name: str, labels: Labels, stage: StageCounts) -> Iterator[str]:
    for bound_us, upto in stage.buckets:
        yield _sample(f"{name}_bucket", (*labels, ("le", _number(bound_us / US_PER_S))), upto)
    yield _sample(f"{name}_bucket", (*labels, ("le", "+Inf")), stage.count)
    yield _sample(f"{name}_sum", labels, stage.sum_us / US_PER_S)
    yield _sample(f"{name}_count", labels, stage.count)


def _sample(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_quoted(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


# --- read back --------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """One line."""

    name: str
    labels: dict[str, str]
    value: float


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
    """Parse any page in this format. ValueError names a line that does not fit."""
    return Samples(_sample_of(line) for line in text.splitlines() if line.strip() and not line.startswith("#"))


def _sample_of(line: str) -> Sample:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise ValueError(f"not a line of metrics: {line[:80]!r}")
    name, labels, value = match.groups()
    pairs = {
        key: re.sub(r"\\.", lambda each: _ESCAPES.get(each[0], each[0]), text)
        for key, text in _LABEL.findall(labels or "")
    }
    return Sample(name, pairs, float(value))
