"""Closing: how long it waits, and for whom."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.errors import UsageError
from fastquorum.loopback import free_ports
from fastquorum.node.io.running import GRACE_S
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, trio, voters
from tests.cli.conftest import wait_until

FOLLOWER = """
import sys
from fastquorum import sync
node = sync.open(sys.argv[1], node_id=int(sys.argv[2]), voters=sys.argv[3], cluster_id="AAAAAAAAAAAAAAAAAAAAAQ",
                 election_timeout_us=5_000_000, fetch_timeout_us=30_000_000)
print("open", flush=True)
sys.stdin.read()
"""


def grace_of(quorum: sync.Quorum | fq.Quorum) -> list[float]:
    """How long its node is given, as it is asked to."""
    asked: list[float] = []
    stop = quorum._node.stop

    def noted(grace_s: float) -> None:
        asked.append(grace_s)
        stop(grace_s)

    quorum._node.stop = noted  # type: ignore[method-assign]
    return asked


def waited_for_its_deadline(quorum: sync.Quorum) -> bool:
    """A closed node: was it over only when raft gives up to wait for another leader?"""
    core = quorum._node._replica.raft._core
    assert core.is_shut_down
    return core.now_us >= core.shutdown_deadline_us


@pytest.mark.parametrize("stands", [False, True])
def test_who_never_led_waits_for_nobody(tmp_path: Path, stands: bool) -> None:
    names = voters(free_ports(3))
    quorum = sync.open(tmp_path, **QUICK, node_id=1, voters=names, cluster_id=CLUSTER_ID)
    wait_until(lambda: not stands or quorum.role == "prospective", WAIT_S)
    quorum.close()
    assert not waited_for_its_deadline(quorum)


def test_the_last_leader_does_not_wait_for_those_that_are_gone(tmp_path: Path) -> None:
    with trio(tmp_path, fetch_timeout_us=30_000_000) as nodes:
        leader = nodes.leader
        for follower in nodes.followers:
            nodes.crash(follower.node_id)
        assert leader.is_leader
        leader.close()
        assert not waited_for_its_deadline(leader)


def test_closing_waits_for_those_that_do_not_answer_no_longer_than_asked(tmp_path: Path) -> None:
    names = voters(free_ports(2))
    options = {**QUICK, "node_id": 1, "voters": names, "cluster_id": CLUSTER_ID, "fetch_timeout_us": 30_000_000}
    other = subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, str(tmp_path / "2"), "2", names], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        quorum = sync.open(tmp_path / "1", **options)  # type: ignore[arg-type]
        wait_until(lambda: quorum.is_leader, WAIT_S)  # the other one waits longer before it stands
        os.kill(other.pid, signal.SIGSTOP)
        quorum.close(timeout=0)
        assert not quorum._node._replica.raft._core.is_shut_down, "it was halted, and waited for nobody"
    finally:
        other.kill()
        other.communicate()


def test_both_twins_hand_the_time_on(tmp_path: Path) -> None:
    quorum = sync.open(tmp_path / "sync", **QUICK, node_id=1)
    asked = grace_of(quorum)
    for timeout in (-1, float("nan"), "3"):
        with pytest.raises(UsageError, match="timeout"):
            quorum.close(timeout=timeout)
    quorum.close(timeout=0.5)
    quorum.close()
    assert asked == [0.5, GRACE_S]

    async def main() -> None:
        quorum = await fq.open(tmp_path / "asyncio", **QUICK, node_id=1)
        asked = grace_of(quorum)
        with pytest.raises(UsageError, match="timeout"):
            await quorum.close(timeout=-1)
        await quorum.close(timeout=0)
        await quorum.close()
        assert asked == [0, GRACE_S]

    asyncio.run(main())
