"""The whole guide as one HTML page: a list of chapters, a search box over all of them, light and dark.

The page fetches nothing: its style and its script stand in it, and a policy lets that one script run and no other.
Without the script everything can still be read; only the search box is not there.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from fastquorum.guide.chapters import Chapter
from fastquorum.pages.style import page_style

PAGE: Final = "index.html"
"""The one file of the site."""
_CHAPTER_LINK: Final = re.compile(r"([\w-]+)\.md(?:#([\w-]+))?")


def site(chapters: Iterable[Chapter]) -> str:
    """Return the page."""
    chapters = tuple(chapters)
    script = _resource("site.js")
    style = page_style() + _resource("site.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = "".join(f'<a href="#{each.name}">{html.escape(each.title)}</a>' for each in chapters)
    body = "\n".join(f'<article id="{each.name}">\n{"".join(_article(each))}</article>' for each in chapters)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
        '<meta name="viewport" content="width=device-width"><title>fastquorum: the guide</title>'
        f"<style>{style}</style></head><body>\n"
        '<nav><p class="name">fastquorum</p>'
        '<input id="search" type="search" placeholder="Search (press /)" aria-label="Search" autocomplete="off" hidden>'
        f'<div id="found" aria-live="polite" hidden></div><div id="chapters">{links}</div></nav>\n'
        f"<main>\n{body}\n</main>\n<script>{script}</script>\n</body></html>\n"
    )


def _resource(name: str) -> str:
    return (files("fastquorum.guide") / name).read_text(encoding="utf-8")


def _article(chapter: Chapter) -> Iterator[str]:
    """Yield the chapter as HTML: headings have ids, tables may be scrolled, links lead within the page."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(chapter.text)
    _set_ids(chapter.name, tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", _target(str(child.attrGet("href"))))
    environment: dict[str, Any] = {}
    rendered = parser.renderer.render(tokens, parser.options, environment)
    yield rendered.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def _set_ids(chapter: str, tokens: list[Token]) -> None:
    """Give headings the ids that GitHub gives them, behind the chapter's name; equal ones get a number, too."""
    counts: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type != "heading_open" or token.tag == "h1":
            continue
        name = anchor(inline.content)
        nth = counts[name] = counts.get(name, -1) + 1
        token.attrSet("id", f"{chapter}-{name}" + (f"-{nth}" if nth else ""))


def anchor(heading: str) -> str:
    """Return the fragment that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _target(link: str) -> str:
    """Return where a chapter's link leads on the page; one that leads out of the guide stays as it is."""
    found = _CHAPTER_LINK.fullmatch(link)
    if found is None:
        return link
    return f"#{found[1]}-{found[2]}" if found[2] else f"#{found[1]}"
