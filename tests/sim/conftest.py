"""Fixtures of the simulator's tests."""

from pathlib import Path

import pytest

REGRESSIONS = Path(__file__).with_name("regressions.txt")


@pytest.fixture(scope="session")
def regressions() -> list[int]:
    """Seeds that once found a bug: the first word of each line that is no comment."""
    lines = REGRESSIONS.read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line[:1].isdigit()]
