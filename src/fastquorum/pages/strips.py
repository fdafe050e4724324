"""Draws strips: what each of many things was, from left to right."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from fastquorum.pages.chart import Axis, Span, Strips
from fastquorum.pages.frame import (
    RIGHT,
    WIDTH,
    Field,
    labels_width,
    legend,
    legend_rows,
    marks_of,
    row_label,
    title_of,
    x_axis,
)
from fastquorum.pages.scales import Range, moment
from fastquorum.pages.text import shown

_PITCH: Final = 20
_THICK: Final = 14
_BOTTOM: Final = 48
_SEEN: Final = 1.5
"""Nothing is drawn narrower: what happened must be seen, however short it was."""
_SPANS_MAX: Final = 120
"""Of a strip, as they are; of more, what was worst in each of _CELLS."""
_CELLS: Final = 240


def strips_of(chart: Strips) -> tuple[float, Iterator[str]]:
    """The height of the picture, and all but its frame."""
    drawn = chart.strips[: chart.rows_max]
    left = labels_width([strip.label for strip in drawn])
    top = 32.0 + 18 * legend_rows(chart.keys, left) + 8
    field = Field(left, top, WIDTH - RIGHT, top + _PITCH * len(drawn) + 4)
    ends = [end for strip in drawn for span in strip.spans for end in (span.begin, span.end)]
    x = Range(chart.x, [*ends, *(mark.x for mark in chart.marks)])

    def lines() -> Iterator[str]:
        yield title_of(chart.title, 4)
        yield from legend(chart.keys, left)
        yield from x_axis(x, chart.x.label, field)
        for nth, strip in enumerate(drawn):
            down = top + _PITCH * nth + 4
            yield row_label(strip.label, left, down + _THICK - 3)
            for span in _seen(strip.spans, x):
                yield _span(chart, strip.label, span, (x, field), down)
        yield from marks_of(chart.marks, x, field)

    return field.floor + _BOTTOM, lines()


def _span(chart: Strips, label: str, span: Span, where: tuple[Range, Field], down: float) -> str:
    x, field = where
    begin, end = field.across(x, span.begin), field.across(x, span.end)
    width = max(end - begin, _SEEN)
    begin = min(begin, field.right - width)
    key = chart.keys[span.key]
    said = f"{label}: {span.text or key.name}, {_reach(chart.x, span)}"
    return (
        f'<rect class="ink {key.pen}" x="{begin:.1f}" y="{down:.0f}" width="{width:.1f}" height="{_THICK}">'
        f"<title>{shown(said)}</title></rect>"
    )


def _reach(axis: Axis, span: Span) -> str:
    if axis.scale == "time":
        return f"{moment(span.begin)} to {moment(span.end)[11:]}, {span.end - span.begin:,.6g} s"
    return f"{span.begin:,.0f} to {span.end:,.0f}"


def _seen(spans: Sequence[Span], x: Range) -> Sequence[Span]:
    """Those of a strip, the worse ones last, so that they cover the others; many of them thinned out."""
    if len(spans) > _SPANS_MAX:
        spans = list(_thinned(spans, x))
    return sorted(spans, key=lambda span: span.key)


def _thinned(spans: Sequence[Span], x: Range) -> Iterator[Span]:
    """As few as there are cells: in each what was worst there, cells of the same told as one."""
    size = (x.high - x.low) / _CELLS
    worst = [-1] * _CELLS
    counts = [0] * _CELLS
    for span in spans:
        first = min(max(math.floor((span.begin - x.low) / size), 0), _CELLS - 1)
        last = min(max(math.ceil((span.end - x.low) / size), first + 1), _CELLS)
        counts[first] += 1
        for cell in range(first, last):
            worst[cell] = max(worst[cell], span.key)
    begin = 0
    for cell in range(1, _CELLS + 1):
        if cell < _CELLS and worst[cell] == worst[begin]:
            continue
        if worst[begin] >= 0:
            text = f"at worst, of {sum(counts[begin:cell])} changes"
            yield Span(x.low + begin * size, x.low + cell * size, worst[begin], text)
        begin = cell
