"""What the documents name in backticks is there: files, folders, and our own names in the READMEs of rooms."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import ROOT
from tests.guide.documents import prose

_BACKTICKED: Final = re.compile(r"`([^`]+)`")
_FILE: Final = re.compile(r"[\w.*-]+(/[\w.*-]+)+\.(py|pyx|pyi|pxd|h|cpp|md|txt|toml|json|js)")
_FOLDER: Final = re.compile(
    r"(api|bench|broker|cli|client|controller|ext|kernels|load|node|observe|pages|raft|sim|spark|src|storage|tests|wire)"
    r"(/[\w.]+)+/?"
)
_CAMEL: Final = re.compile(r"_?[A-Z]\w*[a-z]\w*[A-Z]\w*")
_CODE: Final = (".py", ".pyx", ".pyi", ".pxd", ".h", ".cpp")

ROOMS: Final = sorted([*ROOT.glob("src/**/README.md"), ROOT / "ext/README.md"])
DOCUMENTS: Final = sorted(
    [ROOT / "README.md", *(path for folder in ("src", "ext", "tests") for path in (ROOT / folder).rglob("*.md"))]
)


def mentioned(document: Path) -> Iterator[str]:
    return iter(_BACKTICKED.findall(prose(document)))


def is_there(path: str, document: Path) -> bool:
    """From the document, the room above it, the package or the top of the checkout."""
    places = (document.parent, document.parent.parent, ROOT / "src/fastquorum", ROOT / "src", ROOT)
    return any(found for place in places for end in ("", ".py") for found in place.glob(path.rstrip("/") + end))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_is_there(document: Path) -> None:
    paths = [each for each in mentioned(document) if _FILE.fullmatch(each) or _FOLDER.fullmatch(each)]
    assert [each for each in paths if not is_there(each, document)] == []


@pytest.fixture(scope="module")
def words() -> set[str]:
    files = (path for room in ("src", "ext", "tests", "bench") for path in (ROOT / room).rglob("*"))
    return {word for path in files if path.suffix in _CODE for word in re.findall(r"\w+", path.read_text())}


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_every_name_in_a_room_is_there(room: Path, words: set[str]) -> None:
    assert [each for each in mentioned(room) if _CAMEL.fullmatch(each) and each not in words] == []
