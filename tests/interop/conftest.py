"""Where Kafka can be had its own tools judge what we write; elsewhere one line says that they did not.

With CI=true nothing may be left out: what is missing is an error.
"""

import os
import shutil

import pytest

from .kafka import KAFKA, OLD_CLIENTS, Kafka, Missing, Release, check, find

IS_CI = os.environ.get("CI") == "true"
_LEFT_OUT = pytest.StashKey[str]()


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
        reason = "no kcat; Debian, Ubuntu: apt install kcat"
        if IS_CI:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
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
    try:
        check()
        return
    except Missing as missing:
        reason = str(missing)
    mine = [item for item in items if item.get_closest_marker("interop")]
    if mine and not IS_CI:
        items[:] = [item for item in items if item not in mine]
        config.hook.pytest_deselected(items=mine)
        config.stash[_LEFT_OUT] = f"{len(mine)} interop tests (Apache Kafka's own tools) left out: {reason}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash.get(_LEFT_OUT, None)
    if left_out is not None:
        terminalreporter.write_line(left_out, yellow=True)
