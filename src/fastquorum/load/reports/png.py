"""Draws charts as PNG, with matplotlib (an extra): the same axes, colours and marks as `pages.svg`."""

import importlib
from typing import Any, Final

from fastquorum.errors import UsageError
from fastquorum.pages.chart import Chart, Pen
from fastquorum.pages.frame import WIDTH
from fastquorum.pages.lines import HEIGHT
from fastquorum.pages.scales import ranges
from fastquorum.pages.style import LIGHT, pen_of

_DPI: Final = 110
_ROW: Final = 0.055


def load_matplotlib() -> Any:
    """Its Figure class. UsageError if it is not installed."""
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise UsageError(
            "PNG charts need the package matplotlib, which is not installed",
            "pip install 'fastquorum[bench]', or ask for --svg, which needs nothing",
        ) from error


def draw(chart: Chart, path: str) -> None:
    """Write the chart to a file."""
    figure = load_matplotlib()(figsize=(WIDTH / 100, HEIGHT / 100), dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    x, y = ranges(chart)
    for nth, series in enumerate(chart.series):
        axes.plot(
            [at for at, _ in series.points],
            [value for _, value in series.points],
            color=LIGHT[pen_of(nth, series)],
            linestyle="--" if series.is_dashed else "-",
            marker="o" if series.has_points else "",
            markersize=4,
            linewidth=1.5,
            label=series.name,
        )
    for axis, scale, shown in ((axes.xaxis, x, "x"), (axes.yaxis, y, "y")):
        if scale.is_log:
            getattr(axes, f"set_{shown}scale")("log")
        getattr(axes, f"set_{shown}lim")(scale.low, scale.high)
        axis.set_ticks([tick.value for tick in scale.ticks()], [tick.label for tick in scale.ticks()])
        axis.set_ticks([], minor=True)
    for number, mark in enumerate(chart.marks):
        colour = LIGHT[Pen.BAD if mark.is_bad else Pen.NEUTRAL]
        axes.axvline(mark.x, color=colour, linestyle=":", linewidth=1.2)
        is_left = x.place(mark.x) > 0.7
        axes.annotate(
            mark.label,
            (mark.x, 0.96 - _ROW * (number % 8)),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if is_left else 4, 0),
            textcoords="offset points",
            ha="right" if is_left else "left",
            va="top",
            color=colour,
            fontsize=8,
        )
    axes.set_title(chart.title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel(chart.x.label)
    axes.set_ylabel(chart.y.label)
    axes.grid(color="#e3e7eb")
    axes.set_axisbelow(True)
    axes.legend(loc="best", fontsize=8, frameon=True)
    figure.savefig(path)
