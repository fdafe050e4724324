"""A follower's lane, told in scenarios: a Fetch says what is on this disk, an answer is checked, then written."""

from collections.abc import Callable
from typing import Any

import pytest

from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import NO_CONNECTION, HandUp, LaneMode, Send
from fastquorum.types import Uuid
from fastquorum.wire import decode_request
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from tests.lane.builders import (
    CLUSTER,
    Following,
    Make,
    MemoryLog,
    Partition,
    advances,
    control_batch,
    crowded_batch,
    handed_up,
    key,
    questions,
    value_batch,
)

# --- asking -----------------------------------------------------------------------------------------------------------


def test_the_first_fetch_goes_out_when_the_leader_is_reached(make: Make) -> None:
    follower = Following(make, attach=False)
    out = follower.lane.attach_leader(70, 18, follower.now_us)
    (question,) = questions(out)
    assert question == (70, 0x4000_0000, 1, 5, -1)


def test_a_fetch_has_the_fields_that_kafkas_raft_client_sends(make: Make) -> None:
    follower = Following(make, attach=False)
    (send,) = follower.lane.attach_leader(70, 18, follower.now_us)
    assert isinstance(send, Send)
    header, message = decode_request(bytes(send.frame))
    assert (header.request_api_key, header.request_api_version, header.client_id) == (1, 18, "raft-client-2")
    assert isinstance(message, FetchRequest)
    (topic,) = message.topics
    (partition,) = topic.partitions
    assert message == FetchRequest(
        cluster_id=CLUSTER,
        replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=-1),
        max_wait_ms=500,
        min_bytes=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic],
    )
    assert (partition.current_leader_epoch, partition.fetch_offset, partition.last_fetched_epoch) == (5, 1, 5)
    assert (partition.log_start_offset, partition.partition_max_bytes, partition.high_watermark) == (-1, 0, -1)
    assert partition.replica_directory_id == key(2).directory_id


@pytest.mark.parametrize("version", range(12, 19))
def test_every_version_with_a_last_fetched_epoch_is_spoken(make: Make, version: int) -> None:
    follower = Following(make, version=version)
    assert advances(follower.answer(value_batch(1, 5), high_watermark=1)) == [1]
    follower.sync()
    assert [question.offset for question in follower.questions_seen] == [1, 2]


def test_no_fetch_goes_out_while_anything_is_not_synced(make: Make) -> None:
    log = MemoryLog().control(5).values(5)
    log.flushed_end = 1
    follower = Following(make, log=log)
    assert follower.questions_seen == []
    assert log.is_flushing
    follower.sync()
    assert [question.offset for question in follower.questions_seen] == [2]


def test_an_answer_with_records_is_written_and_the_next_fetch_waits_for_the_sync(make: Make) -> None:
    follower = Following(make)
    assert follower.answer(value_batch(1, 5, 2)) == []
    assert (follower.log.end_offset, follower.log.flushed_end, follower.log.is_flushing) == (3, 1, True)
    follower.sync()
    assert follower.questions_seen[-1] == (70, 0x4000_0001, 3, 5, -1)


def test_an_empty_answer_is_followed_by_the_next_fetch_at_once(make: Make) -> None:
    follower = Following(make)
    (question,) = questions(follower.answer())
    assert (question.offset, question.correlation_id) == (1, 0x4000_0001)


def test_only_one_fetch_is_in_flight(make: Make) -> None:
    follower = Following(make)
    assert follower.lane.resume(follower.now_us) == []
    assert len(follower.questions_seen) == 1


def test_a_new_attempt_forgets_the_fetch_in_flight_and_sends_another(make: Make) -> None:
    follower = Following(make)
    (question,) = questions(follower.lane.open_follower(follower.session._replace(attempt=2), follower.now_us))
    assert (question.connection, question.correlation_id) == (70, 0x4000_0001)
    assert follower.answer(correlation_id=0x4000_0000) == []


def test_a_new_connection_forgets_the_fetch_in_flight_and_sends_another(make: Make) -> None:
    follower = Following(make)
    (question,) = questions(follower.lane.attach_leader(71, 18, follower.now_us))
    assert question.connection == 71
    assert follower.answer() == []


def test_a_lost_connection_stops_the_fetching_until_another_is_there(make: Make) -> None:
    follower = Following(make)
    assert follower.lane.detach(70, follower.now_us) == []
    assert follower.lane.freeze(follower.now_us).fetch_sent_us == -1
    assert follower.lane.resume(follower.now_us) == []
    assert len(questions(follower.lane.attach_leader(71, 18, follower.now_us))) == 1


def test_correlation_ids_go_on_across_terms(make: Make) -> None:
    follower = Following(make)
    follower.lane.close(follower.now_us)
    follower.lane.open_follower(follower.session._replace(epoch=6, leader_id=3), follower.now_us)
    (question,) = questions(follower.lane.attach_leader(70, 18, follower.now_us))
    assert question.correlation_id == 0x4000_0001
    assert follower.answer(correlation_id=0x4000_0000) == []
    assert not follower.lane.is_frozen


# --- answers ----------------------------------------------------------------------------------------------------------


def test_the_high_watermark_is_the_leaders_bounded_by_the_own_log_and_never_falls(make: Make) -> None:
    follower = Following(make)
    assert advances(follower.answer(high_watermark=9)) == [1]
    assert advances(follower.answer(value_batch(1, 5, 3), high_watermark=3)) == [3]
    follower.sync()
    assert follower.questions_seen[-1].high_watermark == 3
    assert advances(follower.answer(high_watermark=2)) == []
    assert follower.lane.high_watermark == 3


def test_an_incomplete_last_batch_is_left_out(make: Make) -> None:
    follower = Following(make)
    follower.answer(value_batch(1, 5) + value_batch(2, 5) + value_batch(3, 5)[:-7])
    assert follower.log.end_offset == 3
    follower.sync()
    assert follower.questions_seen[-1].offset == 3


def test_a_late_answer_is_dropped_silently(make: Make) -> None:
    follower = Following(make)
    assert follower.answer(correlation_id=0x4000_0009) == []
    assert follower.answer(connection=71) == []
    follower.answer()
    assert follower.answer(value_batch(1, 5), correlation_id=0x4000_0000) == []
    assert follower.log.end_offset == 1
    assert not follower.lane.is_frozen


def _error(code: int) -> Callable[[FetchResponse], Any]:
    return lambda message: setattr(message.responses[0].partitions[0], "error_code", code)


def _corrupt() -> bytes:
    batch = bytearray(value_batch(1, 5))
    batch[-1] ^= 1
    return bytes(batch)


UNUSUAL: dict[str, dict[str, Any]] = {
    "an error": {"change": _error(6)},
    "a top-level error": {"change": lambda message: setattr(message, "error_code", 104)},
    "another leader": {"leader_id": 3},
    "no leader": {"leader_id": -1, "epoch": -1},
    "a newer epoch": {"epoch": 6},
    "an older epoch": {"epoch": 4},
    "another topic": {"topic_id": Uuid(b"t" * 16)},
    "a diverging epoch": {
        "change": lambda message: setattr(
            message.responses[0].partitions[0], "diverging_epoch", Partition.EpochEndOffset(epoch=4, end_offset=1)
        )
    },
    "a snapshot": {
        "change": lambda message: setattr(
            message.responses[0].partitions[0], "snapshot_id", Partition.SnapshotId(end_offset=9, epoch=4)
        )
    },
    "a control batch": {"records": control_batch(1, 5)},
    "a control batch behind good ones": {"records": value_batch(1, 5) + control_batch(2, 5)},
    "an epoch beyond the leader's": {"records": value_batch(1, 6)},
    "an epoch that falls": {"records": value_batch(1, 4)},
    "a corrupt batch": {"records": _corrupt()},
    "a corrupt batch behind a good one": {"records": value_batch(1, 5) + value_batch(2, 5)[:-1] + b"?"},
    "a gap": {"records": value_batch(2, 5)},
    "records before the offset": {"records": value_batch(0, 5)},
    "an incomplete first batch": {"records": value_batch(1, 5)[:-1]},
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_anything_unusual_is_handed_up_with_the_log_untouched(make: Make, name: str) -> None:
    follower = Following(make)
    before = follower.log.bytes
    out = follower.answer(high_watermark=1, **UNUSUAL[name])
    assert handed_up(out)
    assert follower.lane.is_frozen
    state = follower.lane.freeze(follower.now_us)
    assert (state.high_watermark, state.leader_contact_us, state.fetch_sent_us) == (-1, -1, -1)
    assert follower.log.bytes == before
    assert not follower.log.is_flushing


def test_records_that_the_segment_does_not_take_are_handed_up_however_few_their_bytes(make: Make) -> None:
    follower = Following(make)
    follower.log.record_room = 2**30
    before = follower.log.bytes
    assert handed_up(follower.answer(crowded_batch(1, 5, 2**29) + crowded_batch(1 + 2**29, 5, 2**29 + 1)))
    assert follower.log.bytes == before
    assert not follower.log.is_flushing


def test_as_many_records_as_the_segment_takes_are_written(make: Make) -> None:
    follower = Following(make)
    follower.log.record_room = 2**30
    assert follower.answer(crowded_batch(1, 5, 2**29) + crowded_batch(1 + 2**29, 5, 2**29)) == []
    assert follower.log.end_offset == 1 + 2**30


def test_an_epoch_change_below_the_leaders_epoch_is_handed_up(make: Make) -> None:
    follower = Following(make, log=MemoryLog().values(3))
    assert handed_up(follower.answer(value_batch(1, 4)))


def test_after_raft_has_decided_the_fetching_goes_on(make: Make) -> None:
    follower = Following(make)
    assert handed_up(follower.answer(control_batch(1, 5)))
    follower.log.put(control_batch(1, 5))
    (question,) = questions(follower.lane.resume(follower.now_us))
    assert question.offset == 2


def test_an_answer_to_a_fetch_that_raft_has_overtaken_is_handed_up(make: Make) -> None:
    follower = Following(make)
    follower.lane.freeze(follower.now_us)
    follower.log.put(value_batch(1, 5))
    follower.lane.resume(follower.now_us)
    assert handed_up(follower.answer(high_watermark=2))


def test_frames_that_are_no_answer_of_the_lanes_are_handed_up(make: Make) -> None:
    follower = Following(make)
    for frame in (b"", b"\0\0\0\x07raft's own answer", b"\0\x34\0\x02a vote"):
        assert follower.lane.on_frame(70, frame, follower.now_us) == [HandUp(70, frame)]
        follower.lane.resume(follower.now_us)


def test_a_sync_that_ends_while_frozen_lets_the_fetch_go_when_the_lane_resumes(make: Make) -> None:
    follower = Following(make)
    follower.answer(value_batch(1, 5))
    follower.lane.freeze(follower.now_us)
    assert follower.sync() == []
    assert [question.offset for question in questions(follower.lane.resume(follower.now_us))] == [2]


def test_a_follower_refuses_appends_and_barriers(make: Make) -> None:
    follower = Following(make)
    assert follower.lane.append([b"a"], 1, 1) == (AppendVerdict.NOT_LEADER, [])
    assert follower.lane.append_encoded(bytearray(value_batch(0, 0)), 1, 1, 1) == (AppendVerdict.NOT_LEADER, [])
    assert follower.lane.begin_barrier(1) == (AppendVerdict.NOT_LEADER, [])
    assert follower.lane.deadline_us == NO_CONNECTION


def test_the_state_tells_the_leaders_contact_and_the_fetch_in_flight(make: Make) -> None:
    follower = Following(make)
    follower.now_us = 2_000
    follower.answer(value_batch(1, 5), high_watermark=2)
    state, out = follower.lane.close(follower.now_us)
    assert out == []
    assert (state.mode, state.epoch, state.log_end, state.flushed_end) == (LaneMode.FOLLOWER, 5, 2, 1)
    assert (state.high_watermark, state.peers, state.leader_contact_us) == (2, (), 2_000)
    assert state.fetch_sent_us == -1
    assert follower.lane.high_watermark == 2
