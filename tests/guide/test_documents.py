"""README and the guide can be read: short enough, narrow enough, in order, and every link leads somewhere."""

import re
from pathlib import Path
from typing import Final

import pytest

from fastquorum.guide.chapters import CHAPTERS
from fastquorum.guide.site import anchor
from tests.conftest import ROOT
from tests.guide.documents import GUIDE, README, blocks, documents, prose

LINES_MAX: Final = 200
"""The most lines of README: what is longer belongs into a chapter."""
WIDTH_MAX: Final = 120
COMMANDS: Final = (
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/fastquorum demo\n",
    "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest\n",
)
"""What README begins with: whoever has the source can paste these."""
SUMMARY_MAX: Final = 100
LANGUAGES: Final = {"python", "sh", "text", "mermaid", "toml", "properties", "json", "yaml", "ini"}
"""What a block may be; `python` and `sh` run as they are, all others are shown only."""

_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)

every_document = pytest.mark.parametrize("document", documents(), ids=lambda path: path.stem)


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= LINES_MAX


def test_readme_begins_with_the_two_commands() -> None:
    assert tuple(block.text for block in blocks(README))[:2] == COMMANDS


def test_readme_leads_to_every_chapter_and_room() -> None:
    links = {link.partition("#")[0] for link in _LINK.findall(README.read_text())}
    chapters = {f"src/fastquorum/guide/{each.name}.md" for each in CHAPTERS}
    rooms = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("README.md")}
    assert (chapters | rooms | {"ext/README.md", "bench/README.md", "tests/README.md"}) - links == set()


@pytest.mark.parametrize("room", ["README.md", "bench", "ext", "src", "tests"])
def test_no_line_is_too_long_but_in_tables(room: str) -> None:
    found = [ROOT / room] if (ROOT / room).is_file() else sorted((ROOT / room).rglob("*.md"))
    lines = [(str(path.relative_to(ROOT)), line) for path in found for line in path.read_text().splitlines()]
    assert [each for each in lines if len(each[1]) > WIDTH_MAX and not each[1].startswith("|")] == []


def test_every_chapter_of_the_order_is_there_and_no_other() -> None:
    written = {path.stem for path in GUIDE.glob("*.md")}
    assert written == {each.name for each in CHAPTERS}


@pytest.mark.parametrize("document", sorted(GUIDE.glob("*.md")), ids=lambda path: path.stem)
def test_a_chapter_begins_with_its_title_and_has_no_other(document: Path) -> None:
    text = prose(document)
    titles = re.findall(r"^# .+$", text, re.MULTILINE)
    assert titles == [text.splitlines()[0]]


def test_a_summary_fits_into_a_line() -> None:
    assert [each.name for each in CHAPTERS if len(each.summary) > SUMMARY_MAX] == []


@every_document
def test_every_block_says_what_it_is(document: Path) -> None:
    known = LANGUAGES | {""} if document == README else LANGUAGES
    assert [block.name for block in blocks(document) if block.language not in known] == []


@every_document
def test_every_link_leads_somewhere(document: Path) -> None:
    text = prose(document)
    for link in _LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        path, _, fragment = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if document.parent == GUIDE:
            assert target.parent == GUIDE, f"{link}: the guide is installed without it"
        if fragment:
            headings = _HEADING.findall(prose(target))
            assert fragment in map(anchor, headings), link
