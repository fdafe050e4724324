"""From values to places on an axis, and which values to write there."""

import math
from typing import Final, NamedTuple

from fastquorum.load.chart import Axis, Chart, number

_TICKS: Final = 6
_STEPS: Final = (1, 2, 2.5, 5, 10)


class Tick(NamedTuple):
    value: float
    label: str


class Range:
    """An axis over what is drawn on it; `place` is 0 at its beginning and 1 at its end."""

    def __init__(self, axis: Axis, values: list[float]) -> None:
        self.is_log = axis.scale != "linear"
        values = [value for value in values if math.isfinite(value) and (value > 0 or not self.is_log)]
        self._axis = axis
        if axis.scale == "percentile":
            self.low, self.high = 1.0, max(*values, 10.0)
        elif self.is_log:
            # Whole decades waste half of the picture: a little air is enough.
            self.low, self.high = min(values, default=1.0) / 1.2, max(values, default=10.0) * 1.2
        else:
            self.low, self.high = 0.0, max(values, default=1.0) * 1.05 or 1.0

    def place(self, value: float) -> float:
        """Of a value of the range; of another one outside of 0 to 1."""
        if self.is_log:
            value = max(value, 1e-12)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        if self._axis.scale == "percentile":
            nines = [10.0**power for power in range(1, math.floor(math.log10(self.high) + 1e-9) + 1)]
            return [Tick(value, _percent(value)) for value in [1.0, 2.0, 4.0, *nines] if value <= self.high]
        if self.is_log:
            return self._decades()
        raw = (self.high - self.low) / _TICKS
        unit = 10 ** math.floor(math.log10(raw))
        step = next(each * unit for each in _STEPS if each * unit >= raw * 0.999)
        count = math.floor(self.high / step + 1e-9)
        return [Tick(nth * step, number(nth * step)) for nth in range(count + 1)]

    def _decades(self) -> list[Tick]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        factors = (1, 2, 5) if self.high / self.low < 1000 else (1,)
        values = [factor * 10.0**power for power in powers for factor in factors]
        return [Tick(value, number(value)) for value in values if self.low <= value <= self.high]


def ranges(chart: Chart) -> tuple[Range, Range]:
    """Of both axes."""
    points = [point for series in chart.series for point in series.points]
    marks = [mark.x for mark in chart.marks]
    return Range(chart.x, [x for x, _ in points] + marks), Range(chart.y, [y for _, y in points])


def _percent(nines: float) -> str:
    fraction = 1 - 1 / nines
    digits = max(math.ceil(math.log10(nines)) - 2, 0)
    return f"{fraction * 100:.{digits}f}%"
