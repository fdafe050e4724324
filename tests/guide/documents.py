"""The documents that users read, and the fenced blocks in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.conftest import ROOT

README: Final = ROOT / "README.md"
GUIDE: Final = ROOT / "src" / "fastquorum" / "guide"

_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block."""

    document: str
    """Its file's name without the suffix."""
    language: str
    text: str
    line: int
    """The number of its first line in the document, from 1."""

    @property
    def name(self) -> str:
        """What a test of it is called."""
        return f"{self.document}-{self.line}"


def documents() -> list[Path]:
    """Return README and all chapters that are there."""
    return [README, *sorted(GUIDE.glob("*.md"))]


def prose(document: Path) -> str:
    """Return its text without fenced blocks."""
    return _FENCED.sub("", document.read_text())


def block_of(chapter: str, beginning: str) -> str:
    """Return the one block of a chapter that begins so."""
    (found,) = (each.text for each in blocks(GUIDE / f"{chapter}.md") if each.text.startswith(beginning))
    return found


def blocks(document: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document, in order."""
    text = document.read_text()
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start(2)) + 1
        yield Block(document.stem, found[1], found[2], line)
