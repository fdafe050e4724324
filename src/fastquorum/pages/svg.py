"""Draws a chart as SVG, by itself: no package is needed to look at a result."""

from fastquorum.pages.bars import bars_of
from fastquorum.pages.chart import AnyChart, Bars, Chart, Strips
from fastquorum.pages.frame import picture
from fastquorum.pages.lines import HEIGHT, lines_of
from fastquorum.pages.strips import strips_of


def draw(chart: AnyChart, *, by_itself: bool = True) -> str:
    """A whole SVG document; or, without its own style, a part of a page that has `style.page_style`."""
    if isinstance(chart, Bars):
        height, lines = bars_of(chart)
    elif isinstance(chart, Strips):
        height, lines = strips_of(chart)
    else:
        height, lines = HEIGHT, lines_of(chart)
    return picture(chart.title, height, lines, by_itself=by_itself)


def cut_off(chart: AnyChart) -> int:
    """How many rows it has and does not show."""
    if isinstance(chart, Chart):
        return 0
    rows = chart.bars if isinstance(chart, Bars) else chart.strips
    return max(len(rows) - chart.rows_max, 0)


def left_out(chart: AnyChart) -> int:
    """How many rows there are that it never had."""
    return 0 if isinstance(chart, Chart) else chart.left_out
