"""Draws strips: what each of many things was, from left to right."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from fastquorum.pages import frame
from fastquorum.pages.chart import Axis, Band, Strip, Strips
from fastquorum.pages.scales import Range, moment
from fastquorum.pages.text import plain, shown

_PITCH: Final = 20
_THICK: Final = 14
_BOTTOM: Final = 48
_ABOVE: Final = 14
_SEEN: Final = 2.5
"""Least width of a span, so that even a short one is seen."""
_SPANS_MAX: Final = 24
"""Most spans of a strip that are drawn one by one."""
_CELLS: Final = 200
"""Cells of a strip with more spans; each cell shows the worst that it covers."""


def strips_left(chart: Strips) -> float:
    """Return the width that the labels need."""
    return frame.labels_width([strip.label for strip in chart.strips[: chart.rows_max]])


def strips_of(chart: Strips, left: float) -> tuple[float, Iterator[str]]:
    """Return the height of the picture and its lines, without the frame. `left`: where the field begins."""
    drawn = chart.strips[: chart.rows_max]
    top = 40.0 + 18 * frame.legend_rows(chart.keys, left) + (_ABOVE if chart.marks else 0)
    field = frame.Field(left, top, frame.WIDTH - frame.RIGHT, top + _PITCH * len(drawn) + 4)
    ends = [end for strip in drawn for span in strip.spans for end in (span.begin, span.end)]
    x = Range(chart.x, [*ends, *(mark.x for mark in chart.marks)])

    def lines() -> Iterator[str]:
        yield frame.title_of(chart.title, 4)
        yield from frame.legend(chart.keys, left)
        yield from frame.x_axis(x, chart.x.label, field)
        yield from frame.marks_above(chart.marks, x, field)
        for nth, strip in enumerate(drawn):
            down = top + _PITCH * nth + 4
            yield frame.row_label(strip.label, left, down + _THICK - 3)
            yield from _strip(chart, strip, (x, field), down)

    return field.floor + _BOTTOM, lines()


def _span(chart: Strips, label: str, span: Band, where: tuple[Range, frame.Field], down: float) -> str:
    x, field = where
    begin, end = field.across(x, span.begin), field.across(x, span.end)
    width = max(end - begin, _SEEN)
    begin = min(begin, field.right - width)
    key = chart.keys[span.key]
    title = f"{label}: {span.text or key.name}, {_reach(chart.x, span)}"
    return (
        f'<rect class="ink {key.pen}" x="{begin:.1f}" y="{down:.0f}" width="{width:.1f}" height="{_THICK}">'
        f"<title>{shown(title)}</title></rect>"
    )


def _reach(axis: Axis, span: Band) -> str:
    if axis.scale == "time":
        return f"{moment(span.begin)} to {moment(span.end)[11:]}, {plain(span.end - span.begin)} s"
    return f"{span.begin:,.0f} to {span.end:,.0f}"


def _strip(chart: Strips, strip: Strip, where: tuple[Range, frame.Field], down: float) -> Iterator[str]:
    """Draw the worse spans last, so that they cover the others. Many spans are drawn as one path."""
    if len(strip.spans) <= _SPANS_MAX:
        for span in sorted(strip.spans, key=lambda span: span.key):
            yield _span(chart, strip.label, span, where, down)
        return
    x, field = where
    thin = list(_thinned(strip.spans, x))
    for nth, key in enumerate(chart.keys):
        spans = [span for span in strip.spans if span.key == nth]
        cells = [(field.across(x, begin), field.across(x, end)) for begin, end, worst in thin if worst == nth]
        path = "".join(
            f"M{begin:.0f} {down:.0f}h{max(end - begin, _SEEN):.1f}v{_THICK}H{begin:.0f}z" for begin, end in cells
        )
        if path:
            title = f"{strip.label}: {key.name}, {len(spans):,} times"
            if chart.x.scale == "time":
                title += f", {plain(sum(span.end - span.begin for span in spans))} s in all"
            yield f'<path class="ink {key.pen}" d="{path}"><title>{shown(title)}</title></path>'


def _thinned(spans: Sequence[Band], x: Range) -> Iterator[tuple[float, float, int]]:
    """Yield begin, end and key of what is drawn: at most one for each cell, with the worst key there."""
    size = (x.high - x.low) / _CELLS
    worst = [-1] * _CELLS
    for span in spans:
        first = min(max(math.floor((span.begin - x.low) / size), 0), _CELLS - 1)
        last = min(max(math.ceil((span.end - x.low) / size), first + 1), _CELLS)
        for cell in range(first, last):
            worst[cell] = max(worst[cell], span.key)
    begin = 0
    for cell in range(1, _CELLS + 1):
        if cell < _CELLS and worst[cell] == worst[begin]:
            continue
        if worst[begin] >= 0:
            yield x.low + begin * size, x.low + cell * size, worst[begin]
        begin = cell
