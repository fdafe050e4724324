"""Draws a chart as SVG, by itself: no package is needed to look at a result."""

from collections.abc import Iterable

from fastquorum.pages.bars import bars_of
from fastquorum.pages.chart import AnyChart, Bars, Chart, Strips
from fastquorum.pages.frame import picture
from fastquorum.pages.lines import HEIGHT, LEFT, lines_of
from fastquorum.pages.strips import strips_left, strips_of


def draw(chart: AnyChart, *, by_itself: bool = True, left: float = 0.0) -> str:
    """A whole SVG document; or, without its own style, a part of a page that has `style.page_style`. `left`: where what
    is drawn begins at least, so that several charts over one axis stand in line."""
    if isinstance(chart, Bars):
        height, lines = bars_of(chart)
    elif isinstance(chart, Strips):
        height, lines = strips_of(chart, max(left, left_of(chart)))
    else:
        height, lines = HEIGHT, lines_of(chart, max(left, left_of(chart)))
    return picture(chart.title, height, lines, by_itself=by_itself)


def left_of(chart: Chart | Strips) -> float:
    """Return where the drawing begins if it stands alone."""
    return strips_left(chart) if isinstance(chart, Strips) else LEFT


def common_left(charts: Iterable[object]) -> float:
    """Return where all charts over time are to begin; 0: there are none."""
    over_time = [each for each in charts if isinstance(each, Chart | Strips) and each.x.scale == "time"]
    return max(map(left_of, over_time), default=0.0)


def cut_off(chart: AnyChart) -> int:
    """Return how many rows the chart has and does not show."""
    if isinstance(chart, Chart):
        return 0
    rows = chart.bars if isinstance(chart, Bars) else chart.strips
    return max(len(rows) - chart.rows_max, 0)


def left_out(chart: AnyChart) -> int:
    return 0 if isinstance(chart, Chart) else chart.left_out
