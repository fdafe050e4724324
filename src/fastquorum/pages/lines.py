"""Draws lines over an axis."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from fastquorum.pages.chart import Axis, Chart, Key, Series
from fastquorum.pages.frame import RIGHT, WIDTH, Field, legend, marks_of, title_of, x_axis
from fastquorum.pages.scales import Range, moment, ranges
from fastquorum.pages.style import pen_of
from fastquorum.pages.text import number, shown

HEIGHT: Final = 380
_FIELD: Final = Field(76, 64, WIDTH - RIGHT, HEIGHT - 52)
_ASKED_MAX: Final = 300
"""So many places may be pointed at, to be told what is there."""


def lines_of(chart: Chart) -> Iterator[str]:
    """All but the frame of the picture."""
    x, y = ranges(chart)
    keys = [Key(each.name, pen_of(nth, each)) for nth, each in enumerate(chart.series)]
    yield title_of(chart.title, _FIELD.left)
    yield from _y_axis(chart, y)
    yield from x_axis(x, chart.x.label, _FIELD)
    yield f'<path class="pen axis neutral" d="M{_FIELD.left} {_FIELD.top}V{_FIELD.floor}H{_FIELD.right}"/>'
    for nth, series in enumerate(chart.series):
        yield from _series(nth, series, x, y)
    yield from marks_of(chart.marks, x, _FIELD)
    yield from legend(keys, _FIELD.left, [each.is_dashed for each in chart.series], is_line=True)
    yield from _asked(chart, x)


def _down(y: Range, value: float) -> float:
    if math.isnan(value):
        return value
    return _FIELD.floor - min(max(y.place(value), 0), 1) * (_FIELD.floor - _FIELD.top)


def _y_axis(chart: Chart, y: Range) -> Iterator[str]:
    for tick in y.ticks():
        at = _down(y, tick.value)
        yield f'<path class="grid" d="M{_FIELD.left} {at:.1f}H{_FIELD.right}"/>'
        yield f'<text class="end" x="{_FIELD.left - 8}" y="{at + 4:.1f}">{tick.label}</text>'
    middle = (_FIELD.top + _FIELD.floor) / 2
    yield (
        f'<text class="mid note" x="18" y="{middle}" transform="rotate(-90 18 {middle})">{shown(chart.y.label)}</text>'
    )


def _series(nth: int, series: Series, x: Range, y: Range) -> Iterator[str]:
    pen = pen_of(nth, series)
    places = [(_FIELD.across(x, at), _down(y, value)) for at, value in series.points]
    if places:
        path = "".join(_path(places, is_step=series.is_step))
        yield f'<path class="pen {pen}{" dashed" if series.is_dashed else ""}" d="{path}"/>'
    if series.has_points:
        for (across, down), (at, value) in zip(places, series.points, strict=True):
            if not math.isnan(down):
                title = f"{series.name}: {value:,.0f} at {at:,.0f}"
                yield (
                    f'<circle class="ink {pen}" cx="{across:.1f}" cy="{down:.1f}" r="3.5"><title>{shown(title)}</title>'
                    "</circle>"
                )


def _path(places: Sequence[tuple[float, float]], *, is_step: bool) -> Iterator[str]:
    """Lines between neighbours; none to or from a place that is not a number."""
    is_drawing, last = False, math.nan
    for nth, (across, down) in enumerate(places):
        if math.isnan(down):
            is_drawing = False
            continue
        if not (is_drawing and is_step):
            yield f"{'L' if is_drawing else 'M'}{across:.1f} {down:.1f}"
        elif down != last:
            yield f"H{across:.1f}V{down:.1f}"
        elif nth == len(places) - 1:
            yield f"H{across:.1f}"
        is_drawing, last = True, down


def _asked(chart: Chart, x: Range) -> Iterator[str]:
    """Of steps that all change at the same places: what each is, from one place to the next."""
    steps = [each for each in chart.series if each.is_step]
    if not steps or len(steps) < len(chart.series) or not 1 < len(steps[0].points) <= _ASKED_MAX:
        return
    places = [at for at, _ in steps[0].points]
    if any([at for at, _ in each.points] != places for each in steps):
        return
    values = [tuple(each.points[nth][1] for each in steps) for nth in range(len(places) - 1)]
    begin = 0
    for nth in range(1, len(places)):
        if nth < len(values) and values[nth] == values[begin]:
            continue
        left, right = _FIELD.across(x, places[begin]), _FIELD.across(x, places[nth])
        told = "; ".join(f"{each.name} {number(value)}" for each, value in zip(steps, values[begin], strict=True))
        said = f"{_place(chart.x, places[begin])}: {told}"
        yield (
            f'<rect class="hit" x="{left:.1f}" y="{_FIELD.top}" width="{right - left:.1f}" '
            f'height="{_FIELD.floor - _FIELD.top}"><title>{shown(said)}</title></rect>'
        )
        begin = nth


def _place(axis: Axis, at: float) -> str:
    return moment(at) if axis.scale == "time" else f"{at:,.6g}"
