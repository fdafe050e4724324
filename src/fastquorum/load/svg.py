"""Draws a chart as SVG, by itself: no package is needed to look at a result."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from fastquorum.load.chart import Chart, Mark, Series
from fastquorum.load.scales import Range, ranges

WIDTH: Final = 880
HEIGHT: Final = 380
COLOURS: Final = ("#1f6feb", "#d9480f", "#2b8a3e", "#9c36b5", "#e8a400", "#0b7285")
BAD: Final = "#c92a2a"
NEUTRAL: Final = "#495057"
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 24, 64, 52
_GRID: Final = "#e3e7eb"
_STYLE: Final = "text{font:12px system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#343a40}"
_ROW: Final = 14


def draw(chart: Chart) -> str:
    """A whole SVG document."""
    x, y = ranges(chart)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(chart.title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" style="font-size:15px;font-weight:600">{escape(chart.title)}</text>',
        *_axes(chart, x, y),
        *(line for number, series in enumerate(chart.series) for line in _series(number, series, x, y)),
        *_marks(chart.marks, x),
        *_legend(chart.series),
        "</svg>",
    ]
    return "\n".join(parts)


def _at(x: Range, y: Range, point: tuple[float, float]) -> tuple[float, float]:
    return _across(x, point[0]), _down(y, point[1])


def _across(x: Range, value: float) -> float:
    return _LEFT + min(max(x.place(value), 0), 1) * (WIDTH - _LEFT - _RIGHT)


def _down(y: Range, value: float) -> float:
    if math.isnan(value):
        return value
    return HEIGHT - _BOTTOM - min(max(y.place(value), 0), 1) * (HEIGHT - _TOP - _BOTTOM)


def _axes(chart: Chart, x: Range, y: Range) -> Iterator[str]:
    floor, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for tick in y.ticks():
        at = _down(y, tick.value)
        yield f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="{_GRID}"/>'
        yield f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tick.label}</text>'
    for tick in x.ticks():
        at = _across(x, tick.value)
        yield f'<line x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{floor}" stroke="{_GRID}"/>'
        yield f'<text x="{at:.1f}" y="{floor + 18}" text-anchor="middle">{tick.label}</text>'
    yield f'<path d="M{_LEFT} {_TOP}V{floor}H{right}" fill="none" stroke="{NEUTRAL}"/>'
    middle = (_TOP + floor) / 2
    yield f'<text x="{(_LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(chart.x.label)}</text>'
    yield (
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">'
        f"{escape(chart.y.label)}</text>"
    )


def _marks(marks: Sequence[Mark], x: Range) -> Iterator[str]:
    """Labels stand on the side where there is room, each one below the one before it."""
    for number, mark in enumerate(marks):
        at, colour = _across(x, mark.x), BAD if mark.is_bad else NEUTRAL
        yield (
            f'<line x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{HEIGHT - _BOTTOM}" stroke="{colour}" '
            'stroke-dasharray="2 3" stroke-width="1.4"/>'
        )
        is_left = at > WIDTH * 0.7
        anchor, shift = ("end", -5) if is_left else ("start", 5)
        down = _TOP + 12 + _ROW * (number % 8)
        # Twice: first a halo, which keeps it readable over lines.
        for style in ("stroke:#fff;stroke-width:3px", f"fill:{colour}"):
            yield (
                f'<text x="{at + shift:.1f}" y="{down}" text-anchor="{anchor}" style="{style}">'
                f"{escape(mark.label)}</text>"
            )


def _series(number: int, series: Series, x: Range, y: Range) -> Iterator[str]:
    colour = colour_of(number, series)
    places = [_at(x, y, point) for point in series.points]
    if places:
        path = "".join(_path(places))
        dash = ' stroke-dasharray="5 4"' if series.is_dashed else ""
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-linejoin="round"{dash}/>'
    if series.has_points:
        for (across, down), (at, value) in zip(places, series.points, strict=True):
            title = f"{series.name}: {value:,.0f} at {at:,.0f}"
            yield (
                f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3.5" fill="{colour}"><title>{escape(title)}</title>'
                "</circle>"
            )


def _path(places: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Lines between neighbours; none to or from a place that is not a number."""
    is_drawing = False
    for across, down in places:
        if math.isnan(down):
            is_drawing = False
            continue
        yield f"{'L' if is_drawing else 'M'}{across:.1f} {down:.1f}"
        is_drawing = True


def _legend(series: Sequence[Series]) -> Iterator[str]:
    across = float(_LEFT)
    for number, each in enumerate(series):
        colour = colour_of(number, each)
        dash = ' stroke-dasharray="5 4"' if each.is_dashed else ""
        yield f'<line x1="{across}" y1="42" x2="{across + 20}" y2="42" stroke="{colour}" stroke-width="2.5"{dash}/>'
        yield f'<text x="{across + 26}" y="46">{escape(each.name)}</text>'
        across += 26 + 7.0 * len(each.name) + 22


def colour_of(number: int, series: Series) -> str:
    """The same for the same series in every drawing."""
    if series.is_dashed:
        return NEUTRAL
    return BAD if series.name == "errors" else COLOURS[number % len(COLOURS)]
