"""The native shell under load with schedule hooks that dawdle by chance: schedules that a quiet machine does not show.

Run under ThreadSanitizer, too.
"""

import contextlib
import random
import threading
from collections.abc import Callable

import pytest

from fastquorum.kernels.codes import EVENT_FRAME, EVENT_SYNCED
from fastquorum.kernels.lane import FollowerSession, Send
from fastquorum.kernels.pure import batch_headers
from fastquorum.node.io.clock import now_us
from tests.lane.builders import questions, value_batch

from .conftest import Arm
from .native_load import HOOKS, Load
from .native_rig import Peer, Rig, is_readable

SEEDS = range(1, 7)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_keeps_its_promises_whatever_the_schedule(make_rig: Callable[..., Rig], arm: Arm, seed: int) -> None:
    rig = make_rig(segment_bytes=20_000, batch_bytes_max=4_096)
    load = Load(rig, seed)
    for hook in HOOKS:
        arm(hook, "yield", seed)
    load.run(turns=150)
    load.check()


class FollowedLeader:
    """Answers every Fetch with a batch or two; checks that what a Fetch acknowledges is synced."""

    def __init__(self, rig: Rig, peer: Peer, seed: int) -> None:
        self.fetches = 0
        self.failed: list[AssertionError] = []
        self._rig = rig
        self._peer = peer
        self._chance = random.Random(seed)

    def run(self) -> None:
        try:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # the end, with an answer of ours unread
                while (frame := self._peer.frame()) is not None:
                    self._answer(frame)
        except AssertionError as error:
            self.failed.append(error)

    def _answer(self, frame: bytes) -> None:
        (question,) = questions([Send(0, frame)])
        assert self._rig.shell.flushed_end >= question.offset, "acknowledged, and not synced"
        self.fetches += 1
        first = self._chance.randrange(0, 3)
        records = value_batch(question.offset, 5, first) if first else b""
        if first:
            records += value_batch(question.offset + first, 5, 2)
        self._peer.reply(question, records, high_watermark=question.offset)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_follower_acknowledges_what_is_synced_whatever_the_schedule(
    make_rig: Callable[..., Rig], arm: Arm, seed: int
) -> None:
    rig, chance = make_rig(node_id=2), random.Random(seed)
    peer = rig.connect()
    leader = FollowedLeader(rig, peer, seed)
    thread = threading.Thread(target=leader.run, daemon=True)
    thread.start()
    for hook in HOOKS:
        arm(hook, "yield", seed)
    rig.lend()
    for attempt in range(150):
        session = FollowerSession(
            epoch=5, leader_id=1, high_watermark=-1, attempt=attempt, fetch_bytes_max=1 << 20, fetch_wait_us_max=500_000
        )
        rig.shell.open_follower(session, now_us())
        rig.shell.attach_leader(peer.number, 18, now_us())
        until_fetches = leader.fetches + chance.randrange(0, 4)
        while leader.fetches < until_fetches and not leader.failed:
            is_readable(rig.shell, 0.001)
            serve(rig)
        if chance.random() < 0.5:
            rig.shell.freeze()
            rig.take_back()
            rig.lend()
            rig.shell.resume(now_us())
        else:
            rig.shell.close()
            rig.take_back()
            rig.lend()
        serve(rig)
    rig.shell.close()
    rig.shell.close_all(now_us())
    thread.join(60)
    assert not leader.failed, leader.failed
    assert leader.fetches > 100
    headers = batch_headers(rig.stored())
    assert [header.base_offset for header in headers[1:]] == [header.last_offset + 1 for header in headers[:-1]]
    assert len(headers) > 100


def serve(rig: Rig) -> None:
    """Answers that came while the lane was frozen are offered again; ends of syncs that nobody counted are told."""
    rig.collect()
    rig.shell.resume(now_us())
    for event in rig.events:
        if event.kind == EVENT_SYNCED:
            rig.shell.synced(event.token, event.error, now_us())
        elif event.kind == EVENT_FRAME:
            assert rig.shell.offer(event.connection, event.frame, now_us())
    rig.events.clear()
    rig.handed_up.clear()
    rig.deal_with_frames()
