"""What all charts have around what they show: the picture, its title, legend, axes and marks."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fastquorum.pages.chart import Key, Marker, Pen
from fastquorum.pages.scales import Range
from fastquorum.pages.style import picture_style
from fastquorum.pages.text import shortened, shown

WIDTH: Final = 880
RIGHT: Final = 24
CHARACTER: Final = 6.9
"""Rough width of a character, to measure labels."""
_WIDTHS: Final = {**dict.fromkeys("mwMW@%", 11.8), **dict.fromkeys("ijl.,:;|!'-()[] ", 4.6)}
"""Widths of characters in the widest of the usual fonts, where they differ much from most."""
_CAPITAL: Final = 8.6
_SMALL: Final = 7.4
_LABEL_MAX: Final = 34
_LEGEND: Final = 46
_ROW: Final = 14
_MARKS_MAX: Final = 80
"""Most marks that are drawn. With more, lines would cover everything, so none is drawn."""
_LABELLED_MAX: Final = 24
"""Most marks with labels. With more, labels would cover the chart; the lines stay, with their texts as titles."""


class Field(NamedTuple):
    """The part of a picture that values are drawn in."""

    left: float
    top: float
    right: float
    floor: float

    def across(self, x: Range, value: float) -> float:
        return self.left + min(max(x.place(value), 0), 1) * (self.right - self.left)


def picture(title: str, height: float, lines: Iterator[str], *, by_itself: bool) -> str:
    """A chart, whole; `by_itself`: as a document of its own, with its own style."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-label="{shown(title)}">',
        *([f"<style>{picture_style()}</style>"] if by_itself else []),
        f'<rect class="paper" width="{WIDTH}" height="{height:.0f}"/>',
        *lines,
        "</svg>",
    ]
    return "\n".join(parts)


def title_of(title: str, left: float) -> str:
    return f'<text class="title" x="{left}" y="22">{shown(title)}</text>'


def legend(keys: Sequence[Key], left: float, dashed: Sequence[bool] = (), *, is_line: bool = False) -> Iterator[str]:
    """In one line, or as many as it needs; `legend_rows` says how many."""
    for nth, (key, across, row) in enumerate(_placed(keys, left)):
        down = _LEGEND + row * 18
        if is_line:
            dash = " dashed" if dashed and dashed[nth] else ""
            yield f'<path class="pen {key.pen}{dash}" d="M{across:.0f} {down - 4}h20"/>'
        else:
            yield f'<rect class="ink {key.pen}" x="{across:.0f}" y="{down - 10}" width="20" height="11" rx="2"/>'
        yield f'<text x="{across + 26:.0f}" y="{down}">{shown(key.name)}</text>'


def legend_rows(keys: Sequence[Key], left: float) -> int:
    return max((row for _, _, row in _placed(keys, left)), default=0) + 1


def _placed(keys: Sequence[Key], left: float) -> Iterator[tuple[Key, float, int]]:
    across, row = left, 0
    for key in keys:
        width = 26 + CHARACTER * len(key.name) + 22
        if across > left and across + width > WIDTH:
            across, row = left, row + 1
        yield key, across, row
        across += width


def labels_width(labels: Sequence[str]) -> float:
    """Return the room that labels need to the left of bars and strips."""
    return max(20.0 + max((text_width(shortened(each, _LABEL_MAX)) for each in labels), default=0.0), 56.0)


def text_width(text: str) -> float:
    """At most, in whatever font: ids are mostly capitals, and what is cut off at the left of a picture is gone."""
    return sum(_WIDTHS.get(each, _CAPITAL if each.isupper() or ord(each) > 0x7F else _SMALL) for each in text)


def row_label(label: str, left: float, down: float) -> str:
    """Left of a bar or strip: cut, with all of it as its title."""
    short = shortened(label, _LABEL_MAX)
    title = f"<title>{shown(label)}</title>" if short != label else ""
    return f'<text class="end" x="{left - 8:.1f}" y="{down:.1f}">{title}{shown(short)}</text>'


def x_axis(x: Range, label: str, field: Field) -> Iterator[str]:
    """Its lines, its figures and what it is of."""
    last = -1e9
    for tick in x.ticks():
        at = field.across(x, tick.value)
        yield f'<path class="grid" d="M{at:.1f} {field.top}V{field.floor}"/>'
        half = CHARACTER * len(tick.label) / 2
        if at - half > last + 6:
            at = min(max(at, half), WIDTH - half - 2)
            last = at + half
            yield f'<text class="mid" x="{at:.1f}" y="{field.floor + 18}">{tick.label}</text>'
    middle = (field.left + field.right) / 2
    yield f'<text class="mid note" x="{middle:.1f}" y="{field.floor + 40}">{shown(label)}</text>'


def marks_of(marks: Sequence[Marker], x: Range, field: Field) -> Iterator[str]:
    """Labels stand on the side where there is room, each one below the one before it."""
    yield from _mark_lines(marks, x, field)
    for nth, mark in enumerate(marks if len(marks) <= _LABELLED_MAX else ()):
        at, pen = field.across(x, mark.x), _mark_pen(mark)
        is_left = at > WIDTH * 0.7
        anchor, shift = ("end", -5) if is_left else ("start", 5)
        down = field.top + 12 + _ROW * (nth % 8)
        # Twice: first a halo, which keeps it readable over lines.
        for style in ("halo", f"said {pen}"):
            yield (
                f'<text class="{style}" x="{at + shift:.1f}" y="{down:.0f}" style="text-anchor:{anchor}">'
                f"{shown(mark.label)}</text>"
            )


def marks_above(marks: Sequence[Marker], x: Range, field: Field) -> Iterator[str]:
    """Draw marks above a chart that has no room inside. A label that would cover another one is left out."""
    yield from _mark_lines(marks, x, field)
    last = -1e9
    for mark in sorted(marks if len(marks) <= _MARKS_MAX else (), key=lambda each: each.x):
        width = CHARACTER * len(mark.label)
        at = min(field.across(x, mark.x) + 2, WIDTH - width - 2)
        if at > last + 8:
            last = at + width
            yield (
                f'<text class="said {_mark_pen(mark)}" x="{at:.1f}" y="{field.top - 4:.0f}">{shown(mark.label)}</text>'
            )


def _mark_lines(marks: Sequence[Marker], x: Range, field: Field) -> Iterator[str]:
    for mark in marks if len(marks) <= _MARKS_MAX else ():
        yield (
            f'<path class="pen dotted {_mark_pen(mark)}" d="M{field.across(x, mark.x):.1f} {field.top}V{field.floor}">'
            f"<title>{shown(mark.label)}</title></path>"
        )


def _mark_pen(mark: Marker) -> Pen:
    return Pen.BAD if mark.is_bad else Pen.NEUTRAL
