"""Whatever comes, in whatever order, a replica keeps its promises: random events against `promises.Promises`."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.wire import Message

from .promises import Promises
from .scenario import Replica, replica
from .wire_messages import (
    begin_request,
    begin_response,
    end_request,
    end_response,
    fetch_request,
    fetch_response,
    key,
    vote_request,
    vote_response,
)

PEERS = st.sampled_from((2, 3))
AHEAD = st.integers(-1, 2)
"""Epochs relative to the replica's own."""


def near(node: Replica, ahead: int) -> int:
    return max(node.epoch + ahead, 0)


class Life:
    """One replica that is thrown events at; its promises are checked after each."""

    def __init__(self, data: st.DataObject, voters: tuple[int, ...]) -> None:
        self.draw = data.draw
        self.replica = replica(1).voters(*voters).seeded(self.draw(st.integers(0, 1000))).log("")
        self.promises = Promises(key(1))
        self.replica.starts()
        self.check(self.replica.effects)

    def check(self, ordered: list[fx.Effect], high_watermark: int = -1) -> None:
        self.promises.watch(self.replica, ordered, high_watermark)
        if any(isinstance(each, fx.Halt | fx.ShutdownComplete) for each in ordered):
            self.restart()

    def step(self, event: ev.Event) -> None:
        known = max(self.replica.raft.high_watermark, self.replica.lane.high_watermark)
        self.check(self.replica.step(event), known)

    def restart(self) -> None:
        self.promises.restarted()
        if self.draw(st.booleans()):
            del self.replica.fake_log.epochs[-2:]  # what was not flushed
        self.replica.restarts()
        self.check(self.replica.effects)

    # --- events -------------------------------------------------------------------------------------------------------

    def time_passes(self) -> None:
        if self.replica.raft.deadline_us >= 0:
            late_us = self.draw(st.sampled_from((0, 0, 0, 5_000_000)))
            self.replica.now_us = max(self.replica.raft.deadline_us, self.replica.now_us) + late_us
            renewed = self.replica.renewed()
            before = len(self.replica.effects)
            self.step(ev.TimerFired())
            if renewed is not None:  # what was not asked would have said nothing else
                assert self.replica.effects[before:] == []
                assert renewed.deadline_us == self.replica.raft.deadline_us

    def somebody_asks(self) -> None:
        by, epoch = self.draw(PEERS), near(self.replica, self.draw(AHEAD))
        candidates = self.draw(st.sampled_from(((), (1,), (3, 1))))
        log = (max(min(epoch - 1, self.replica.fake_log.last_epoch), 0), self.draw(st.integers(0, 12)))
        message: Message = self.draw(
            st.sampled_from(
                (
                    vote_request(epoch, by=by, log=log, pre_vote=self.draw(st.booleans())),
                    vote_request(epoch, by=by, log=log),
                    begin_request(epoch, by=by, to=key(1)),
                    end_request(epoch, by=by, candidates=candidates),
                    fetch_request(epoch, by=by, at=log[1], last_epoch=log[0]),
                )
            )
        )
        self.promises.request = message
        self.step(ev.RequestReceived(1, type(message).__wire__.versions.last, message, 7, 70))

    def somebody_answers(self) -> None:
        peers = list(self.replica._last_requests)
        if not peers:
            return
        peer = self.draw(st.sampled_from(peers))
        request = self.replica.last_request(peer)
        epoch = near(self.replica, self.draw(st.sampled_from((0, 0, 0, 0, 0, 0, 1, -1))))
        leader = self.draw(st.sampled_from((-1, -1, -1, -1, 2, 3)))
        event: Any = ev.ResponseReceived
        kind = type(request.message).__name__
        if kind == "VoteRequest":
            answer: Message = vote_response(
                epoch, granted=self.draw(st.sampled_from((True, True, False))), leader=leader
            )
        elif kind == "BeginQuorumEpochRequest":
            answer = begin_response(epoch, leader=leader)
        elif kind == "EndQuorumEpochRequest":
            answer = end_response(epoch, leader=leader)
        else:
            self.step(
                ev.FetchResponseReceived(peer, request.correlation_id, fetch_response(epoch, leader=leader), None)
            )
            return
        self.step(event(peer, request.correlation_id, answer))

    def somebody_fails(self) -> None:
        for peer in list(self.replica._last_requests)[:1]:
            unsupported = self.draw(st.sampled_from((False, False, True)))
            self.step(ev.RequestFailed(peer, self.replica.last_request(peer).correlation_id, unsupported))

    def the_lane_hands_up(self) -> None:
        log, raft = self.replica.fake_log, self.replica.raft
        diverging = self.draw(st.sampled_from((None, None, (log.last_epoch, max(log.end_offset - 1, 0)), (0, 0))))
        span = None
        if diverging is None and raft.role == "follower" and raft.epoch > 0:
            span = ev.RecordSpan(1, log.end_offset, log.end_offset + 2, raft.epoch, raft.epoch)
        answer = fetch_response(raft.epoch, leader=raft.leader_id, high_watermark=log.end_offset, diverging=diverging)
        self.step(ev.FetchResponseReceived(raft.leader_id, -1, answer, span))

    def the_lane_goes_on(self) -> None:
        """Steady state, of which raft/ hears nothing."""
        node = self.replica
        if node.role == "follower":
            node.hears_leader()
        elif node.role == "leader":
            node.fetched_by(2, 3)
            node.committed(node.fake_log.end_offset)

    def the_user_acts(self) -> None:
        self.step(
            self.draw(
                st.sampled_from(
                    (
                        ev.ResignRequested(2, self.replica.epoch),
                        ev.DiskStalled(),
                        ev.DiskRecovered(),
                        ev.LeaderConnection(self.replica.leader_id, self.draw(st.booleans())),
                        ev.ShutdownRequested(),
                    )
                )
            )
        )


ACTS = (
    *(Life.time_passes,) * 5,
    *(Life.somebody_answers,) * 4,
    *(Life.somebody_asks,) * 3,
    Life.somebody_fails,
    *(Life.the_lane_hands_up,) * 2,
    *(Life.the_lane_goes_on,) * 2,
    Life.the_user_acts,
    *(Life.restart,) * 2,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_order_of_events_makes_a_replica_break_a_promise(data: st.DataObject) -> None:
    life = Life(data, data.draw(st.sampled_from(((1, 2, 3), (1, 2), (1,), (2, 3)))))
    for _ in range(data.draw(st.integers(10, 60))):
        data.draw(st.sampled_from(ACTS))(life)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_same_events_give_the_same_effects(data: st.DataObject) -> None:
    seed, acts = data.draw(st.integers(0, 99)), data.draw(st.integers(5, 40))
    lives = [replica(1).seeded(seed).starts() for _ in range(2)]
    for _ in range(acts):
        epoch, by, granted = data.draw(st.integers(0, 9)), data.draw(PEERS), data.draw(st.booleans())
        for each in lives:
            if granted:
                each.elapse_to_deadline()
            each.receives(vote_request(epoch, by=by, pre_vote=granted))
    assert lives[0].effects == lives[1].effects
