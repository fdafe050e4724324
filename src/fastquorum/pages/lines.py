"""Draws lines over an axis."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from fastquorum.pages.chart import Axis, Chart, Key, Series
from fastquorum.pages.frame import RIGHT, WIDTH, Field, legend, marks_of, title_of, x_axis
from fastquorum.pages.scales import Range, moment, ranges
from fastquorum.pages.style import pen_of
from fastquorum.pages.text import number, plain, shown

HEIGHT: Final = 380
LEFT: Final = 76.0
"""Room for the y axis: its figures and its label."""
_TOP: Final = 64.0
_FLOOR: Final = HEIGHT - 52.0
_TOOLTIPS_MAX: Final = 300
"""Most places with a tooltip."""


def lines_of(chart: Chart, left: float) -> Iterator[str]:
    """Yield the lines of the picture, without the frame. `left`: where the field begins."""
    x, y = ranges(chart)
    field = Field(left, _TOP, WIDTH - RIGHT, _FLOOR)
    keys = [Key(each.name, pen_of(nth, each)) for nth, each in enumerate(chart.series)]
    yield title_of(chart.title, 4)
    yield from _y_axis(chart, y, field)
    yield from x_axis(x, chart.x.label, field)
    yield f'<path class="pen axis neutral" d="M{field.left} {field.top}V{field.floor}H{field.right}"/>'
    for nth, series in enumerate(chart.series):
        yield from _series(nth, series, (x, y), field)
    yield from marks_of(chart.marks, x, field)
    yield from legend(keys, field.left, [each.is_dashed for each in chart.series], is_line=True)
    yield from _tooltips(chart, x, field)


def _down(y: Range, value: float) -> float:
    if math.isnan(value):
        return value
    return _FLOOR - min(max(y.place(value), 0), 1) * (_FLOOR - _TOP)


def _y_axis(chart: Chart, y: Range, field: Field) -> Iterator[str]:
    for tick in y.ticks():
        at = _down(y, tick.value)
        yield f'<path class="grid" d="M{field.left} {at:.1f}H{field.right}"/>'
        yield f'<text class="end" x="{field.left - 8}" y="{at + 4:.1f}">{tick.label}</text>'
    middle, across = (field.top + field.floor) / 2, field.left - LEFT + 18
    place = f'x="{across:.1f}" y="{middle}" transform="rotate(-90 {across:.1f} {middle})"'
    yield f'<text class="mid note" {place}>{shown(chart.y.label)}</text>'


def _series(nth: int, series: Series, axes: tuple[Range, Range], field: Field) -> Iterator[str]:
    x, y = axes
    pen = pen_of(nth, series)
    places = [(field.across(x, at), _down(y, value)) for at, value in series.points]
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


def _tooltips(chart: Chart, x: Range, field: Field) -> Iterator[str]:
    """Draw a tooltip for each stretch of steps that all change at the same places."""
    steps = [each for each in chart.series if each.is_step]
    if not steps or len(steps) < len(chart.series) or not 1 < len(steps[0].points) <= _TOOLTIPS_MAX:
        return
    places = [at for at, _ in steps[0].points]
    if any([at for at, _ in each.points] != places for each in steps):
        return
    values = [tuple(each.points[nth][1] for each in steps) for nth in range(len(places) - 1)]
    begin = 0
    for nth in range(1, len(places)):
        if nth < len(values) and values[nth] == values[begin]:
            continue
        left, right = field.across(x, places[begin]), field.across(x, places[nth])
        parts = "; ".join(f"{each.name} {number(value)}" for each, value in zip(steps, values[begin], strict=True))
        title = f"{_place(chart.x, places[begin])}: {parts}"
        yield (
            f'<rect class="hit" x="{left:.1f}" y="{field.top}" width="{right - left:.1f}" '
            f'height="{field.floor - field.top}"><title>{shown(title)}</title></rect>'
        )
        begin = nth


def _place(axis: Axis, at: float) -> str:
    return moment(at) if axis.scale == "time" else plain(at)
