"""Where Kafka can be had its own tools judge what we write; elsewhere one line says that they did not.

With CI=true nothing may be left out: what is missing is an error.
"""

import os

import pytest

from .kafka import Kafka, Missing, check, find

IS_CI = os.environ.get("CI") == "true"
_LEFT_OUT = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def kafka() -> Kafka:
    """Apache Kafka's own code."""
    try:
        return find()
    except Missing as missing:
        reason = f"Apache Kafka's own tools cannot be run: {missing}"
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
