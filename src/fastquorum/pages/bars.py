"""Draws horizontal bars, of one part or several."""

from collections.abc import Iterator
from itertools import accumulate

from fastquorum.pages import frame
from fastquorum.pages.chart import Bar, Bars
from fastquorum.pages.scales import Range
from fastquorum.pages.text import number, plain, shown

_TOP = 36
_PITCH = 20
_THICK = 14
_BOTTOM = 48


def bars_of(chart: Bars) -> tuple[float, Iterator[str]]:
    """Return the height of the picture and its lines, without the frame."""
    drawn = chart.bars[: chart.rows_max]
    left = frame.labels_width([bar.label for bar in drawn])
    has_legend = len(chart.keys) > 1
    top = _TOP + (18.0 * frame.legend_rows(chart.keys, left) + 8 if has_legend else 0)
    labels = [bar.text or number(sum(bar.values)) for bar in drawn]
    behind = frame.CHARACTER * max((len(text) for text in labels), default=0) + 12
    field = frame.Field(left, top, max(frame.WIDTH - frame.RIGHT - behind, left + 120), top + _PITCH * len(drawn) + 4)
    x = Range(chart.x, [end for bar in drawn for end in accumulate(bar.values)])

    def lines() -> Iterator[str]:
        yield frame.title_of(chart.title, 4)
        if has_legend:
            yield from frame.legend(chart.keys, left)
        yield from frame.x_axis(x, chart.x.label, field)
        for nth, (bar, text) in enumerate(zip(drawn, labels, strict=True)):
            yield from _bar(chart, bar, text, x, field, top + _PITCH * nth + 4)
        zero = field.across(x, 0.0)
        yield f'<path class="pen axis neutral" d="M{zero:.1f} {field.top}V{field.floor}"/>'

    return field.floor + _BOTTOM, lines()


def _bar(chart: Bars, bar: Bar, text: str, x: Range, field: frame.Field, down: float) -> Iterator[str]:
    yield frame.row_label(bar.label, field.left, down + _THICK - 3)
    begin, right = 0.0, field.across(x, 0.0)
    for key, value in zip(chart.keys, bar.values, strict=True):
        end = begin + value
        low, high = sorted((field.across(x, begin), field.across(x, end)))
        if value:
            part = f"{key.name}: " if len(chart.keys) > 1 else ""
            title = f"{bar.label}: {part}{text if len(chart.keys) == 1 else plain(value)}"
            yield (
                f'<rect class="ink {key.pen}" x="{low:.1f}" y="{down:.0f}" width="{max(high - low, 1):.1f}" '
                f'height="{_THICK}"><title>{shown(title)}</title></rect>'
            )
        begin, right = end, max(right, high)
    yield f'<text x="{right + 6:.1f}" y="{down + _THICK - 3:.0f}">{shown(text)}</text>'
