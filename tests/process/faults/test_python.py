"""Programs that compute beside their node: Python that keeps the interpreter busy, C that does not let go of it.

Elections are raft's, in a Python thread; contact and commits are the native lane's, which needs no interpreter.
"""

import os
from pathlib import Path

import pytest

from fastquorum.node.causes import WORDS
from fastquorum.raft.transitions import Cause
from tests.process.cluster import cluster
from tests.process.faults.settings import PATIENT
from tests.process.judged import under_load
from tests.process.processes import WAIT_S

pytestmark = pytest.mark.long

SHORT: dict[str, object] = {
    **PATIENT,
    "controller.quorum.fetch.timeout.ms": 700,
    # A segment's end is the replica's thread's business: none may come while that cannot run.
    "metadata.log.segment.bytes": 64 << 20,
}
HOLD_S = 2.0
"""Longer than the fetch timeout, and than the time after which a leader that hears nobody resigns."""


def test_commits_go_on_beside_a_program_that_computes_in_python(tmp_path: Path) -> None:
    with cluster(tmp_path, settings=PATIENT) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        process = quorum.nodes[leader]
        with under_load(quorum, beside=b"beside") as (load, history):
            assert history.wait_acked(20, WAIT_S)
            process.tell("compute 1.5")
            process.wait_event("computing")
            assert history.wait_acked(100, WAIT_S)  # by its client APIs, that is by Python
            load.pause()
            for number in range(20):  # and by the program itself
                process.append(f"beside {number}", WAIT_S)
                assert "offset" in process.appended(f"beside {number}")
            process.wait_event("computed")
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)


@pytest.mark.parametrize("owner", ["follower", "everybody"])
def test_a_c_call_that_holds_the_interpreter_causes_no_election(tmp_path: Path, owner: str) -> None:
    with cluster(tmp_path, settings=SHORT) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        followers = [node_id for node_id in quorum.ids if node_id != leader]
        held = followers[:1] if owner == "follower" else list(quorum.ids)
        with under_load(quorum) as (_, history):
            assert history.wait_acked(20, WAIT_S)
            for node_id in held:
                quorum.nodes[node_id].tell(f"hold {HOLD_S}")
            for node_id in held:
                quorum.nodes[node_id].wait_event("held")
            assert history.wait_acked(20, WAIT_S)
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
        assert quorum.ballots.epochs == [epoch]


def test_a_leader_whose_interpreter_was_held_for_too_long_says_so_and_follows(tmp_path: Path) -> None:
    with cluster(tmp_path, settings={**SHORT, "disk.stall.max.ms": 400}) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        held = quorum.nodes[leader]
        other = next(quorum.nodes[node_id] for node_id in quorum.ids if node_id != leader)
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        with under_load(quorum) as (_, history):
            assert history.wait_acked(20, WAIT_S)
            before = len(held.events)
            held.tell(f"hold-until {fifo}")
            held.wait_event("holding")
            after = other.wait(lambda each: each["event"] == "ready" and each["epoch"] > epoch)
            assert after["leader"] != leader
            fifo.write_bytes(b".")
            held.wait_event("held")
            lost = held.wait(lambda each: each["event"] == "leadership" and not each["is_self"], after=before)
            assert lost["reason"].startswith(WORDS[Cause.INTERPRETER_HELD])
            held.wait_role("follower")
            assert history.wait_acked(20, WAIT_S)
