"""Fixtures of the simulator's tests."""

from pathlib import Path

import pytest

REGRESSIONS = Path(__file__).with_name("regressions.txt")
CLUSTER_REGRESSIONS = Path(__file__).with_name("cluster_regressions.txt")


@pytest.fixture(scope="session")
def regressions() -> list[int]:
    """Seeds that once found a bug."""
    return _seeds(REGRESSIONS)


@pytest.fixture(scope="session")
def cluster_regressions() -> list[int]:
    """The same, of clusters."""
    return _seeds(CLUSTER_REGRESSIONS)


def _seeds(file: Path) -> list[int]:
    """The first word of each line that begins with a number."""
    return [int(line.split()[0]) for line in file.read_text().splitlines() if line[:1].isdigit()]
