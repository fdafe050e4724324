"""Every test that tests/README.md names exists, and every demand has one or says that it has none."""

import ast
import functools
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"`([\w/.-]+\.py)::(\w+)`")
NAMED_OR_FILE = re.compile(r"`([\w/.-]+\.py)(?:::(\w+))?`")
FAULTS = "## Faults found by using it"


def demands() -> list[tuple[str, str]]:
    """Each row: what is demanded, what is said to show it."""
    rows = [(demand, shown) for demand, shown in _rows((TESTS / "README.md").read_text().partition(FAULTS)[0])]
    return [row for row in rows if row[0] != "it demands"]


def faults() -> list[tuple[str, str]]:
    """Each row of the table of faults: its letter and number, and the tests that show it."""
    rows = _rows((TESTS / "README.md").read_text().partition(FAULTS)[2])
    return [(fault, shown) for fault, _, shown, _ in rows if fault != "fault"]


def _rows(text: str) -> list[list[str]]:
    """The cells of tables, without the lines under their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if set(row[0]) != {"-"}]


@functools.cache
def names_in(name: str) -> frozenset[str]:
    """What pytest collects of a file as functions; nothing if there is no such file."""
    path = TESTS / name
    if not path.is_file() or not path.name.startswith("test_"):
        return frozenset()
    functions = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))


def test_there_are_demands_of_each_proposal() -> None:
    titles = [line for line in (TESTS / "README.md").read_text().splitlines() if line.startswith("## ")]
    assert len(titles) == 4
    assert len(demands()) > 50


@pytest.mark.parametrize(("demand", "shown"), demands(), ids=[demand[:60] for demand, _ in demands()])
def test_a_demand_names_tests_that_exist_or_says_not_yet(demand: str, shown: str) -> None:
    named = NAMED.findall(shown)
    assert shown.count("`") == 2 * len(named), f"{demand}: what is {shown}?"
    assert bool(named) != shown.startswith("not yet"), f"{demand}: a test, or not yet"
    missing = [f"{file}::{name}" for file, name in named if name not in names_in(file)]
    assert not missing, f"{demand}: no such test: {', '.join(missing)}"


def test_every_fault_names_tests_that_exist() -> None:
    assert len(faults()) > 50
    for fault, shown in faults():
        named = NAMED_OR_FILE.findall(shown)
        assert named, f"{fault}: no test"
        for file, name in named:
            assert (TESTS / file).is_file(), f"{fault}: no such file: {file}"
            assert not name or name in names_in(file), f"{fault}: no such test: {file}::{name}"
