"""Colours and sizes. A page has them as variables, by light or dark; a picture by itself has the light ones."""

import re
from typing import Final

from fastquorum.pages.chart import SERIES_PENS, Pen, Series

FONT: Final = "system-ui,'Segoe UI',Helvetica,Arial,sans-serif"
LIGHT: Final[dict[str, str]] = {
    Pen.FIRST: "#1f6feb",
    Pen.SECOND: "#d9480f",
    Pen.THIRD: "#2b8a3e",
    Pen.FOURTH: "#9c36b5",
    Pen.FIFTH: "#e8a400",
    Pen.SIXTH: "#0b7285",
    Pen.GOOD: "#2f9e44",
    Pen.WARN: "#e8a400",
    Pen.BAD: "#c92a2a",
    Pen.MUTED: "#ced4da",
    Pen.NEUTRAL: "#495057",
}
_LIGHT: Final[dict[str, str]] = {
    **LIGHT,
    "paper": "#fff",
    "ink": "#212529",
    "soft": "#6c757d",
    "label": "#343a40",
    "grid": "#e3e7eb",
    "line": "#dee2e6",
    "inset": "#f8f9fa",
    "alarm": "#fff3bf",
}
_DARK: Final[dict[str, str]] = {
    Pen.FIRST: "#58a6ff",
    Pen.SECOND: "#ff8a4c",
    Pen.THIRD: "#56d364",
    Pen.FOURTH: "#d28cf0",
    Pen.FIFTH: "#f2c14e",
    Pen.SIXTH: "#3fc1d0",
    Pen.GOOD: "#3fb950",
    Pen.WARN: "#f2c14e",
    Pen.BAD: "#ff6b6b",
    Pen.MUTED: "#484f58",
    Pen.NEUTRAL: "#adb5bd",
    "paper": "#14171a",
    "ink": "#e6e9ec",
    "soft": "#9aa3ab",
    "label": "#c9d1d9",
    "grid": "#2c3238",
    "line": "#353c43",
    "inset": "#1d2125",
    "alarm": "#4a3a00",
}
_PENS: Final = "".join(f"svg .{pen}{{color:var(--{pen})}}" for pen in Pen)
_CHARTS: Final = (
    f"svg text{{font:12px {FONT};fill:var(--label)}}svg .title{{font-size:15px;font-weight:600}}"
    "svg .end{text-anchor:end}svg .mid{text-anchor:middle}svg .note{fill:var(--soft)}"
    "svg .paper{fill:var(--paper)}svg .grid{stroke:var(--grid)}"
    f"{_PENS}"
    "svg .pen{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}svg .axis{stroke-width:1}"
    "svg .ink{fill:currentColor}svg .dashed{stroke-dasharray:5 4}svg .dotted{stroke-dasharray:2 3;stroke-width:1.4}"
    "svg .halo{stroke:var(--paper);stroke-width:3px}svg .said{fill:currentColor}"
    "svg .hit{fill:transparent}svg .hit:hover{fill:currentColor;fill-opacity:.12}"
)
_PAGE: Final = f"""
body{{font:15px/1.5 {FONT};color:var(--ink);background:var(--paper);max-width:940px;margin:2rem auto;padding:0 1rem}}
h1{{font-size:1.5rem;margin:0}}h2{{font-size:1.1rem;margin:2rem 0 .5rem}}p{{margin:.3rem 0;overflow-wrap:anywhere}}
nav{{columns:2;font-size:.9rem;margin:1rem 0}}nav a{{display:block;color:var(--s0)}}
.cards{{display:flex;flex-wrap:wrap;gap:.7rem;margin:1.2rem 0}}
.card{{border:1px solid var(--line);border-radius:8px;padding:.5rem .9rem;min-width:6.5rem}}
.card b{{display:block;font-size:1.25rem}}.card span{{color:var(--soft);font-size:.85rem}}
.card.good b{{color:var(--good)}}.card.warn{{border-color:var(--warn)}}
.card.bad{{border-color:var(--bad)}}.card.bad b{{color:var(--bad)}}
.alarm{{background:var(--alarm);border-left:4px solid var(--warn);padding:.5rem .8rem;margin:.8rem 0}}
.wide{{overflow-x:auto;margin:.8rem 0}}
table{{border-collapse:collapse;font-size:.9rem}}td,th{{padding:.2rem .9rem .2rem 0;text-align:right;vertical-align:top;
border-bottom:1px solid var(--line)}}th{{vertical-align:bottom}}td{{white-space:nowrap}}
.l{{text-align:left;overflow-wrap:anywhere}}td.l{{min-width:5.4rem;white-space:normal}}td.one{{white-space:nowrap}}td.long{{min-width:14rem}}
.rest{{color:var(--soft);font-size:.9rem}}
svg{{max-width:100%;min-width:640px;height:auto;display:block}}
@media screen and (max-width:42rem){{.wide{{padding-right:1.6rem;
mask-image:linear-gradient(to left,transparent,#000 1.6rem)}}}}
pre{{overflow:auto;max-height:30rem;background:var(--inset);padding:.8rem;font-size:.8rem}}
@media print{{body{{margin:0;max-width:none}}svg{{min-width:0}}.wide,.cards,tr{{break-inside:avoid}}
.wide{{overflow:visible}}h2{{break-after:avoid}}details,nav{{display:none}}*{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}}}
"""


def page_style() -> str:
    """Return the style of a page and its charts. A printed page is light."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{color-scheme:dark;{_variables(_DARK)}}}}}"
    return f":root{{{_variables(_LIGHT)}}}{dark}{_PAGE}{_CHARTS}"


def picture_style() -> str:
    """Return the style of a chart in its own file. It has no variables, which some SVG viewers do not know."""
    return re.sub(r"var\(--(\w+)\)", lambda found: _LIGHT[found[1]], _CHARTS)


def pen_of(nth: int, series: Series) -> Pen:
    """Return the pen of a series: the same one in every drawing."""
    if series.is_dashed:
        return Pen.NEUTRAL
    return series.pen or SERIES_PENS[nth % len(SERIES_PENS)]


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())
