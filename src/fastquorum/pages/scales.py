"""From values to places on an axis, and which values to write there."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from fastquorum.pages.chart import Axis, Chart
from fastquorum.pages.text import number

_TICKS: Final = 6
_STEPS: Final = (1, 2, 2.5, 5, 10)
_MINUTE_S: Final = 60.0
_DAY_S: Final = 86_400.0
_TIME_STEPS_S: Final = (
    *(each / 1000 for each in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(each * _MINUTE_S for each in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(each * _DAY_S for each in (1, 2, 7, 14, 28, 91, 182, 364, 1820, 3640, 18_200)),
)
_NO_TIME_S: Final = 0.001
_WHOLE_MAX: Final = 1e12
"""Most times that a difference may be smaller than the values that differ."""
_LEAST: Final = 1e-100
"""Smallest difference that counts as one."""
_DECADES_MAX: Final = 1e15
"""From the lowest to the highest value on a logarithmic axis."""


class Tick(NamedTuple):
    value: float
    label: str


class Range:
    """An axis over what is drawn on it; `place` is 0 at its beginning and 1 at its end."""

    def __init__(self, axis: Axis, values: Sequence[float]) -> None:
        self.is_log = axis.scale in ("log", "percentile")
        values = [
            value for value in (*values, *axis.extent) if math.isfinite(value) and (value > _LEAST or not self.is_log)
        ]
        self._axis = axis
        if axis.scale == "percentile":
            self.low, self.high = 1.0, max([*values, 10.0])
        elif axis.scale == "time":
            self.low, self.high = min(values, default=0.0), max(values, default=0.0)
            self.high = max(self.high, self.low + _NO_TIME_S)
        elif self.is_log:
            # Whole decades waste half of the picture: a little air is enough.
            self.high = max(values, default=10.0) * 1.2
            self.low = max(min(values, default=1.0) / 1.2, self.high / _DECADES_MAX)
        elif not axis.has_zero and values:
            self.low, self.high = min(values), max(values)
            self.high = max(self.high, self.low + max(abs(self.low) / _WHOLE_MAX, 1.0))
        else:
            self.low = min([*values, 0.0]) * 1.05
            self.high = max([*values, 0.0]) * 1.05
            if self.high - self.low < _LEAST:
                self.low, self.high = 0.0, 1.05

    def place(self, value: float) -> float:
        """Return the place of a value: 0 to 1 within the range, beyond that outside of it."""
        if self.is_log:
            value = max(value, self.low / 10)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        if self._axis.scale == "percentile":
            nines = [10.0**power for power in range(1, math.floor(math.log10(self.high) + 1e-9) + 1)]
            return [Tick(value, _percent(value)) for value in [1.0, 2.0, 4.0, *nines] if value <= self.high]
        if self._axis.scale == "time":
            return list(_moments(self.low, self.high))
        if self.is_log:
            return self._decades()
        raw = (self.high - self.low) / _TICKS
        unit = 10 ** math.floor(math.log10(raw))
        step = next(each * unit for each in _STEPS if each * unit >= raw * 0.999)
        if self._axis.scale == "count":
            step = max(float(math.ceil(step)), 1.0)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        format_value = number if self._axis.has_zero else "{:,.0f}".format
        return [Tick(nth * step, format_value(nth * step)) for nth in range(first, last + 1)]

    def _decades(self) -> list[Tick]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ratio = self.high / self.low
        factors = (1, 1.5, 2, 3, 4, 5, 7) if ratio < 5 else (1, 2, 5) if ratio < 1000 else (1,)
        values = [factor * 10.0**power for power in powers for factor in factors]
        return [Tick(value, number(value)) for value in values if self.low <= value <= self.high]


def ranges(chart: Chart) -> tuple[Range, Range]:
    points = [point for series in chart.series for point in series.points]
    marks = [mark.x for mark in chart.marks]
    return Range(chart.x, [x for x, _ in points] + marks), Range(chart.y, [y for _, y in points])


def _percent(nines: float) -> str:
    fraction = 1 - 1 / nines
    digits = max(math.ceil(math.log10(nines)) - 2, 0)
    return f"{fraction * 100:.{digits}f}%"


# --- times ------------------------------------------------------------------------------------------------------------


def seconds_of(iso: str) -> float:
    """Return the seconds since 1970 of a time as reports have it."""
    return datetime.fromisoformat(iso).timestamp()


def moment(value_s: float) -> str:
    """A time, to the millisecond, in UTC."""
    return _at(value_s).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _moments(low_s: float, high_s: float) -> Iterator[Tick]:
    """Yield ticks, as exact as it takes to tell neighbours apart; the date stands where it changes."""
    lasted_s = high_s - low_s
    step_s = next((each for each in _TIME_STEPS_S if each >= lasted_s / _TICKS * 0.999), _TIME_STEPS_S[-1])
    date = ""
    for nth in range(math.ceil(low_s / step_s - 1e-6), math.floor(high_s / step_s + 1e-6) + 1):
        value_s = nth * step_s
        at = _at(value_s)
        if step_s >= _DAY_S:
            yield Tick(value_s, at.strftime("%Y-%m-%d"))
            continue
        text = at.strftime("%H:%M" if step_s >= _MINUTE_S else "%H:%M:%S")
        if step_s < 1:
            text += f".{at.microsecond // 1000:03d}"
        before, date = date, at.strftime("%m-%d")
        yield Tick(value_s, text if date == before else f"{date} {text}")


def _at(value_s: float) -> datetime:
    return datetime.fromtimestamp(round(value_s, 3), UTC)
