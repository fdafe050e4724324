"""`bench budget` runs, small: what it counts is there for every API, window and node, and adds up. Nothing is timed."""

import contextlib
import io
import json
from typing import Any

import pytest

from bench.__main__ import main
from bench.budget import IN_FLIGHT
from tests.privileges import missing, strace_missing

ROLES = ["leader", "follower 1", "follower 2"]


@pytest.fixture(scope="module")
def budget() -> list[dict[str, Any]]:
    """One measurement per API and window."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["budget", "--quick", "--format", "json"]) == 0
    report = json.loads(printed.getvalue())
    assert report["quick"] is True
    assert {"date", "commit", "cpu", "kernel"} <= report["facts"].keys()
    found: list[dict[str, Any]] = report["budget"]
    return found


@pytest.mark.long
@pytest.mark.slow
def test_a_commits_budget_has_every_nodes_processor_time_and_switches(budget: list[dict[str, Any]]) -> None:
    measured = [(each["api"], each["in_flight"]) for each in budget]
    assert measured == [(api, in_flight) for api in ("asyncio", "blocking") for in_flight in IN_FLIGHT]
    for each in budget:
        assert list(each["nodes"]) == ROLES
        for node in each["nodes"].values():
            assert node["cpu_us"].keys() == node["switches"].keys()
            assert len(node["switches"]) > 1, "by thread"
            assert sum(node["switches"].values()) > 0
            assert sum(node["cpu_us"].values()) > 0


@pytest.mark.long
@pytest.mark.slow
def test_a_commits_budget_counts_the_calls_that_an_interpreter_makes(budget: list[dict[str, Any]]) -> None:
    for each in budget:
        assert each["calls"].keys() == {"python", "c"}
        # An append is called, awaited and noted, at the least; what is more than this belongs to no commit.
        assert 1 <= each["calls"]["python"] < 100
        assert 1 <= each["calls"]["c"] < 100


@pytest.mark.long
@pytest.mark.slow
def test_a_commits_budget_counts_system_calls_and_no_more_than_a_sync_a_commit(budget: list[dict[str, Any]]) -> None:
    if reason := strace_missing():
        missing(reason)
    for each in budget:
        for role, node in each["nodes"].items():
            calls = node["system_calls"]
            assert calls.keys() >= {"pwrite64", "fdatasync", "sendmsg"}, (each["api"], each["in_flight"], role)
            # The durable mark and the like are synced beside the log now and then.
            assert 0 < calls["fdatasync"] <= 1.2
            if each["in_flight"] > 1:
                assert calls["fdatasync"] < 0.5, "commits that wait together share a sync"
