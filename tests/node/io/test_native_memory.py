"""There is no memory for what a thread, native or not, has to keep: the replica ends, and the process does not."""

import errno
import socket
from contextlib import suppress

import pytest

from fastquorum.kernels.codes import AppendVerdict
from fastquorum.node.io.clock import now_us
from tests.lane.builders import value_batch

from .conftest import Arm
from .native_rig import Rig, native, until

HANDSHAKE = b"\x00\x12\x00\x00 what Python is told of"


def has_ended_for_want_of_memory(rig: Rig) -> bool:
    """And takes no appends any more."""
    until(lambda: rig.shell.was_cut_off, "the replica ends")
    refused = rig.shell.append_slot(b"more", native.Slot()) == AppendVerdict.FAILED
    return refused and rig.shell.failure()[:2] == ("memory", errno.ENOMEM)


@pytest.mark.parametrize("point", ["memory-for-record", "memory-for-waiter", "memory-for-event", "memory-for-sync"])
def test_a_leader_without_memory_ends_whichever_thread_lacks_it(rig: Rig, arm: Arm, point: str) -> None:
    rig.lead()
    peer, stranger = rig.voter(2), rig.connect()
    arm(point, "eio", only_hit=1)
    with suppress(MemoryError):  # it is the caller's thread
        rig.shell.append_slot(b"value", native.Slot())
    peer.fetch(2)  # it has the sockets' thread tell whoever waits
    stranger.send(HANDSHAKE)
    assert has_ended_for_want_of_memory(rig)


@pytest.mark.parametrize("point", ["memory-for-record", "memory-for-event", "memory-for-sync"])
def test_a_follower_without_memory_ends(rig: Rig, arm: Arm, point: str) -> None:
    leader = rig.connect(1)
    rig.follow(leader)
    question = leader.question()
    arm(point, "eio", only_hit=1)
    leader.reply(question, value_batch(1, 5))
    rig.connect().send(HANDSHAKE)
    assert has_ended_for_want_of_memory(rig)


def test_waiters_of_one_that_ended_for_want_of_memory_are_told_once(rig: Rig, arm: Arm) -> None:
    rig.shell.hold_syncs(True)
    rig.lead([1])
    mailbox = native.Mailbox()
    waiting = [object() for _ in range(3)]
    for each in waiting:
        assert rig.shell.append_mail(b"value", mailbox, each) > 0
    arm("memory-for-waiter", "eio", only_hit=2)
    rig.shell.hold_syncs(False)
    assert has_ended_for_want_of_memory(rig)
    rig.shell.fail_pending(-1001)
    letters = mailbox.collect()
    assert [each for each, _ in letters] == waiting
    assert [result for _, result in letters] == [1, -1001, -1001]


def test_a_connection_for_which_there_is_no_memory_is_refused_alone(rig: Rig, arm: Arm) -> None:
    rig.lead([1])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        arm("memory-for-connection", "eio", only_hit=1)
        assert rig.shell.add(7, ours.fileno(), True, now_us()) == errno.ENOMEM
        assert not rig.shell.knows(7)
    rig.append()
    until(lambda: rig.shell.high_watermark == 2, "it goes on")
