"""Reads a page as a browser would: what it says, what it would fetch, whether it is whole."""

import re
from html.parser import HTMLParser

VOID = ("meta", "link", "br")
FETCHING = ("src", "href", "xlink:href", "data", "srcset", "action", "poster")


class Looked(HTMLParser):
    """Everything that a page would fetch, and what it says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.words = ""
        self.titles: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attributes if name in FETCHING]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        for name, value in attributes:
            self.fetched += re.findall(r"url\(|@import", value or "") if name == "style" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.fetched += re.findall(r"url\(|@import", data)
        elif self.open and self.open[-1] == "title":
            self.titles.append(data)
        self.words += data


def looked_at(page: str) -> Looked:
    """AssertionError unless it is whole, fetches nothing and runs nothing."""
    looked = Looked(page)
    assert looked.open == []
    assert [each for each in looked.fetched if not re.fullmatch(r"#s\d+", each)] == []
    assert looked.handlers == []
    assert {"iframe", "img", "object", "embed", "link", "form", "base"} & set(looked.tags) == set()
    assert looked.tags.count("script") == 1
    return looked
