"""A replica whose file system is full: it takes nothing, leads nobody, votes, and goes on when there is room."""

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import NotLeader, RecordTooLarge
from fastquorum.node.replica import ROOM_LOOK_US
from fastquorum.raft.transitions import RoleName
from fastquorum.wire.messages.quorum import VoteResponse
from tests.lane.builders import control_batch, crowded_batch, encode_values, fetch_response
from tests.node.rig import Rig, Ticket
from tests.node.test_replica import fetch_of
from tests.node.test_replica_callers import vote

SMALL = QuorumConfig(preallocate_bytes=4096)
HALF = b"x" * 2048


def test_a_leader_without_room_says_why_it_leads_no_longer_and_leads_again_when_there_is() -> None:
    rig = Rig(config=SMALL).lead()
    rig.disk.room_bytes = 0
    taken = rig.append(b"into the zeros that are there")
    waiting = [rig.append(HALF), rig.append(HALF)]
    rig.work()
    rig.sync()
    assert not rig.replica.is_leader
    assert rig.listener.full == [True]
    errors = [error for each in (taken, *waiting) for error in each.errors]
    assert errors, "somebody was refused"
    assert all(isinstance(error, NotLeader) for error in errors)
    assert "no space is left" in str(errors[-1])
    assert "make room" in str(errors[-1])
    assert not errors[-1].maybe_committed  # type: ignore[attr-defined]
    rig.pass_time(20 * rig.config.election_timeout_us)
    assert not rig.replica.is_leader
    assert not rig.replica.stopped
    rig.disk.room_bytes = 100_000
    rig.pass_time(4 * ROOM_LOOK_US)
    rig.sync()
    assert rig.listener.full == [True, False]
    assert rig.replica.is_leader
    assert not str(rig.replica.not_leader()).count("no space")
    again = rig.append(HALF)
    rig.sync()
    assert again.offsets


def test_what_gathered_before_a_roll_goes_where_its_room_is() -> None:
    rig = Rig(config=QuorumConfig(preallocate_bytes=1024, segment_bytes=8192)).lead()
    first = rig.append(b"v" * 4500)
    rig.sync()
    for _ in range(3):
        rig.replica.on_tick(rig.now_us)  # the next segment is made ready, with 1 KiB of zeros
    rig.disk.room_bytes = 4000
    rig.append(b"being synced")
    rig.append(b"g" * 3000)
    rig.disk.room_bytes = -10_000  # what the old segment gives back is somebody else's at once
    too_much = rig.append(b"t" * 3000)
    rig.work()
    rig.sync()
    assert not rig.replica.stopped
    assert isinstance(too_much.errors[0], NotLeader)
    assert len(rig.log._segments) == 2
    assert rig.log.end_offset == first.offsets[0] + 3, "all but the last is there"


def test_an_append_that_no_batch_can_hold_is_refused_as_such_and_asks_for_no_room() -> None:
    rig = Rig(config=SMALL).lead()
    prepared = rig.log._segments[-1].prepared_bytes
    rig.disk.room_bytes = 10_000
    with pytest.raises(RecordTooLarge):
        rig.append(bytes(rig.config.batch_bytes_max + 1))
    assert rig.log._segments[-1].prepared_bytes == prepared
    assert rig.replica.is_leader
    assert rig.listener.full == []


def test_a_leader_without_room_serves_fetches_but_takes_no_appends_until_somebody_has_its_log() -> None:
    rig = Rig(1, 2, 3, config=SMALL).lead()
    voter = rig.accept()
    rig.fetch(voter, 2, rig.log.end_offset)
    rig.append(b"before")
    rig.sync()
    rig.disk.room_bytes = 0
    assert not rig.log.make_room(100_000, 1)
    rig.work()
    with pytest.raises(NotLeader, match="no space is left"):
        rig.append(b"refused")
    rig.answers(voter)
    rig.fetch(voter, 2, rig.log.end_offset)
    rig.pass_time(50 * MS)
    assert not rig.replica.is_leader
    assert rig.replica.raft.role is RoleName.RESIGNED


def test_an_append_on_a_follower_without_room_is_refused_and_changes_nothing() -> None:
    rig = Rig(1, 2, 3, config=SMALL)
    connection = rig.follow()
    number, _ = fetch_of(rig, connection)
    rig.disk.room_bytes = 0
    for _ in range(3):
        with pytest.raises(NotLeader):
            rig.append(HALF * 10)
    rig.work()
    assert rig.listener.full == []
    rig.replica.on_frame(connection, fetch_response(number, control_batch(0, 5), leader_id=2), rig.now_us)
    rig.sync()
    assert fetch_of(rig, connection)[1].topics[0].partitions[0].fetch_offset == 1


def test_upkeep_finds_the_disk_full_before_an_append_does() -> None:
    rig = Rig(config=SMALL).lead()
    rig.disk.room_bytes = 0
    rig.append(HALF)
    rig.sync()
    rig.replica.on_tick(rig.now_us)
    assert not rig.replica.is_leader
    assert rig.listener.full == [True]


def test_a_follower_without_room_asks_again_now_and_then_and_goes_on_when_there_is() -> None:
    rig = Rig(1, 2, 3, config=SMALL)
    connection = rig.follow()
    number, _ = fetch_of(rig, connection)
    rig.replica.on_frame(connection, fetch_response(number, control_batch(0, 5), leader_id=2), rig.now_us)
    rig.sync()
    rig.disk.room_bytes = 0
    values = encode_values([HALF] * 4, base_offset=1, leader_epoch=5, timestamp_ms=1)
    for _ in range(5):
        number, fetch = fetch_of(rig, connection)
        assert fetch.topics[0].partitions[0].fetch_offset == 1
        rig.replica.on_frame(connection, fetch_response(number, values, leader_id=2), rig.now_us)
        assert rig.requests_on(connection) == [], "not at once"
        rig.pass_time(rig.config.fetch_timeout_us // 4)
        assert rig.shell._fetch_link is not None
        assert rig.shell._fetch_link.connection == connection, "nothing is owed on it"
    assert rig.listener.full == [True]
    assert rig.log.end_offset == 1
    assert rig.replica.raft.role is RoleName.FOLLOWER
    rig.disk.room_bytes = 100_000
    rig.pass_time(ROOM_LOOK_US)
    number, _ = fetch_of(rig, connection)
    rig.replica.on_frame(connection, fetch_response(number, values, leader_id=2), rig.now_us)
    rig.sync()
    assert rig.log.end_offset == 5


def test_a_voter_without_room_votes_but_does_not_stand() -> None:
    rig = Rig(1, 2, 3, config=SMALL)
    rig.disk.room_bytes = 0
    assert not rig.log.make_room(10_000, 1)
    rig.work()
    rig.pass_time(10 * rig.config.election_timeout_us)
    assert rig.replica.raft.role is RoleName.UNATTACHED
    answer = rig.answer_to(VoteResponse, vote(epoch=9), 2)
    assert answer.topics[0].partitions[0].vote_granted
    assert rig.replica.raft.epoch == 9


def test_a_replica_that_starts_on_a_full_disk_tells_so_at_once() -> None:
    before = Rig(config=SMALL).lead()
    before.append(HALF)
    before.sync()
    before.log.close()
    rig = Rig(config=SMALL, room_bytes=0, files=before.disk.contents())
    assert rig.listener.full == [True]
    rig.pass_time(5_000 * MS)
    assert not rig.replica.is_leader
    rig.disk.room_bytes = 100_000
    rig.pass_time(5_000 * MS)
    rig.sync()
    assert rig.replica.is_leader


# --- records ----------------------------------------------------------------------------------------------------------


def append_crowded(rig: Rig, count: int) -> Ticket:
    """A client's batch that says it has so many records; all that is written is synced."""
    ticket = Ticket()
    rig.shell.append_encoded(bytearray(crowded_batch(0, 0, count)), count, ticket, rig.now_us)
    rig.work()
    rig.sync()
    return ticket


def fetch_crowded(rig: Rig, connection: int, *counts: int) -> None:
    """The leader, replica 2, answers with batches that say they have so many records."""
    number, fetch = fetch_of(rig, connection)
    offset, records = fetch.topics[0].partitions[0].fetch_offset, b""
    for count in counts:
        records += crowded_batch(offset, 5, count)
        offset += count
    rig.replica.on_frame(connection, fetch_response(number, records, leader_id=2), rig.now_us)
    rig.sync()


def following(rig: Rig) -> int:
    """Its connection to the leader, whose first record is there."""
    connection = rig.follow()
    number, _ = fetch_of(rig, connection)
    rig.replica.on_frame(connection, fetch_response(number, control_batch(0, 5), leader_id=2), rig.now_us)
    rig.sync()
    return connection


def bases(rig: Rig) -> list[int]:
    return [segment.base_offset for segment in rig.log._segments]


def test_a_leader_rolls_where_bytes_would_fit_but_records_would_not() -> None:
    rig = Rig().lead()
    first = rig.log.end_offset
    tickets = [append_crowded(rig, 2**30) for _ in range(3)]
    assert [ticket.offsets for ticket in tickets] == [[first + at * 2**30] for at in range(3)]
    assert bases(rig) == [0, first + 2**30]


def test_what_gathered_counts_among_the_records_of_the_segment() -> None:
    rig = Rig().lead()
    first = rig.log.end_offset
    append_crowded(rig, 2**31 - first - 10)
    gathers = [rig.append(b"v") for _ in range(8)]
    last = append_crowded(rig, 5)
    assert [ticket.offsets for ticket in gathers] == [[2**31 - 10 + at] for at in range(8)]
    assert last.offsets == [2**31 - 2]
    assert bases(rig) == [0, 2**31 - 2]


def test_a_leader_without_room_for_the_next_segment_writes_no_records_beyond_this_ones() -> None:
    rig = Rig(config=SMALL).lead()
    append_crowded(rig, 2**30)
    rig.disk.room_bytes = 0
    refused = append_crowded(rig, 2**30)
    assert isinstance(refused.errors[0], NotLeader)
    assert not rig.replica.stopped
    assert len(bases(rig)) == 1


def test_a_follower_rolls_where_bytes_would_fit_but_records_would_not() -> None:
    rig = Rig(1, 2, 3)
    connection = following(rig)
    fetch_crowded(rig, connection, 2**30, 2**29)
    fetch_crowded(rig, connection, 2**30)
    assert rig.log.end_offset == 1 + 5 * 2**29
    assert bases(rig) == [0, 1 + 3 * 2**29]


def test_a_follower_takes_no_more_of_an_answer_than_one_segment_does() -> None:
    rig = Rig(1, 2, 3)
    connection = following(rig)
    for sent, taken in ((5, 2), (3, 4), (1, 5)):
        fetch_crowded(rig, connection, *[2**30] * sent)
        assert rig.log.end_offset == 1 + taken * 2**30
    assert bases(rig) == [0, 1, 1 + 2**31, 1 + 2**32]
