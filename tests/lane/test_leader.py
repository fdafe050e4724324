"""A leader's lane, told in scenarios: appends and group commit, Fetches that continue, high watermark, parking."""

from collections.abc import Callable
from typing import Any

import pytest

from fastquorum.errors import RecordTooLarge, StorageFailed, UsageError
from fastquorum.kernels import load
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import Advanced, FetchAdmission, LaneMode, Send, Unparked, load_lane
from fastquorum.kernels.pure.lane.fetch_responses import RESPONSE_ENCODERS
from fastquorum.kernels.pure.lane.leader import ANSWER_BYTES_MAX, HIGH_WATERMARK_DELAY_US, PEERS_MAX
from fastquorum.types import METADATA_TOPIC_ID, ReplicaKey, Uuid
from fastquorum.wire import encode_request, request_header
from fastquorum.wire.messages.quorum import VoteRequest
from tests.lane.builders import (
    Leading,
    Make,
    MemoryLog,
    advances,
    answers,
    handed_up,
    key,
    value_batch,
)

OTHER_CLUSTER = "QQQQQQQQQQQQQQQQQQQQQQ"

# --- appends and group commit -----------------------------------------------------------------------------------------


def test_a_static_voter_under_ever_new_directories_is_not_remembered_without_end(make: Make) -> None:
    leader = Leading(make, have_directories=False)
    for number in range(1, 2 * PEERS_MAX):
        for node_id in (2, 3):
            directory = ReplicaKey(node_id, Uuid(number.to_bytes(16, "big")))
            connection = 10 * number + node_id
            leader.now_us += 1
            leader.lane.admit(FetchAdmission(connection, 1, 18, directory, True, 1, 1, 0, 1), leader.now_us)
            leader.lane.detach(connection, leader.now_us)
    peers = leader.lane.freeze(leader.now_us).peers
    assert len(peers) <= PEERS_MAX
    for node_id in (2, 3):
        latest = max(peer.last_contact_us for peer in peers if peer.key.id == node_id)
        assert latest >= leader.now_us - 1, "the last that was heard of a voter is never forgotten"


def test_appends_that_gather_leave_as_one_batch_when_they_are_pushed(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    assert [leader.lane.append([value], 1_000, 0, True) for value in (b"a", b"b", b"c")] == [(1, []), (2, []), (3, [])]
    assert leader.log.end_offset == 1
    (answer,) = answers(leader.lane.push(0))
    assert (answer.offsets, leader.log.end_offset) == ([1], 4)
    assert leader.lane.push(0) == []


def test_what_gathered_is_written_by_a_voters_fetch_and_by_freezing_without_a_push(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.append(b"sent")
    leader.lane.append([b"gathered"], 1_000, 0, True)
    leader.fetch(2, 2)
    assert leader.log.end_offset == 3
    leader.lane.append([b"gathered"], 1_000, 0, True)
    assert leader.lane.freeze(0).log_end == 4
    assert leader.lane.push(0) == []


def test_a_push_waits_with_the_appends_for_a_sync_that_is_under_way(make: Make) -> None:
    leader = Leading(make)
    leader.append(b"syncing")
    leader.lane.append([b"gathered"], 1_000, 0, True)
    assert leader.lane.push(0) == []
    assert leader.log.end_offset == 2
    leader.sync()
    assert leader.log.end_offset == 3


def test_an_append_is_written_at_once_when_no_sync_is_under_way(make: Make) -> None:
    leader = Leading(make)
    assert leader.append(b"a") == (1, [])
    assert leader.log.end_offset == 2
    assert leader.log.is_flushing


def test_appends_gather_while_a_sync_is_under_way_and_are_written_as_one_batch_when_it_ends(make: Make) -> None:
    leader = Leading(make)
    leader.append(b"a")
    assert [leader.append(b"b")[0], leader.append(b"c", b"d")[0]] == [2, 3]
    assert leader.log.end_offset == 2
    leader.sync()
    assert [batch.base_offset for batch in leader.log.batches] == [0, 1, 2]
    assert leader.log.end_offset == 5
    assert leader.log.is_flushing


def test_appends_do_not_gather_while_a_voters_fetch_is_parked_and_go_out_before_they_are_synced(make: Make) -> None:
    leader = Leading(make)
    leader.append(b"a")
    assert answers(leader.admit(2)) == []
    offset, out = leader.append(b"b")
    assert offset == 2
    (answer,) = answers(out)
    assert (answer.connection, answer.correlation_id, answer.offsets) == (20, 1, [2])
    assert leader.log.flushed_end == 1


def test_a_voters_fetch_fetches_what_gathered_but_an_observers_does_not(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2, max_wait_us=0)
    leader.admit(9, is_voter=False, max_wait_us=0)
    leader.append(b"a")
    leader.append(b"b")
    assert [answer.offsets for answer in answers(leader.fetch(9, 1))] == [[1]]
    assert leader.log.end_offset == 2
    assert [answer.offsets for answer in answers(leader.fetch(2, 1))] == [[1, 2]]
    assert leader.log.end_offset == 3


def test_a_full_batch_is_written_although_a_sync_is_under_way(make: Make) -> None:
    leader = Leading(make, batch_bytes_max=200)
    leader.append(b"a")
    assert leader.append(b"b" * 100)[0] == 2
    assert leader.append(b"c" * 100)[0] == 3
    assert leader.log.end_offset == 3


def test_an_append_that_fits_no_batch_changes_nothing(make: Make) -> None:
    leader = Leading(make, batch_bytes_max=200)
    with pytest.raises(RecordTooLarge):
        leader.append(b"x" * 200)
    with pytest.raises(RecordTooLarge):
        leader.append(b"x" * 100, b"x" * 100)
    with pytest.raises(RecordTooLarge):
        leader.lane.append_encoded(bytearray(value_batch(0, 0, 50)), 50, 1_000, leader.now_us)
    with pytest.raises(UsageError):
        leader.lane.append([], 1_000, leader.now_us)
    assert leader.log.end_offset == 1
    assert leader.append(b"a")[0] == 1
    assert leader.log.end_offset == 2


def test_a_clients_batch_is_stamped_and_follows_what_gathered(make: Make) -> None:
    leader = Leading(make)
    leader.append(b"a")
    leader.append(b"b")
    offset, out = leader.lane.append_encoded(bytearray(value_batch(0, 0, 3)), 3, 1_000, leader.now_us)
    assert (offset, out) == (3, [])
    assert [(batch.base_offset, batch.next_offset, batch.epoch) for batch in leader.log.batches] == [
        (0, 1, 5),
        (1, 2, 5),
        (2, 3, 5),
        (3, 6, 5),
    ]


def test_a_clients_batch_goes_out_to_parked_fetches(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    _, out = leader.lane.append_encoded(bytearray(value_batch(0, 0, 3)), 3, 1_000, leader.now_us)
    assert [answer.offsets for answer in answers(out)] == [[1]]


def test_a_failed_write_latches(make: Make) -> None:
    leader = Leading(make)

    def fail(*_: Any, **__: Any) -> None:
        raise StorageFailed("no space", "write", "segment", 28)

    leader.log.append_batch = fail  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        leader.append(b"a")
    assert leader.lane.has_failed
    assert leader.append(b"b") == (AppendVerdict.FAILED, [])


# --- the fetches that continue ----------------------------------------------------------------------------------------


def test_an_admitted_fetch_behind_the_log_end_is_answered_at_once_whole_batches_up_to_its_bytes(make: Make) -> None:
    leader = Leading(make, log=MemoryLog().values(2).values(3, count=2).values(3))
    first = leader.log.batches[0].data
    (answer,) = answers(leader.admit(2, 0, bytes_max=len(first) + 10))
    assert answer.records == first
    (answer,) = answers(leader.fetch(2, 1, last_epoch=2))
    assert answer.offsets == [1, 3, 4]
    assert answers(leader.fetch(2, 5)) == []


def test_a_fetch_that_reads_old_epochs_is_followed_across_them(make: Make) -> None:
    leader = Leading(make, log=MemoryLog().values(2).values(3, count=2))
    size = len(leader.log.batches[0].data)
    leader.admit(2, 0, bytes_max=size)
    assert answers(leader.fetch(2, 1, last_epoch=2, max_bytes=1))[0].offsets == [1]
    assert answers(leader.fetch(2, 3, last_epoch=3, max_bytes=1))[0].offsets == [3]
    assert handed_up(leader.fetch(2, 4, last_epoch=3))


@pytest.mark.parametrize("version", range(12, 19))
def test_every_version_with_a_last_fetched_epoch_is_served(make: Make, version: int) -> None:
    leader = Leading(make)
    assert answers(leader.admit(2, version=version)) == []
    (answer,) = answers(leader.append(b"a")[1], version)
    assert answer.offsets == [1]
    leader.fetch(2)
    (answer,) = answers(leader.append(b"b")[1], version)
    assert answer.offsets == [2]


def test_an_answer_names_the_leader_its_endpoint_and_the_log_start(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    (send,) = leader.append(b"a")[1]
    encode = RESPONSE_ENCODERS[18](METADATA_TOPIC_ID, 1, 5, b"localhost", 9093)
    assert send == (20, encode(1, 1, 0, leader.log.batches[-1].data))


@pytest.mark.parametrize("version", [16, 17])
def test_the_endpoint_is_named_from_version_17_on_as_kafkas_leader_does(make: Make, version: int) -> None:
    leader = Leading(make)
    leader.admit(2, version=version)
    (send,) = leader.append(b"a")[1]
    assert isinstance(send, Send)
    assert (b"localhost" in bytes(send.frame)) == (version == 17)


UNUSUAL: dict[str, Callable[[Leading], Any]] = {
    "another connection": lambda leader: leader.fetch(2, connection=21),
    "an unknown peer": lambda leader: leader.fetch(3),
    "another peer on this connection": lambda leader: leader.fetch(3, connection=20),
    "an older epoch": lambda leader: leader.fetch(2, epoch=4),
    "a newer epoch": lambda leader: leader.fetch(2, epoch=6),
    "another version": lambda leader: leader.fetch(2, version=17),
    "another cluster": lambda leader: leader.fetch(2, cluster_id=OTHER_CLUSTER),
    "another topic": lambda leader: leader.fetch(2, topic_id=Uuid(b"t" * 16)),
    "another directory": lambda leader: leader.fetch(2, directory_id=Uuid(b"d" * 16)),
    "an offset before the last answer's end": lambda leader: leader.fetch(2, 1),
    "an offset beyond the last answer's end": lambda leader: leader.fetch(2, 3),
    "another last epoch": lambda leader: leader.fetch(2, last_epoch=4),
    "a negative wait": lambda leader: leader.fetch(2, max_wait_ms=-1),
    "another API": lambda leader: leader.lane.on_frame(
        20, encode_request(request_header(VoteRequest(), 2, 9, None), VoteRequest()), leader.now_us
    ),
    "no frame at all": lambda leader: leader.lane.on_frame(20, b"", leader.now_us),
    "random bytes": lambda leader: leader.lane.on_frame(20, b"\0\1\0\x12nonsense", leader.now_us),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_anything_unusual_is_handed_up_untouched_and_freezes_the_lane(make: Make, name: str) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.append(b"a")
    before = leader.lane.freeze(leader.now_us)
    leader.lane.resume(leader.now_us)
    leader.now_us += 1
    out = UNUSUAL[name](leader)
    assert handed_up(out)
    assert leader.lane.is_frozen
    assert leader.lane.freeze(leader.now_us) == before


def test_a_fetch_below_a_log_start_that_has_moved_is_handed_up(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.append(b"a")
    leader.append(b"b")
    leader.sync()
    leader.log.start_offset = 3
    assert handed_up(leader.fetch(2, 2))


def test_a_fetch_with_a_null_cluster_id_is_accepted(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2, max_wait_us=0)
    assert leader.fetch(2, cluster_id=None) == []


def test_a_second_fetch_while_one_is_parked_is_handed_up(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    assert handed_up(leader.fetch(2))


def test_a_late_answer_to_a_fetch_of_its_own_is_dropped(make: Make) -> None:
    leader = Leading(make)
    assert leader.lane.on_frame(70, b"\x40\0\0\x09\0nonsense", leader.now_us) == []
    assert not leader.lane.is_frozen


def test_a_peer_that_comes_back_on_another_connection_is_served_there(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    assert leader.admit(2, connection=25) == [Unparked(20, 1, 18)]
    assert [answer.connection for answer in answers(leader.append()[1])] == [25]
    assert handed_up(leader.fetch(2, connection=20))


def test_a_lost_connection_forgets_the_parked_fetch_but_not_the_offset(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    assert leader.lane.detach(20, leader.now_us) == []
    assert leader.append()[1] == []
    (peer,) = leader.lane.freeze(leader.now_us).peers
    assert (peer.key, peer.connection, peer.end_offset) == (key(2), -1, 1)


# --- high watermark ---------------------------------------------------------------------------------------------------


def test_the_high_watermark_moves_when_a_majority_is_flushed_and_past_the_epochs_start(make: Make) -> None:
    leader = Leading(make, log=MemoryLog().values(2, count=3), flushed=False)
    leader.admit(2, 3)
    assert leader.lane.high_watermark == -1
    assert advances(leader.fetch(2, 4)) == []  # the leader itself has not synced its LeaderChange
    assert leader.opened == []
    assert advances(leader.sync()) == [4]


def test_an_offset_at_the_epochs_start_commits_nothing(make: Make) -> None:
    leader = Leading(make, log=MemoryLog().values(2, count=3))
    assert advances(leader.admit(2, 3)) == []
    assert leader.lane.high_watermark == -1
    assert advances(leader.fetch(2, 4)) == [4]


def test_the_leader_counts_only_what_it_has_synced(make: Make) -> None:
    leader = Leading(make, voters=(1, 2))
    leader.admit(2, max_wait_us=0)
    leader.append(b"a")
    assert advances(leader.fetch(2, 1, max_wait_ms=0)) == []
    assert advances(leader.fetch(2, 2)) == []
    assert advances(leader.sync()) == [2]


def test_a_leader_that_is_no_voter_does_not_count_itself(make: Make) -> None:
    leader = Leading(make, voters=(2, 3))
    assert advances(leader.admit(2)) == []
    assert advances(leader.admit(3)) == [1]


def test_observers_get_answers_but_do_not_count(make: Make) -> None:
    leader = Leading(make)
    assert advances(leader.admit(9, is_voter=False)) == []
    assert [answer.connection for answer in answers(leader.append()[1])] == [90]
    assert advances(leader.fetch(9, 2)) == []
    assert advances(leader.admit(2, 1)) == [1]


def test_an_only_voter_commits_when_it_has_synced(make: Make) -> None:
    leader = Leading(make, voters=(1,))
    assert leader.opened == [Advanced(1)]
    leader.append(b"a")
    assert advances(leader.sync()) == [2]


def test_the_high_watermark_never_falls_when_a_peer_comes_back_behind(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.append(b"a")
    leader.sync()
    assert advances(leader.fetch(2)) == [2]
    assert advances(leader.admit(2, 0, connection=22)) == []
    assert leader.lane.high_watermark == 2


def test_a_voter_known_by_its_id_alone_counts_once(make: Make) -> None:
    leader = Leading(make)
    leader.lane.close(leader.now_us)
    voters = tuple(voter._replace(directory_id=Uuid()) for voter in leader.session.voters)
    leader.lane.open_leader(leader.session._replace(voters=voters), leader.now_us)
    assert advances(leader.admit(2)) == [1]


# --- parking ----------------------------------------------------------------------------------------------------------


def test_a_fetch_at_the_log_end_is_parked_until_its_wait_is_over(make: Make) -> None:
    leader = Leading(make)
    assert answers(leader.admit(2, max_wait_us=500)) == []
    assert leader.lane.deadline_us == leader.now_us + 500
    assert leader.tick(499) == []
    (answer,) = answers(leader.tick(1))
    assert (answer.records, leader.lane.deadline_us) == (b"", -1)
    assert leader.fetch(2) == []


def test_parking_is_bounded_by_the_terms_and_a_zero_wait_is_answered_at_once(make: Make) -> None:
    leader = Leading(make, fetch_wait_us_max=100)
    leader.admit(2)
    assert leader.lane.deadline_us == leader.now_us + 100
    leader.append()
    assert len(answers(leader.fetch(2, max_wait_ms=0))) == 1


def test_a_high_watermark_above_the_requests_is_told_soon_if_no_records_tell_it_first(make: Make) -> None:
    leader = Leading(make, voters=(1, 2, 3, 4, 5))
    leader.admit(3, high_watermark=-1)
    out = leader.admit(2)
    assert advances(out) == [1]
    assert answers(out) == []
    soon = leader.lane.deadline_us
    assert soon == leader.now_us + HIGH_WATERMARK_DELAY_US
    out = leader.tick(HIGH_WATERMARK_DELAY_US)
    assert [(answer.connection, answer.high_watermark) for answer in answers(out)] == [(30, 1)]
    assert len(answers(leader.fetch(3, high_watermark=0))) == 0
    assert leader.lane.deadline_us == leader.now_us + HIGH_WATERMARK_DELAY_US
    _, out = leader.append()
    assert {(answer.connection, answer.high_watermark) for answer in answers(out)} == {(20, 1), (30, 1)}


def test_an_observer_is_told_at_once_that_the_high_watermark_moved(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.admit(9, high_watermark=1)
    _, out = leader.append()
    assert [answer.connection for answer in answers(out)] == [20, 90]
    assert answers(leader.fetch(9, high_watermark=1)) == []
    leader.sync()
    out = leader.fetch(2, high_watermark=1)
    assert advances(out) == [2]
    assert [(answer.connection, answer.high_watermark) for answer in answers(out)] == [(90, 2)]


def test_an_observers_fetch_that_comes_after_the_commit_is_answered_at_once(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.admit(9, high_watermark=1)
    leader.append()
    leader.sync()
    leader.fetch(2, high_watermark=1)
    out = leader.fetch(9, high_watermark=1)
    assert [(answer.connection, answer.high_watermark) for answer in answers(out)] == [(90, 2)]
    assert answers(leader.fetch(9, high_watermark=2)) == []


def test_an_append_answers_every_parked_fetch_once(make: Make) -> None:
    leader = Leading(make)
    for node_id in (2, 3, 9):
        leader.admit(node_id)
    _, out = leader.append()
    assert [answer.connection for answer in answers(out)] == [20, 30, 90]
    leader.sync()
    assert leader.append()[1] == []


# --- freezing, closing, contacts --------------------------------------------------------------------------------------


def test_an_admission_while_frozen_is_served_when_the_lane_resumes(make: Make) -> None:
    leader = Leading(make)
    leader.append(b"a")
    leader.lane.freeze(leader.now_us)
    assert leader.admit(2, 0) == []
    assert leader.lane.on_flushed(*leader.log.finish_sync(), leader.now_us) == []
    out = leader.lane.resume(leader.now_us)
    assert [answer.offsets for answer in answers(out)] == [[0, 1]]
    assert leader.lane.resume(leader.now_us) == []


def test_a_sync_that_ends_while_frozen_counts_when_the_lane_resumes(make: Make) -> None:
    leader = Leading(make, voters=(1, 2))
    leader.admit(2)
    leader.append(b"a")
    leader.fetch(2, 2)
    leader.lane.freeze(leader.now_us)
    assert leader.sync() == []
    assert leader.lane.high_watermark == 1
    assert advances(leader.lane.resume(leader.now_us)) == [2]


def test_nothing_is_answered_while_frozen_however_late(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.lane.freeze(leader.now_us)
    assert leader.tick(10_000_000) == []
    assert len(answers(leader.lane.resume(leader.now_us))) == 1


def test_closing_names_the_parked_fetches_and_fails_the_barriers(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2, version=17)
    state, out = leader.lane.close(leader.now_us)
    assert out == [Unparked(20, 1, 17)]
    assert (state.mode, state.epoch, state.log_end) == (LaneMode.LEADER, 5, 1)
    assert leader.lane.mode is LaneMode.CLOSED
    assert leader.append() == (AppendVerdict.NOT_LEADER, [])


def test_a_closed_lane_hands_up_requests_and_drops_late_answers(make: Make) -> None:
    leader = Leading(make)
    leader.lane.close(leader.now_us)
    leader.lane.resume(leader.now_us)
    assert leader.lane.on_frame(20, b"\x7f\xff\xff\xff", leader.now_us) == []
    assert handed_up(leader.fetch(2))


def test_contact_progress_and_being_caught_up_are_told_apart(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)  # at the log end: 1000

    def times() -> tuple[int, int, int]:
        (peer,) = leader.lane.freeze(leader.now_us).peers
        leader.lane.resume(leader.now_us)
        return peer.last_contact_us, peer.last_progress_us, peer.last_caught_up_us

    assert times() == (1_000, 1_000, 1_000)
    leader.append(b"a")
    leader.sync()
    leader.append(b"b")
    leader.now_us = 2_000
    leader.fetch(2, 2)  # advances, reaches the end seen at 1000
    assert times() == (2_000, 2_000, 1_000)
    leader.now_us = 3_000
    leader.admit(2, 2)  # again: no progress, not at the end
    assert times() == (3_000, 2_000, 1_000)
    leader.now_us = 4_000
    leader.fetch(2, 3)
    assert times() == (4_000, 4_000, 4_000)


# --- numbers and deadlines --------------------------------------------------------------------------------------------


def test_a_deadline_asked_for_while_a_caller_answers_the_last_parked_fetch_is_none() -> None:
    # Of the pure lane, whose shell asks without the lock.
    leader = Leading(Make(load_lane("pure"), load("native")))
    leader.admit(2)

    class Interleaved(dict[int, Any]):
        """Between the question's two looks at the lane, a caller's append gets its turn."""

        def values(self) -> Any:
            if len(leader.log.batches) == 1:
                assert len(answers(leader.append(b"a")[1])) == 1
            return super().values()

    inner = leader.lane._leader  # type: ignore[attr-defined]
    inner._served = Interleaved(inner._served)
    assert leader.lane.deadline_us == -1


def test_a_peer_that_would_take_everything_is_answered_in_parts(make: Make) -> None:
    leader = Leading(make)
    limits: list[int] = []
    read = leader.log.read
    leader.log.read = lambda offset, bytes_max: (limits.append(bytes_max), read(offset, bytes_max))[1]  # type: ignore
    leader.admit(2, 0, bytes_max=0x7FFF_FFFF)
    leader.admit(3, 0, bytes_max=-(2**31))
    assert limits == [ANSWER_BYTES_MAX, 1]


def test_the_first_number_of_a_lane_follows_its_last_one(make: Make) -> None:
    leader = Leading(make)
    leader.correlation_id = 0x7FFF_FFFE
    leader.admit(2)
    leader.append(b"a")
    leader.correlation_id = 0x3FFF_FFFF
    assert leader.fetch(2) == []
    _, out = leader.append(b"b")
    assert [answer.correlation_id for answer in answers(out)] == [0x4000_0000]


def test_a_peer_that_fetches_on_another_connection_does_not_leave_the_first_fetch_waiting(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    out = leader.admit(2, connection=21, max_wait_us=0)
    assert [each for each in out if isinstance(each, Unparked)] == [Unparked(20, 1, 18)]
    assert [answer.connection for answer in answers(out)] == [21]


def test_observers_that_are_gone_are_not_remembered_without_end(make: Make) -> None:
    leader = Leading(make)
    leader.admit(2)
    leader.lane.detach(20, leader.now_us)
    for node_id in range(10, 250):
        for directory in (1, 2):
            connection = 1_000 * node_id + directory
            fetch = FetchAdmission(
                connection, 1, 18, ReplicaKey(node_id, Uuid(bytes([directory]) * 16)), False, 1, 1, 0, 1
            )
            leader.lane.admit(fetch, leader.now_us)
            leader.lane.detach(connection, leader.now_us)
    peers = leader.lane.freeze(leader.now_us).peers
    assert len(peers) <= PEERS_MAX
    assert key(2) in [peer.key for peer in peers], "a voter is never forgotten"
