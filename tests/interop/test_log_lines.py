"""Log lines and their classes."""

from pathlib import Path

import pytest

from . import log_lines
from .mixed import Member
from .mixed_scenarios import SCENARIOS

LOG = """\
INFO kafka.server.ControllerServer [ControllerServer id=2] Awaiting socket connections on 127.0.0.1:4711.
WARN org.apache.kafka.clients.NetworkClient [RaftManager id=2] Connection to node -1 (/127.0.0.1:15) could not be made.
WARN org.apache.kafka.clients.NetworkClient [RaftManager id=3] Connection to node 11 (/127.0.0.1:9) could not be made.
ERROR org.apache.kafka.raft.KafkaNetworkChannel Request Out(data=FetchRequestData(id='x (y)')) of /tmp/b failed
org.apache.kafka.common.errors.UnsupportedVersionException: The node does not support 3
\tat java.base/java.lang.Thread.run(Thread.java:840)
WARN kafka.Other of MzGshnxlQ8CWUREFNVsnEw: failed
WARN org.apache.kafka.clients.NetworkClient [RaftManager id=3] Connection to node 12 (/127.0.0.1:9) could not be made.
"""
CLASSES = {
    "WARN NetworkClient: Connection to node N could not be made.",
    "ERROR KafkaNetworkChannel: Request Out of PATH failed | Fetch | UnsupportedVersionException",
    "WARN Other: of ID: failed",
}


def member(path: Path, printed: str, *, is_ours: bool) -> Member:
    made = Member(1, 1, path, [], path.with_suffix(".properties"), is_ours=is_ours)
    made.output.write_text(printed)
    return made


def test_what_differs_from_run_to_run_is_left_out() -> None:
    assert log_lines.classes(LOG) == CLASSES


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_the_reference_has_is_heard_of_and_nothing_else_is(tmp_path: Path, scenario: str) -> None:
    kafkas = member(tmp_path / "kafka", LOG, is_ours=False)
    assert log_lines.unheard_of([kafkas], scenario) == sorted(CLASSES)
    kafkas.output.write_text("WARN a.NetworkClient Attempting to close NetworkClient that has already been closed.\n")
    assert log_lines.unheard_of([kafkas], scenario) == []


def test_our_nodes_say_who_leads_and_nothing_else(tmp_path: Path) -> None:
    ours = member(
        tmp_path / "ours", "fastquorum: node 2 leads epoch 3\nfastquorum: nobody leads epoch 4\n", is_ours=True
    )
    assert log_lines.unheard_of([ours], "snapshots") == []
    ours.output.write_text("fastquorum: node 2 leads epoch 3\nTraceback (most recent call last):\n")
    assert log_lines.unheard_of([ours], "snapshots") == ["Traceback (most recent call last):"]
