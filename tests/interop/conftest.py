"""Where Kafka can be had its own tools judge what we write; elsewhere one line says that they did not.

With CI=true nothing may be left out: what is missing is an error.
"""

import os
import shutil

import pytest

from .kafka import KAFKA, OLD_CLIENTS, Kafka, Missing, Release, check, find

IS_CI = os.environ.get("CI") == "true"
NO_KCAT = "no kcat; Debian, Ubuntu: apt install kcat"
_LEFT_OUT = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def kafka() -> Kafka:
    """Apache Kafka's own code."""
    return _found(KAFKA)


@pytest.fixture(scope="session")
def old_clients() -> Kafka:
    """An older kafka-clients, for what Kafka has dropped."""
    return _found(OLD_CLIENTS)


@pytest.fixture(scope="session")
def kcat() -> str:
    """Where kcat is: librdkafka as a command, of Debian's."""
    found = shutil.which("kcat")
    if found is None:
        pytest.fail(NO_KCAT, pytrace=False)
    return found


def _found(release: Release) -> Kafka:
    try:
        return find(release)
    except Missing as missing:
        reason = f"Apache Kafka's own code cannot be run: {missing}"
    if IS_CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests out, all at once, if they cannot run."""
    if IS_CI:
        return
    lines = config.stash.setdefault(_LEFT_OUT, [])
    try:
        check()
    except Missing as missing:
        mine = [item for item in items if item.get_closest_marker("interop")]
        lines += _leave_out(config, items, mine, f"interop tests (Apache Kafka's own tools) left out: {missing}")
    if shutil.which("kcat") is None:
        mine = [item for item in items if "kcat" in getattr(item, "fixturenames", ())]
        lines += _leave_out(config, items, mine, f"interop tests left out: {NO_KCAT}")


def _leave_out(config: pytest.Config, items: list[pytest.Item], mine: list[pytest.Item], why: str) -> list[str]:
    """The line that says so."""
    if not mine:
        return []
    items[:] = [item for item in items if item not in mine]
    config.hook.pytest_deselected(items=mine)
    return [f"{len(mine)} {why}"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_LEFT_OUT, []):
        terminalreporter.write_line(line, yellow=True)
