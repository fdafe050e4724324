"""The seven rules of the lane as scenarios. Each holds on the real lane; where `mutants` breaks a rule, its one fails.

A scenario gets a `World`: how lanes are made, which log they work on, how a shell opens a lane after an election.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import BarrierDone, Lane, LaneMode, LeaderSession, Output
from fastquorum.types import Offset
from tests.lane.builders import (
    Following,
    Leading,
    Make,
    MemoryLog,
    advances,
    answers,
    handed_up,
    key,
    questions,
    value_batch,
)


def elect(lane: Lane, log: MemoryLog, session: LeaderSession) -> list[Output]:
    """What a shell does for a new leader: its LeaderChangeMessage into the log, then the lane opens."""
    log.control(session.epoch)
    return lane.open_leader(session, 0)


@dataclass
class World:
    make: Make
    log: type[MemoryLog] = MemoryLog
    elect: Callable[[Lane, MemoryLog, LeaderSession], list[Output]] = elect


def done(out: list[Output]) -> list[tuple[int, Offset]]:
    return [(output.barrier, output.high_watermark) for output in out if isinstance(output, BarrierDone)]


# --- rule 1 -----------------------------------------------------------------------------------------------------------


def a_lane_opens_only_over_the_leader_change_of_its_epoch(world: World) -> None:
    leader = Leading(world.make, log=world.log().values(2))
    state, _ = leader.lane.close(0)
    session = leader.session._replace(epoch=7, epoch_start=state.log_end)
    world.elect(leader.lane, leader.log, session)
    assert leader.append(b"a")[0] == session.epoch_start + 1


# --- rule 2 -----------------------------------------------------------------------------------------------------------


def a_hand_up_stops_appends_until_raft_has_decided(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    assert handed_up(leader.fetch(3))
    assert leader.append(b"a") == (AppendVerdict.FROZEN, [])
    assert leader.lane.begin_barrier(0) == (AppendVerdict.FROZEN, [])
    state = leader.lane.freeze(0)
    assert state.log_end == leader.log.end_offset == 1
    leader.lane.resume(0)
    assert leader.append(b"a")[0] == 1


def the_log_end_that_raft_decides_from_includes_every_accepted_append(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.append(b"a")
    assert leader.append(b"b")[0] == 2  # gathers: a sync is under way
    assert leader.lane.freeze(0).log_end == leader.log.end_offset == 3


def nothing_is_sent_while_raft_decides(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    leader.lane.freeze(0)
    assert leader.tick(10_000_000) == []
    assert leader.admit(3, high_watermark=-1) == []
    assert leader.lane.on_flushed(leader.log.generation, 1, 0) == []
    follower = Following(world.make, attach=False)
    follower.lane.freeze(0)
    assert follower.lane.attach_leader(70, 18, 0) == []
    assert len(questions(follower.lane.resume(0))) == 1


# --- rule 3 -----------------------------------------------------------------------------------------------------------


def after_close_nothing_of_the_epoch_leaves(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    leader.append(b"a")
    leader.fetch(2)
    state, out = leader.lane.close(0)
    assert answers(out) == []
    assert leader.append(b"b") == (AppendVerdict.NOT_LEADER, [])
    assert leader.lane.begin_barrier(0) == (AppendVerdict.NOT_LEADER, [])
    assert leader.sync() == []
    assert leader.tick(10_000_000) == []
    assert leader.lane.resume(0) == []
    assert leader.log.end_offset == state.log_end
    follower = Following(world.make)
    follower.answer(value_batch(1, 5))
    follower.lane.close(0)
    follower.lane.resume(0)
    assert follower.sync() == []
    assert follower.lane.mode is LaneMode.CLOSED


def a_parked_fetch_is_claimed_by_one_answer(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2, max_wait_us=100)
    _, first = leader.append(b"a")
    _, second = leader.append(b"b")
    later = leader.sync() + leader.tick(1_000)
    assert [answer.correlation_id for answer in answers(first + second + later)] == [1]


# --- rule 4 -----------------------------------------------------------------------------------------------------------


def bytes_written_during_a_sync_do_not_count_when_it_ends(world: World) -> None:
    leader = Leading(world.make, voters=(1, 2), log=world.log())
    leader.admit(2)
    leader.append(b"a")  # answered; the sync of offsets below 2 begins
    leader.fetch(2, 2)
    leader.append(b"b")
    leader.fetch(2, 3)
    assert advances(leader.sync()) == [2]
    assert advances(leader.sync()) == [3]


def a_sync_from_before_a_truncation_does_not_count(world: World) -> None:
    follower = Following(world.make, log=world.log().control(5))
    follower.answer(value_batch(1, 5, 3))
    follower.lane.close(0)
    log = follower.log
    log.truncate(1)
    log.append_batch(value_batch(1, 6, 3), base_offset=1, next_offset=4, epoch=6, timestamp_ms=1_000)
    follower.lane.open_follower(follower.session._replace(epoch=6, leader_id=3), 0)
    assert questions(follower.lane.attach_leader(70, 18, 0)) == []
    stale = log.finish_sync()
    assert stale == (0, 4)
    assert questions(follower.lane.on_flushed(*stale, 0)) == []
    assert questions(follower.lane.resume(0)) == []
    assert [question.offset for question in questions(follower.lane.on_flushed(*log.finish_sync(), 0))] == [4]


# --- rule 5 -----------------------------------------------------------------------------------------------------------


def after_a_failed_sync_nothing_leaves_and_nothing_is_accepted(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    leader.admit(3, 0)
    leader.append(b"a")
    end_offset, high_watermark = leader.log.end_offset, leader.lane.high_watermark
    leader.lane.on_flush_failed()
    assert leader.lane.has_failed
    assert leader.append(b"b") == (AppendVerdict.FAILED, [])
    assert leader.lane.append_encoded(bytearray(value_batch(0, 0)), 1, 0, 0) == (AppendVerdict.FAILED, [])
    assert leader.lane.begin_barrier(0) == (AppendVerdict.FAILED, [])
    assert leader.fetch(2) == []
    assert leader.admit(3, 0) == []
    assert leader.tick(10_000_000) == []
    assert leader.lane.freeze(0).log_end == end_offset
    assert leader.lane.resume(0) == []
    assert answers(leader.lane.close(0)[1]) == []
    assert leader.lane.high_watermark == high_watermark


def after_a_failed_sync_a_follower_claims_nothing(world: World) -> None:
    follower = Following(world.make)
    follower.answer(value_batch(1, 5))
    follower.lane.on_flush_failed()
    assert follower.sync() == []
    assert follower.lane.resume(0) == []
    assert follower.lane.attach_leader(71, 18, 0) == []


# --- rule 6 -----------------------------------------------------------------------------------------------------------


def raft_learns_the_contacts_that_the_lane_saw(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    leader.append(b"a")
    leader.now_us = 9_000
    leader.fetch(2)
    (peer,) = leader.lane.freeze(9_500).peers
    assert (peer.key, peer.last_contact_us, peer.end_offset) == (key(2), 9_000, 2)
    follower = Following(world.make)
    assert follower.lane.freeze(8_000).fetch_sent_us == 1_000
    follower.lane.resume(8_000)
    follower.now_us = 9_000
    follower.answer()
    assert follower.lane.freeze(9_500).leader_contact_us == 9_000


# --- rule 7 -----------------------------------------------------------------------------------------------------------


def a_fetch_that_was_under_way_when_a_barrier_began_does_not_count(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    leader.append(b"a")  # the response goes out: the peer's next Fetch may be under way
    barrier, out = leader.lane.begin_barrier(0)
    assert (barrier, out) == (1, [])
    out = leader.fetch(2, 2)
    assert done(out) == []
    assert [answer.records for answer in answers(out)] == [b""]  # answered at once, to provoke another
    assert done(leader.fetch(2, 2)) == [(1, 1)]


def a_parked_fetch_is_answered_empty_to_provoke_one_that_counts(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    leader.admit(9, is_voter=False)
    _, out = leader.lane.begin_barrier(0)
    assert [(answer.connection, answer.records) for answer in answers(out)] == [(20, b"")]
    assert done(leader.fetch(2)) == [(1, 1)]


def a_barrier_needs_a_majority_of_voters(world: World) -> None:
    leader = Leading(world.make, voters=(1, 2, 3, 4, 5), log=world.log())
    for node_id in (2, 3, 9):
        leader.admit(node_id, is_voter=node_id != 9, max_wait_us=0)
        leader.fetch(node_id)
    leader.lane.begin_barrier(0)
    assert done(leader.fetch(2)) == []
    leader.tick(10_000_000)
    assert done(leader.fetch(9)) == []
    assert done(leader.fetch(3)) == [(1, 1)]


def a_barrier_waits_for_the_high_watermark_to_pass_the_epochs_start(world: World) -> None:
    leader = Leading(world.make, log=world.log().values(2, count=3), flushed=False)
    leader.admit(2, 3)
    leader.lane.begin_barrier(0)
    leader.fetch(2, 4)
    assert done(leader.fetch(2, 4)) == []
    assert done(leader.sync()) == [(1, 4)]


def copies_of_earlier_fetches_confirm_nothing_though_raft_admits_one(world: World) -> None:
    leader = Leading(world.make, log=world.log())
    leader.admit(2)
    for _ in range(2):
        leader.lane.begin_barrier(0)
        leader.fetch(2)
    newest = leader.correlation_id
    leader.correlation_id = newest - 2
    leader.admit(2)  # the lane handed it up, as the newest was parked
    (barrier, _) = leader.lane.begin_barrier(0)
    assert (barrier, leader.correlation_id) == (3, newest - 1)
    assert done(leader.fetch(2)) == []  # the newest, again
    assert done(leader.fetch(2)) == []  # sent before the answer to the newest, which nothing has answered
    assert done(leader.fetch(2)) == [(3, 1)]


# --- what the rules are for -------------------------------------------------------------------------------------------


def a_leader_counts_only_what_it_has_synced_itself(world: World) -> None:
    leader = Leading(world.make, voters=(1, 2), log=world.log())
    leader.admit(2)
    leader.append(b"a")
    assert advances(leader.fetch(2, 2)) == []
    assert leader.lane.high_watermark == 1
    assert advances(leader.sync()) == [2]


def a_fetch_claims_only_what_is_synced(world: World) -> None:
    follower = Following(world.make, log=world.log().control(5))
    assert questions(follower.answer(value_batch(1, 5, 3))) == []
    assert follower.lane.resume(0) == []
    (question,) = questions(follower.lane.on_flushed(*follower.log.finish_sync(), 0))
    assert question.offset == follower.log.flushed_end == 4


Scenario = Callable[[World], None]
SCENARIOS: tuple[Scenario, ...] = (
    a_lane_opens_only_over_the_leader_change_of_its_epoch,
    a_hand_up_stops_appends_until_raft_has_decided,
    the_log_end_that_raft_decides_from_includes_every_accepted_append,
    nothing_is_sent_while_raft_decides,
    after_close_nothing_of_the_epoch_leaves,
    a_parked_fetch_is_claimed_by_one_answer,
    bytes_written_during_a_sync_do_not_count_when_it_ends,
    a_sync_from_before_a_truncation_does_not_count,
    after_a_failed_sync_nothing_leaves_and_nothing_is_accepted,
    after_a_failed_sync_a_follower_claims_nothing,
    raft_learns_the_contacts_that_the_lane_saw,
    a_fetch_that_was_under_way_when_a_barrier_began_does_not_count,
    a_parked_fetch_is_answered_empty_to_provoke_one_that_counts,
    a_barrier_needs_a_majority_of_voters,
    a_barrier_waits_for_the_high_watermark_to_pass_the_epochs_start,
    copies_of_earlier_fetches_confirm_nothing_though_raft_admits_one,
    a_leader_counts_only_what_it_has_synced_itself,
    a_fetch_claims_only_what_is_synced,
)
