"""What a node in the foreground says of others, whatever it said of them before."""

import json
import logging

import pytest

from fastquorum.cli.node.log import NodeLog
from fastquorum.node.io.clock import now_us
from fastquorum.node.ports import Unreachable
from fastquorum.types import Endpoint, NodeId


def _unreachable(node_id: int) -> Unreachable:
    since_us = now_us() - 5_000_000
    return Unreachable(NodeId(node_id), Endpoint("CONTROLLER", f"h{node_id}", 9093), "refused", since_us, since_us)


def test_who_cannot_be_reached_is_named_with_all_others_of_that_moment(capsys: pytest.CaptureFixture[str]) -> None:
    log = NodeLog("text", verbose=False)
    second, third = _unreachable(2), _unreachable(3)
    log.reach(second, False, [second])
    log.reach(third, False, [second, third])
    log.reach(third, False, [third])  # nobody tried node 2 any more
    first, both, alone = capsys.readouterr().err.splitlines()
    assert "node 2 at h2:9093" in first
    assert "node 3" not in first
    assert "node 2 at h2:9093" in both
    assert "node 3 at h3:9093" in both
    assert "node 3 at h3:9093" in alone
    assert "node 2" not in alone


def test_who_was_back_before_it_could_be_said_is_named_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    NodeLog("text", verbose=False).reach(_unreachable(2), False, [])
    assert "node 2 at h2:9093" in capsys.readouterr().err


def test_what_is_logged_elsewhere_has_the_form_of_the_nodes_log(capsys: pytest.CaptureFixture[str]) -> None:
    record = logging.makeLogRecord(
        {"levelname": "WARNING", "msg": "no %s", "args": ("room",), "event": "repeated_fault"}
    )
    NodeLog("text", verbose=False).logged(record)
    NodeLog("json", verbose=False).logged(record)
    words, line = capsys.readouterr().err.splitlines()
    assert words.partition(" ")[2] == "fastquorum: no room"
    entry = json.loads(line)
    assert (entry["level"], entry["event"], entry["message"]) == ("warning", "repeated_fault", "no room")
