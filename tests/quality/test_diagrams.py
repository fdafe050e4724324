"""The pictures in the READMEs are what the code gives, and can be read."""

from pathlib import Path

import pytest

from tests.quality.diagrams import ARROWS_MAX, imports_in, readmes, redrawn, reduced, shown
from tests.quality.imports import PACKAGE, ROOT

ROOMS = ("node", "raft", "controller", "spark", "sim")
DRAWN = ("ext", "src/fastquorum", *(f"src/fastquorum/{name}" for name in ROOMS))
"""Rooms with a README of their own."""


@pytest.mark.parametrize("readme", readmes(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_pictures_are_what_the_code_gives(readme: Path) -> None:
    text = readme.read_text()
    assert redrawn(text) == text, "run: python -m tests.quality.diagrams"


@pytest.mark.parametrize("room", DRAWN)
def test_a_room_with_a_readme_has_its_picture_there(room: str) -> None:
    assert f"<!-- picture: {room} -->" in (ROOT / room / "README.md").read_text()


@pytest.mark.parametrize("folder", DRAWN)
def test_a_picture_can_be_taken_in(folder: str) -> None:
    assert 3 < sum(map(len, shown(imports_in(ROOT / folder)).values())) <= ARROWS_MAX


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    assert reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_the_pictures_know_what_the_layout_knows() -> None:
    graph = imports_in(PACKAGE)
    assert "kernels" in graph["wire"]
    assert "wire" not in graph["kernels"]
    assert "_lane" in imports_in(ROOT / "ext")["_produce"]
