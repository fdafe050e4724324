"""Replica and lane shell together, over fake ports: freeze, decide, carry out, resume."""

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.errors import FatalError, FsyncFailed, NotLeader, StateStoreFailed
from fastquorum.kernels.lane import LaneState
from fastquorum.node.network.inbox import WaitingFrame
from fastquorum.raft import events as ev
from fastquorum.raft.effects import Effect
from fastquorum.raft.transitions import RoleName
from fastquorum.wire import ErrorCode, encode_request, request_header
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, BeginQuorumEpochResponse, VoteResponse
from tests.lane.builders import CLUSTER, control_batch, fetch_response, value_batch
from tests.node.rig import Rig, key, partition_of
from tests.node.test_replica_callers import vote

# --- the timer --------------------------------------------------------------------------------------------------------


def test_a_leader_that_its_voters_fetch_from_decides_nothing_when_its_timer_fires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(1, 2, 3).lead()
    voters = {2: rig.accept(), 3: rig.accept()}
    step, timers = rig.replica.raft.step, list[int]()

    def stepped(event: ev.Event, lane: LaneState | None, now_us: int) -> list[Effect]:
        if isinstance(event, ev.TimerFired):
            timers.append(now_us)
        return step(event, lane, now_us)

    monkeypatch.setattr(rig.replica.raft, "step", stepped)
    for _ in range(20):
        rig.append(b"value")
        for node_id, connection in voters.items():
            rig.fetch(connection, node_id, rig.log.end_offset)
        rig.pass_time(rig.config.fetch_timeout_us // 4)
    assert timers == []
    assert rig.replica.is_leader
    rig.pass_time(2 * rig.config.fetch_timeout_us)
    assert timers
    assert not rig.replica.is_leader


def test_a_lane_that_stands_goes_on_with_the_timer_of_a_leader_that_is_heard() -> None:
    rig = Rig(1, 2, 3).lead()
    voters = {2: rig.accept(), 3: rig.accept()}
    rig.shell.freeze(rig.now_us)
    assert rig.shell.is_standing
    rig.pass_time(rig.replica.raft.deadline_us - rig.now_us)
    assert not rig.shell.is_standing
    for node_id, connection in voters.items():
        rig.fetch(connection, node_id, rig.log.end_offset)
    assert rig.replica.is_leader


# --- a vote -----------------------------------------------------------------------------------------------------------


def test_a_vote_is_durable_before_its_answer_leaves() -> None:
    rig = Rig(1, 2, 3)
    rig.journal.clear()
    answer = rig.answer_to(VoteResponse, vote(epoch=3), 2)
    assert answer.topics[0].partitions[0].vote_granted
    kinds = [kind for kind, _ in rig.journal]
    assert kinds.index("save") < kinds.index("send")
    assert rig.states.state is not None
    assert (rig.states.state.epoch, rig.states.state.voted_key) == (3, key(2))


def test_a_vote_that_could_not_be_stored_is_not_answered_and_stops_the_replica() -> None:
    rig = Rig(1, 2, 3)
    rig.states.fails = True
    connection = rig.accept()
    rig.ask(connection, vote(epoch=3), 2)
    assert rig.answers(connection) == []
    assert isinstance(rig.replica.error, StateStoreFailed)
    rig.ask(connection, vote(epoch=4), 2)
    assert rig.answers(connection) == []


def test_a_parked_fetch_is_answered_not_leader_after_what_ended_the_lead_is_durable() -> None:
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    rig.fetch(connection, 2, 1)
    assert rig.answers(connection) == []
    rig.journal.clear()
    rig.ask(rig.accept(), vote(epoch=9, candidate=3), 2)
    (answer,) = rig.answers(connection)
    assert partition_of(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_of(answer).current_leader.leader_epoch == 9
    saved = [kind for kind, _ in rig.journal].index("save")
    assert saved < rig.journal.index(("send", connection))


def test_a_parked_fetch_is_told_where_the_next_leader_listens() -> None:
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    rig.fetch(connection, 2, 1)
    topic = BeginQuorumEpochRequest.TopicData
    partition = topic.PartitionData(leader_id=3, leader_epoch=9)
    begin = BeginQuorumEpochRequest(
        cluster_id=CLUSTER, topics=[topic(topic_name="__cluster_metadata", partitions=[partition])]
    )
    rig.ask(rig.accept(), begin, 1)
    (answer,) = rig.answers(connection)
    assert isinstance(answer, FetchResponse)
    assert partition_of(answer).current_leader.leader_id == 3
    assert [(each.node_id, each.host) for each in answer.node_endpoints] == [(3, "host3")]


def test_appends_in_the_log_are_told_that_their_fate_is_open_when_the_lead_ends() -> None:
    rig = Rig(1, 2, 3).lead()
    ticket = rig.append(b"x")
    rig.ask(rig.accept(), vote(epoch=9), 2)
    (error,) = ticket.errors
    assert isinstance(error, NotLeader)
    assert error.maybe_committed


def test_a_new_leader_takes_appends_by_the_time_it_is_announced() -> None:
    rig = Rig(1, 2, 3)
    inform = rig.listener.on_leadership
    appended = []

    def on_leadership(epoch: int, leader_id: int, endpoint: object, is_self: bool, reason: str) -> None:
        inform(epoch, leader_id, None, is_self, reason)
        if is_self:
            appended.append(rig.append(b"at once"))

    rig.listener.on_leadership = on_leadership  # type: ignore[method-assign]
    rig.lead()
    rig.fetch(rig.accept(), 2, rig.log.end_offset)
    assert [ticket.offsets for ticket in appended] == [[1]]


# --- the lane and what is not its own ---------------------------------------------------------------------------------


def test_a_consumers_fetch_does_not_freeze_the_lane() -> None:
    rig = Rig().lead()
    consumer = rig.accept()
    topic = FetchRequest.FetchTopic(topic="quorum", partitions=[FetchRequest.FetchTopic.FetchPartition(fetch_offset=1)])
    rig.ask(consumer, FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[topic]), 12)
    rig.append(b"x")
    assert not rig.shell._appends.queued
    rig.sync()
    (answer,) = rig.answers(consumer)
    assert b"x" in (partition_of(answer).records or b"")


def test_a_clients_request_on_a_replicas_connection_is_served_and_the_lane_goes_on() -> None:
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    rig.fetch(connection, 2, 1)
    rig.ask(connection, MetadataRequest(topics=None), 12)
    assert [type(answer) for answer in rig.answers(connection)] == [MetadataResponse]
    rig.append(b"x")
    assert not rig.shell._appends.queued
    assert [type(answer) for answer in rig.answers(connection)] == [FetchResponse]


@pytest.mark.parametrize(
    "garbage", [b"", b"\x00", b"\x00\x01\x00\x0c", b"\x00\x34\x00\x02" + b"\xff" * 40, b"\x7f" * 9]
)
def test_garbage_hangs_up_and_has_no_other_effect(garbage: bytes) -> None:
    rig = Rig(1, 2, 3).lead()
    connection, other = rig.accept(), rig.accept()
    rig.fetch(other, 2, 1)
    before = rig.replica.raft.describe()
    rig.replica.on_frame(connection, garbage, rig.now_us)
    assert connection not in rig.transport.open
    assert rig.replica.raft.describe() == before
    rig.append(b"x")
    assert len(rig.answers(other)) == 1


def test_a_handshake_of_a_version_yet_unknown_is_answered_in_the_oldest_form() -> None:
    rig = Rig(1, 2, 3)
    connection = rig.accept()
    rig.replica.on_frame(connection, bytes.fromhex("0012 0009 00000007 ffff 00 0102"), rig.now_us)
    assert rig.transport.take(connection) == [bytes.fromhex("00000007 0023 00000001 0012 0000 0004")]
    assert connection in rig.transport.open


def test_garbage_on_a_replicas_connection_hangs_up_and_resumes_the_lane() -> None:
    rig = Rig(1, 2, 3).lead()
    connection = rig.accept()
    rig.fetch(connection, 2, 1)
    rig.replica.on_frame(connection, b"\x00\x01\x00\x12garbage", rig.now_us)
    assert connection not in rig.transport.open
    rig.append(b"x")
    assert not rig.shell._appends.queued


def test_a_waiting_frame_of_a_connection_that_was_given_up_is_dropped() -> None:
    rig = Rig(1, 2, 3)
    connection = rig.follow(leader_id=2, epoch=5)
    rig.replica.on_disconnected(connection, rig.now_us)
    rig.replica._inbox.append(WaitingFrame(connection, fetch_response(1, epoch=7, leader_id=3), True))
    rig.work()
    assert rig.replica.raft.epoch == 5


# --- following --------------------------------------------------------------------------------------------------------


def fetch_of(rig: Rig, connection: int) -> tuple[int, FetchRequest]:
    ((header, message),) = rig.requests_on(connection)
    assert isinstance(message, FetchRequest)
    return header.correlation_id, message


def test_a_follower_fetches_again_only_when_what_came_is_on_its_disk() -> None:
    rig = Rig(1, 2, 3)
    connection = rig.follow()
    number, _ = fetch_of(rig, connection)
    records = control_batch(0, 5)
    rig.replica.on_frame(connection, fetch_response(number, records, leader_id=2, high_watermark=0), rig.now_us)
    assert rig.requests_on(connection) == []
    rig.sync()
    number, fetch = fetch_of(rig, connection)
    assert fetch.topics[0].partitions[0].fetch_offset == 1
    rig.replica.on_frame(connection, fetch_response(number, value_batch(1, 5), leader_id=2), rig.now_us)
    assert rig.requests_on(connection) == []
    rig.sync()
    assert fetch_of(rig, connection)[1].topics[0].partitions[0].fetch_offset == 2


def test_a_followers_high_watermark_never_passes_its_log() -> None:
    rig = Rig(1, 2, 3)
    connection = rig.follow()
    number, _ = fetch_of(rig, connection)
    rig.replica.on_frame(
        connection, fetch_response(number, control_batch(0, 5), leader_id=2, high_watermark=99), rig.now_us
    )
    assert rig.replica.high_watermark == 1
    assert rig.listener.committed == [1]


def test_a_fetch_without_answer_makes_the_follower_connect_anew() -> None:
    rig = Rig(1, 2, 3, config=QuorumConfig(preallocate_bytes=4096, request_timeout_us=700 * MS))
    connection = rig.follow()
    fetch_of(rig, connection)
    rig.pass_time(690 * MS)
    assert connection in rig.transport.open
    rig.pass_time(200 * MS)
    assert connection not in rig.transport.open
    rig.establish()
    link = rig.shell._fetch_link
    assert link is not None
    assert link.connection > connection
    assert fetch_of(rig, link.connection)[1].topics[0].partitions[0].fetch_offset == 0


def test_records_that_are_damaged_are_not_kept_and_fetched_again_but_not_at_once() -> None:
    rig = Rig(1, 2, 3)
    connection = rig.follow()
    number, _ = fetch_of(rig, connection)
    damaged = bytearray(value_batch(0, 5))
    damaged[-1] ^= 1
    rig.replica.on_frame(connection, fetch_response(number, bytes(damaged), leader_id=2), rig.now_us)
    assert rig.log.end_offset == 0
    assert rig.requests_on(connection) == []
    rig.pass_time(rig.config.retry_backoff_us)
    assert fetch_of(rig, connection)[1].topics[0].partitions[0].fetch_offset == 0


def test_a_control_batch_that_cannot_be_read_ends_the_connection_and_not_the_replica() -> None:
    rig = Rig(1, 2, 3)
    connection = rig.follow()
    number, _ = fetch_of(rig, connection)
    batch = bytearray(control_batch(0, 5))
    batch[61] = 0x7E  # the first record's length
    batch[17:21] = rig.kernels.crc32c(bytes(batch[21:])).to_bytes(4, "big")
    rig.replica.on_frame(connection, fetch_response(number, bytes(batch), leader_id=2), rig.now_us)
    assert not rig.replica.stopped
    assert connection not in rig.transport.open
    assert rig.log.end_offset == 0


def test_an_answer_to_the_fetch_of_an_earlier_lead_is_dropped() -> None:
    rig = Rig(1, 2, 3)
    old = rig.follow(leader_id=2, epoch=5)
    number, _ = fetch_of(rig, old)
    rig.follow(leader_id=3, epoch=6)
    rig.replica.on_frame(old, fetch_response(number, control_batch(0, 5), leader_id=2), rig.now_us)
    assert rig.log.end_offset == 0
    assert rig.replica.raft.leader_id == 3


def test_a_follower_that_asks_who_leads_while_its_fetch_is_parked_there_gets_both_answered() -> None:
    rig = Rig(1, 2, 3).lead()
    lanes, asking = rig.accept(), rig.accept()
    rig.fetch(lanes, 2, 1)
    rig.fetch(asking, 2, 1, max_wait_ms=0)
    assert len(rig.answers(asking)) == 1
    (answer,) = rig.answers(lanes)
    assert partition_of(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_of(answer).current_leader.leader_id == 1
    rig.fetch(lanes, 2, 1)
    rig.append(b"x")
    assert len(rig.answers(lanes)) == 1


# --- the disk ---------------------------------------------------------------------------------------------------------


def test_between_a_failed_sync_and_its_report_nothing_leaves() -> None:
    rig = Rig(1, 2, 3).lead()
    follower = rig.accept()
    rig.append(b"x")
    rig.flusher.failed = True
    rig.journal.clear()
    rig.fetch(follower, 2, 1)
    rig.ask(rig.accept(), vote(epoch=9), 2)
    assert "send" not in [kind for kind, _ in rig.journal]


def test_what_waited_for_a_handshake_does_not_leave_after_a_failed_sync() -> None:
    rig = Rig(1, 2, 3)
    rig.pass_time(3_000 * MS)
    (connection, *_) = [number for number in rig.transport.begun if number in rig.transport.open]
    rig.replica.on_connected(connection, rig.now_us)
    rig.flusher.failed = True
    rig.shake_hands(connection)
    assert rig.requests_on(connection) == []


def test_a_failed_sync_stops_the_replica_and_tells_everybody_who_waits() -> None:
    rig = Rig().lead()
    append, barrier = rig.append(b"x"), rig.barrier()
    rig.replica.on_flush(rig.flusher.pending[0][0], 5, rig.now_us)
    assert isinstance(rig.replica.error, FsyncFailed)
    assert append.errors == [rig.replica.error]
    assert barrier.offsets or barrier.errors
    assert rig.listener.stopped == [rig.replica.error]
    with pytest.raises(FatalError):
        rig.barrier()


def test_a_leader_whose_disk_stalls_resigns_and_does_not_stand_before_it_recovers() -> None:
    rig = Rig().lead()
    rig.append(b"x")
    rig.replica.request(ev.DiskStalled(), rig.now_us)
    assert not rig.replica.is_leader
    rig.pass_time(10_000 * MS)
    assert not rig.replica.is_leader
    rig.replica.request(ev.DiskRecovered(), rig.now_us)
    rig.sync()
    rig.pass_time(5_000 * MS)
    assert rig.replica.is_leader


# --- the end ----------------------------------------------------------------------------------------------------------


def test_a_leader_that_is_asked_to_stop_ends_its_lead_says_so_and_stops() -> None:
    rig = Rig(1, 2, 3).lead()
    rig.replica.request(ev.ShutdownRequested(), rig.now_us)
    assert rig.replica.raft.role is RoleName.RESIGNED
    rig.establish()
    messages = [message for node_id in (2, 3) for c in rig.outgoing(node_id) for _, message in rig.requests_on(c)]
    assert "EndQuorumEpochRequest" in {type(message).__name__ for message in messages}
    rig.pass_time(4_000 * MS)
    assert rig.listener.stopped == [None]
    assert all(at is None for at in rig.transport.open.values()), "its own connections are closed"


def test_after_the_end_frames_flushes_and_ticks_do_nothing() -> None:
    rig = Rig(1, 2, 3).lead()
    rig.append(b"x")
    rig.replica.halt(None, rig.now_us)
    rig.journal.clear()
    rig.ask(rig.accept(), vote(epoch=9), 2)
    rig.sync()
    rig.replica.on_tick(rig.now_us + 60_000 * MS)
    rig.work()
    assert rig.journal == []


def test_a_second_leader_of_an_epoch_is_refused() -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    connection = rig.accept()
    topic = BeginQuorumEpochRequest.TopicData
    begin = BeginQuorumEpochRequest(
        cluster_id=CLUSTER,
        topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(leader_id=3, leader_epoch=5)])],
    )
    frame = encode_request(request_header(begin, 1, 7, "other"), begin)
    rig.ask_frame(connection, frame)
    (answer,) = rig.answers(connection)
    assert isinstance(answer, BeginQuorumEpochResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert rig.replica.raft.leader_id == 2
