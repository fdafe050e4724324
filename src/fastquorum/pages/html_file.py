"""Draws a page as one file, and finds the report in it again.

The report stands in an element of its own that no browser runs: as JSON, or, where it is long, as gzip in base64, so
that a page of 10,000 events is still one that can be mailed. A policy in the page forbids to fetch anything, whatever
foreign text it shows.
"""

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastquorum.errors import UsageError
from fastquorum.pages import svg
from fastquorum.pages.chart import Chart, Strips
from fastquorum.pages.new_files import new_file
from fastquorum.pages.page import Facts, Lines, Page, Part, Prose, Section, Table
from fastquorum.pages.style import page_style
from fastquorum.pages.text import shown

_PLAIN_BYTES_MAX: Final = 200_000
_READABLE_BYTES_MAX: Final = 60_000
_ONE_LINE_MAX: Final = 26
"""Characters of a cell that is not broken: a time, an id."""
_NAVIGATED_MIN: Final = 9
"""So many sections need a list of them."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_REPORT: Final = re.compile(r'<script type="application/(json|gzip)" id="\w+">([^<]*)</script>\s*</body>')


def document(page: Page) -> str:
    """Return the page as HTML."""
    body = [
        f"<h1>{shown(page.heading)}</h1>",
        *(f"<p>{shown(each)}</p>" for each in page.subtitles),
        *(f'<p class="alarm">{shown(each)}</p>' for each in page.warnings),
        *_cards(page),
        *_navigation(page),
        *(line for nth, each in enumerate(page.sections) for line in _section(nth, each)),
        *_json(page),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{shown(_POLICY)}"><title>{shown(page.title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{page_style()}</style></head><body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def write_page(path: str, page: Page) -> None:
    """To a new file. FileExistsError if it is there."""
    text = document(page)
    with new_file(path) as file:
        file.write(text)


def report_of(text: str) -> dict[str, Any]:
    """Return the report inside a page. UsageError: there is none, or it is damaged."""
    found = _REPORT.search(text)
    if found is None:
        raise UsageError("this is not the page of a report", "it contains no report")
    try:
        packed = found[2] if found[1] == "json" else gzip.decompress(base64.b64decode(found[2], validate=True))
        report: dict[str, Any] = json.loads(packed)
    except (binascii.Error, gzip.BadGzipFile, zlib.error, EOFError, ValueError) as error:
        raise UsageError("the report inside the page is damaged", str(error)) from error
    return report


def _cards(page: Page) -> Iterator[str]:
    if not page.cards:
        return
    yield '<div class="cards">'
    for each in page.cards:
        pen = f" {each.pen}" if each.pen else ""
        yield f'<div class="card{pen}"><b>{shown(each.value)}</b><span>{shown(each.label)}</span></div>'
    yield "</div>"


def _navigation(page: Page) -> Iterator[str]:
    titles = [(nth, each.title) for nth, each in enumerate(page.sections) if each.title]
    if len(titles) >= _NAVIGATED_MIN:
        yield "<nav>" + "".join(f'<a href="#s{nth}">{shown(title)}</a>' for nth, title in titles) + "</nav>"


def _section(nth: int, section: Section) -> Iterator[str]:
    if section.title:
        yield f'<h2 id="s{nth}">{shown(section.title)}</h2>'
    left = svg.common_left(section.parts)
    for each in section.parts:
        yield from _part(each, left)


def _part(part: Part, left: float) -> Iterator[str]:
    """`left`: where charts over time begin."""
    match part:
        case Prose():
            yield f"<p>{shown(part.text)}</p>"
        case Lines():
            yield "<pre>" + "\n".join(map(shown, part.lines)) + "</pre>"
        case Table():
            yield from _table(part)
        case Facts():
            yield '<div class="wide"><table>'
            for name, value in part.facts.items():
                yield f"<tr>{_cell(name, is_left=True)}{_cell(value, is_left=True)}</tr>"
            yield "</table></div>"
        case _:
            its_left = left if isinstance(part, Chart | Strips) and part.x.scale == "time" else 0.0
            yield f'<div class="wide">{svg.draw(part, by_itself=False, left=its_left)}</div>'
            yield from _rest(svg.cut_off(part), svg.left_out(part), "more are not drawn")


def _table(table: Table) -> Iterator[str]:
    left = [' class="l"' if nth in table.left else "" for nth in range(len(table.header))]
    yield '<div class="wide"><table>'
    yield "<tr>" + "".join(f"<th{kind}>{shown(each)}</th>" for kind, each in zip(left, table.header, strict=True))
    yield "</tr>"
    for row in table.rows[: table.rows_max]:
        yield "<tr>" + "".join(_cell(cell, nth in table.left) for nth, cell in enumerate(row)) + "</tr>"
    yield "</table></div>"
    yield from _rest(max(len(table.rows) - table.rows_max, 0), table.left_out, "more rows are not shown", table.whole)


def _cell(text: str, is_left: bool) -> str:
    kind = "" if not is_left else ' class="l one"' if len(text) <= _ONE_LINE_MAX else ' class="l long"'
    return f"<td{kind}>{shown(text)}</td>"


def _rest(cut_off: int, left_out: int, what: str, whole: str = "") -> Iterator[str]:
    """Say how many rows the page leaves out, and how many the report never had."""
    if cut_off or left_out:
        where = whole if left_out else "the JSON"
        has = f"; {shown(where)} has them" if where else ""
        yield f'<p class="rest">{cut_off + left_out:,} {what} here{has}.</p>'


# --- the report -------------------------------------------------------------------------------------------------------


def _json(page: Page) -> Iterator[str]:
    """For people, if they can read so much; and for programs."""
    whole = _encoded(page.report)
    if page.readable is not None or len(whole) <= _READABLE_BYTES_MAX:
        lines = json.dumps(page.report if page.readable is None else page.readable, indent=1).split("\n")
        text = "\n".join(map(shown, lines))
        yield f"<details><summary>Everything, as JSON</summary><pre>{text}</pre></details>"
    else:
        yield (
            f'<p class="rest">The whole report, {len(whole) / 1e6:.1f} MB of JSON, is inside this file: '
            "<code>python -m fastquorum.pages PAGE</code> prints it.</p>"
        )
    kind = "json"
    if page.may_pack and len(whole) > _PLAIN_BYTES_MAX:
        kind, whole = "gzip", base64.b64encode(gzip.compress(whole.encode("ascii"), mtime=0)).decode("ascii")
    yield f'<script type="application/{kind}" id="{page.report_id}">{whole}</script>'


def _encoded(report: Mapping[str, Any]) -> str:
    """In ASCII. Nothing in it can end the element that it stands in."""
    return json.dumps(report).replace("<", "\\u003c")
