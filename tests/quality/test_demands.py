"""Every test that tests/README.md names for a demand exists, and every demand has one or says that it has none."""

import ast
import functools
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"`([\w/.-]+\.py)::(\w+)`")


def demands() -> list[tuple[str, str]]:
    """Each row: what is demanded, what is said to show it."""
    lines = (TESTS / "README.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rows = [(demand, shown) for demand, shown in cells]
    return [row for row in rows if row[0] != "it demands" and set(row[0]) != {"-"}]


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
    assert len(titles) == 3
    assert len(demands()) > 50


@pytest.mark.parametrize(("demand", "shown"), demands(), ids=[demand[:60] for demand, _ in demands()])
def test_a_demand_names_tests_that_exist_or_says_not_yet(demand: str, shown: str) -> None:
    named = NAMED.findall(shown)
    assert shown.count("`") == 2 * len(named), f"{demand}: what is {shown}?"
    assert bool(named) != shown.startswith("not yet"), f"{demand}: a test, or not yet"
    missing = [f"{file}::{name}" for file, name in named if name not in names_in(file)]
    assert not missing, f"{demand}: no such test: {', '.join(missing)}"
