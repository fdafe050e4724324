"""The controller on a replica: it begins when it leads and has read all, answers when a majority has what it decided,
and forgets what was not committed. K43 (KAFKA-14275), K53 (KAFKA-15019); C8, C16."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.controller.decisions import Decision
from fastquorum.controller.partitions import elections
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.errors import ImageFailed
from fastquorum.node.metadata import controller as controller_role
from fastquorum.node.metadata.metrics import ControllerMetrics, measure_controller
from fastquorum.node.records.bootstrap_records import first_values
from fastquorum.node.records.no_ops import NO_OP
from fastquorum.storage.identity import LogKind
from fastquorum.types import Uuid
from fastquorum.wire import ApiKey, ErrorCode, Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from fastquorum.wire.messages.producers import InitProducerIdRequest
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from fastquorum.wire.records.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    NoOpRecord,
    ProducerIdsRecord,
)
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import RemoveTopicRecord
from tests.lane.builders import CLUSTER
from tests.node.rig import Rig
from tests.node.test_first_records import LEVELS, stored

SESSION = 9_000 * MS
CONTROLLER = ControllerSettings(CLUSTER)


def rig_of(*voters: int, **more: Any) -> Rig:
    more.setdefault("config", QuorumConfig(preallocate_bytes=4096))
    return Rig(*voters, kind=LogKind.METADATA, first_records=LEVELS, controller=CONTROLLER, **more)


def leader(*voters: int) -> Rig:
    return rig_of(*voters).lead()


def registration(broker_id: int = 1, incarnation: int = 1) -> BrokerRegistrationRequest:
    feature = BrokerRegistrationRequest.Feature
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER,
        incarnation_id=Uuid(bytes([incarnation]) * 16),
        listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="h", port=9092)],
        features=[
            feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, low, high in (
                ("metadata.version", 7, 30),
                ("kraft.version", 0, 1),
                ("group.version", 0, 1),
            )
        ],
        log_dirs=[Uuid(bytes([100 + broker_id]) * 16)],
    )


def register(rig: Rig, broker_id: int = 1, incarnation: int = 1) -> int:
    """A broker registers, and that is committed; its epoch."""
    connection = rig.accept()
    rig.ask(connection, registration(broker_id, incarnation), 4)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, BrokerRegistrationResponse)
    assert answer.error_code == 0
    return answer.broker_epoch


def heartbeat(rig: Rig, epoch: int, broker_id: int = 1, **fields: Any) -> BrokerHeartbeatRequest:
    fields.setdefault("current_metadata_offset", rig.log.end_offset - 1)
    return BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, **fields)


def beat(rig: Rig, epoch: int, broker_id: int = 1, **fields: Any) -> BrokerHeartbeatResponse:
    connection = rig.accept()
    rig.ask(connection, heartbeat(rig, epoch, broker_id, **fields), 2)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, BrokerHeartbeatResponse)
    return answer


def measured(rig: Rig) -> ControllerMetrics:
    role = rig.replica.controller
    assert role is not None
    return measure_controller(role, rig.now_us)


def test_a_broker_registers_and_its_epoch_is_where_its_record_is() -> None:
    rig = leader()
    end = rig.log.end_offset
    assert register(rig) == end
    assert rig.log.end_offset == end + 1
    assert not beat(rig, end).is_fenced
    assert rig.log.end_offset == end + 2


def test_an_answer_waits_for_the_commit() -> None:
    rig = leader()
    connection = rig.accept()
    rig.ask(connection, registration(), 4)
    assert rig.answers(connection) == [], "nothing of it is on a disk yet"
    rig.ask(connection, heartbeat(rig, rig.log.end_offset - 1), 2)
    assert rig.answers(connection) == [], "what was decided on an uncommitted registration waits with it"
    rig.sync()
    registered, beaten = rig.answers(connection)
    assert isinstance(registered, BrokerRegistrationResponse)
    assert isinstance(beaten, BrokerHeartbeatResponse)
    assert (registered.error_code, beaten.error_code, beaten.is_fenced) == (0, 0, False)


def test_who_is_refused_is_told_at_once_and_nothing_is_written() -> None:
    rig = leader()
    end = rig.log.end_offset
    answer = rig.answer_to(BrokerHeartbeatResponse, heartbeat(rig, 77), 2)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    answer_of_it = rig.answer_to(UnregisterBrokerResponse, UnregisterBrokerRequest(broker_id=9), 0)
    assert (answer_of_it.error_code, answer_of_it.error_message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "broker 9 is not registered",
    )
    assert rig.log.end_offset == end


@pytest.mark.parametrize(
    ("request_", "version", "response"),
    [
        (registration(), 4, BrokerRegistrationResponse),
        (BrokerHeartbeatRequest(broker_id=1), 2, BrokerHeartbeatResponse),
        (AlterPartitionRequest(broker_id=1), 3, AlterPartitionResponse),
        (UnregisterBrokerRequest(broker_id=1), 0, UnregisterBrokerResponse),
    ],
)
def test_a_follower_is_no_controller(request_: Message, version: int, response: type[Any]) -> None:
    rig = rig_of(1, 2, 3)
    rig.follow()
    assert rig.answer_to(response, request_, version).error_code == ErrorCode.NOT_CONTROLLER


def test_a_new_leader_decides_nothing_before_all_is_read_and_committed() -> None:
    rig = leader(1, 2, 3)
    answer = rig.answer_to(BrokerRegistrationResponse, registration(), 4)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER, "what it leads with is on no majority yet"
    follower = rig.accept()
    rig.fetch(follower, 2, rig.log.end_offset)
    assert rig.replica.high_watermark == rig.log.end_offset
    rig.work()
    connection = rig.accept()
    rig.ask(connection, registration(), 4)
    rig.sync()
    assert rig.answers(connection) == []
    rig.fetch(follower, 2, rig.log.end_offset)
    rig.work()
    (answered,) = rig.answers(connection)
    assert isinstance(answered, BrokerRegistrationResponse)
    assert answered.error_code == 0


def test_when_the_lead_ends_whoever_waits_asks_elsewhere() -> None:
    rig = leader(1, 2, 3)
    follower = rig.accept()
    rig.fetch(follower, 2, rig.log.end_offset)
    rig.work()
    connection = rig.accept()
    rig.ask(connection, registration(), 4)
    rig.sync()
    rig.follow(2, rig.replica.raft.epoch + 1)
    rig.work()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, BrokerRegistrationResponse)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


def test_a_silent_broker_is_fenced_and_its_session_is_soft() -> None:
    rig = leader()
    epoch = register(rig)
    beat(rig, epoch)
    rig.pass_time(SESSION // 2)
    rig.sync()
    assert not beat(rig, epoch).is_fenced
    rig.pass_time(SESSION // 2 + 100 * MS)
    rig.sync()
    assert not beat(rig, epoch, current_metadata_offset=0).is_fenced, "it was heard in time"
    rig.pass_time(SESSION + SESSION // 8 + 1)
    rig.sync()
    assert beat(rig, epoch, want_fence=True).is_fenced


def test_a_silent_broker_is_fenced_when_its_session_ends_and_not_at_the_next_look() -> None:
    rig = leader()
    epoch = register(rig)
    rig.pass_time(SESSION // 16)
    rig.sync()
    beat(rig, epoch)
    role = rig.replica.controller
    assert role is not None

    def is_fenced() -> bool:
        assert role.state is not None
        return role.state.image.brokers[1].fenced

    rig.pass_time(SESSION)
    rig.sync()
    assert not is_fenced()
    rig.pass_time(1)
    assert is_fenced()


def test_idle_it_appends_no_ops_of_which_nobody_learns_anything() -> None:
    rig = leader()
    rig.pass_time(1_100 * MS)
    rig.sync()
    own = 1
    assert stored(rig)[len(first_values(LEVELS)) + own :] == [NO_OP, NO_OP]
    assert register(rig) == rig.log.end_offset - 1, "offsets go on"


def after_restart(rig: Rig) -> Rig:
    """The controller on what a node has on its disk."""
    rig.sync()
    files = rig.disk.contents()
    return rig_of(files=files, state=rig.states.state).lead()


def test_a_restart_continues_with_what_the_log_says() -> None:
    rig = leader()
    epoch = register(rig)
    beat(rig, epoch)
    again = after_restart(rig)
    assert not beat(again, epoch).is_fenced


def test_a_transaction_that_a_former_leader_left_open_is_aborted() -> None:
    plain = Rig(kind=LogKind.METADATA, first_records=LEVELS).lead()
    plain.append(
        encode_metadata_record(BeginTransactionRecord(name="half"), 0),
        encode_metadata_record(ProducerIdsRecord(next_producer_id=5), 0),
    )
    rig = after_restart(plain)
    rig.work()
    rig.sync()
    aborted = encode_metadata_record(AbortTransactionRecord(reason="Controller failover"), 0)
    assert stored(rig)[-1] == aborted
    assert register(rig) == rig.log.end_offset - 1


def test_nothing_is_decided_while_that_cannot_be_aborted() -> None:
    """It would lie inside the transaction, and be thrown away with it."""
    plain = Rig(kind=LogKind.METADATA, first_records=LEVELS).lead()
    plain.append(encode_metadata_record(BeginTransactionRecord(name="half"), 0))
    plain.sync()
    rig = rig_of(files=plain.disk.contents(), state=plain.states.state)
    rig.shell.refuse_appends(True)
    rig.lead()
    rig.work()
    assert rig.shell.is_leader
    answer = rig.answer_to(BrokerRegistrationResponse, registration(), 4)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    rig.shell.refuse_appends(False)
    rig.work()
    rig.sync()
    assert stored(rig)[-1] == encode_metadata_record(AbortTransactionRecord(reason="Controller failover"), 0)
    assert register(rig) == rig.log.end_offset - 1


def test_a_record_that_does_not_fit_stops_the_replica() -> None:
    """K43: a follower, too, and nothing goes on without it."""
    rig = leader()
    rig.append(encode_metadata_record(RemoveTopicRecord(topic_id=Uuid(b"t" * 16)), 0))
    rig.sync()
    assert rig.replica.stopped
    assert isinstance(rig.replica.error, ImageFailed)
    assert "REMOVE_TOPIC_RECORD" in str(rig.replica.error)


def test_nobody_else_appends_by_the_door() -> None:
    rig = leader()
    connection = rig.accept()
    rig.ask(connection, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000), 4)
    assert connection not in rig.transport.open
    versions = rig.answer_to(ApiVersionsResponse, ApiVersionsRequest(), 4)
    keys = {each.api_key for each in versions.api_keys}
    assert {ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.ALTER_PARTITION} <= keys
    assert ApiKey.PRODUCE not in keys


# --- hostile, large and unlucky ---------------------------------------------------------------------------------------

TOPIC = CreateTopicsRequest.CreatableTopic


def create(*topics: CreateTopicsRequest.CreatableTopic) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics))


def config(name: str, value: str) -> Any:
    return TOPIC.CreatableTopicConfig(name=name, value=value)


@pytest.mark.parametrize(
    "bad",
    [
        TOPIC(name="t" * 32_767, num_partitions=1, replication_factor=1),
        TOPIC(name="b", num_partitions=1, replication_factor=1, configs=[config("retention.ms", "x" * 32_767)]),
        TOPIC(name="b", num_partitions=1, replication_factor=1, configs=[config("n" * 32_767, "1")]),
    ],
)
def test_what_a_client_sends_is_quoted_in_part_if_it_is_long(bad: Any) -> None:
    """An answer that could not be encoded would end the leader after the commit, and then the next one."""
    rig = leader()
    beat(rig, register(rig))
    connection = rig.accept()
    rig.ask(connection, create(TOPIC(name="ok", num_partitions=1, replication_factor=1), bad), 7)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, CreateTopicsResponse)
    good, answer_of_it = answer.topics
    assert (good.error_code, good.name) == (ErrorCode.NONE, "ok")
    assert answer_of_it.error_code != ErrorCode.NONE
    assert answer_of_it.error_message is not None
    assert 100 < len(answer_of_it.error_message) <= 1_000
    assert not rig.replica.stopped


def test_a_broker_proposes_all_its_isrs_at_once() -> None:
    """More elements than anybody else may send; what is too much for this, too, is hung up on."""
    rig = leader()
    epoch = register(rig)
    partition = AlterPartitionRequest.TopicData.PartitionData
    state = partition.BrokerState
    for count, is_read in ((20_000, True), (70_000, False)):
        members = [state(broker_id=each, broker_epoch=1) for each in (1, 2, 3)]
        request = [partition(partition_index=number, new_isr_with_epochs=members) for number in range(count)]
        topics = [AlterPartitionRequest.TopicData(topic_id=Uuid(b"t" * 16), partitions=request)]
        connection = rig.accept()
        rig.ask(connection, AlterPartitionRequest(broker_id=1, broker_epoch=epoch, topics=topics), 3)
        assert (connection in rig.transport.open) == is_read
        if is_read:
            (answer,) = rig.answers(connection)
            assert isinstance(answer, AlterPartitionResponse)
            answer_of_it = answer.topics[0].partitions
            assert [each.error_code for each in answer_of_it] == [ErrorCode.UNKNOWN_TOPIC_ID] * count


def test_more_than_a_batch_is_refused_before_anything_is_built_on_it() -> None:
    config = QuorumConfig(preallocate_bytes=4096, batch_bytes_max=4096)
    rig = rig_of(1, config=config).lead()
    beat(rig, register(rig))
    end = rig.log.end_offset
    answer = rig.answer_to(CreateTopicsResponse, create(TOPIC(name="t", num_partitions=200, replication_factor=1)), 7)
    (answer_of_it,) = answer.topics
    assert answer_of_it.error_code == ErrorCode.POLICY_VIOLATION
    assert answer_of_it.error_message is not None
    assert "do not fit into a batch of 4096" in answer_of_it.error_message
    assert rig.log.end_offset == end
    role = rig.replica._controller
    assert role is not None
    assert role.state is not None
    assert role.state.next_offset == end


def test_a_fault_that_a_request_brings_to_light_ends_no_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker whose request ended a controller would ask the next one, and end that."""
    rig = leader()
    beat(rig, register(rig))
    end = rig.log.end_offset

    def decide(*_: object, **__: object) -> None:
        raise ValueError("nobody thought of this")

    with monkeypatch.context() as fault:
        fault.setattr(controller_role, "decide", decide)
        answer = rig.answer_to(CreateTopicsResponse, create(TOPIC(name="t", num_partitions=1, replication_factor=1)), 7)
    assert [each.error_code for each in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert not rig.replica.stopped
    (sentence,) = [sentence for event, sentence in rig.listener.notices if event == "request_met_a_fault"]
    assert "CreateTopicsRequest met a fault of this controller: ValueError('nobody thought of this')" in sentence
    assert rig.log.end_offset == end
    assert register(rig, 2) >= end, "it goes on"


def test_while_its_thread_stands_still_nobody_is_fenced() -> None:
    """Heartbeats that nobody read were sent all the same."""
    rig = leader()
    epoch = register(rig)
    beat(rig, epoch)
    rig.now_us += 4 * SESSION
    rig.replica.on_tick(rig.now_us)
    rig.sync()
    assert not beat(rig, epoch, current_metadata_offset=0).is_fenced
    rig.pass_time(SESSION + SESSION // 8 + 1)
    rig.sync()
    assert beat(rig, epoch, want_fence=True).is_fenced


@pytest.mark.parametrize("left_us", [SESSION // 16, SESSION // 2])
@pytest.mark.parametrize("still_us", [SESSION // 10, 4 * SESSION])
def test_after_its_thread_stood_still_nobody_takes_the_id_of_a_broker_that_may_have_been_alive(
    left_us: int, still_us: int
) -> None:
    """The first frame that is read is a registration that waited; the heartbeat waits behind it."""
    rig = leader()
    epoch = register(rig)
    beat(rig, epoch)
    rig.pass_time(SESSION - left_us)
    rig.now_us += max(still_us, left_us + 1)
    connection = rig.accept()
    rig.ask(connection, registration(incarnation=2), 4)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, BrokerRegistrationResponse)
    assert answer.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert not beat(rig, epoch).is_fenced
    rig.pass_time(SESSION + SESSION // 8 + 1)
    rig.sync()
    register(rig, incarnation=2)


def test_a_no_op_that_cannot_be_appended_is_tried_again_when_the_next_is_due() -> None:
    rig = leader()
    register(rig)
    rig.shell.refuse_appends(True)
    rig.pass_time(600 * MS)
    ticks = 0
    until = rig.now_us + 1_000 * MS
    while 0 <= rig.replica.deadline_us <= until:
        rig.now_us = max(rig.replica.deadline_us, rig.now_us)
        rig.replica.on_tick(rig.now_us)
        ticks += 1
        assert ticks < 1_000
    rig.shell.refuse_appends(False)
    end = rig.log.end_offset
    rig.pass_time(600 * MS)
    assert rig.log.end_offset > end


def test_leads_come_back_to_whom_they_are_meant_for_after_a_while() -> None:
    rig = leader()
    epochs = {broker_id: register(rig, broker_id) for broker_id in (1, 2)}
    for broker_id, epoch in epochs.items():
        beat(rig, epoch, broker_id)
    assignment = TOPIC.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2])
    connection = rig.accept()
    rig.ask(connection, create(TOPIC(name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment])), 7)
    rig.sync()
    (made,) = rig.answers(connection)
    assert isinstance(made, CreateTopicsResponse)
    topic_id = made.topics[0].topic_id
    beat(rig, epochs[1], 1, want_fence=True)
    beat(rig, epochs[1], 1)

    def partition() -> Any:
        role = rig.replica._controller
        assert role is not None
        assert role.state is not None
        return role.state.image.topics.partition(topic_id, 0)

    now = partition()
    assert (now.leader, now.isr) == (2, (2,))
    request = AlterPartitionRequest.TopicData.PartitionData(
        partition_index=0, leader_epoch=now.leader_epoch, partition_epoch=now.partition_epoch
    )
    request.new_isr_with_epochs = [request.BrokerState(broker_id=each, broker_epoch=epochs[each]) for each in (1, 2)]
    topics = [AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=[request])]
    rig.ask(rig.accept(), AlterPartitionRequest(broker_id=2, broker_epoch=epochs[2], topics=topics), 3)
    rig.sync()
    assert partition().leader == 2
    for _ in range(74):  # of 4 s, with heartbeats between
        rig.pass_time(4_000 * MS)
        for broker_id, epoch in epochs.items():
            beat(rig, epoch, broker_id)
    assert partition().leader == 2
    rig.pass_time(4_000 * MS)
    rig.sync()
    assert partition().leader == 1


# --- more than a batch ------------------------------------------------------------------------------------------------


def many(partitions: int, **config: Any) -> tuple[Rig, dict[int, int]]:
    """Two brokers, and a topic whose partitions the first leads."""
    rig = rig_of(1, config=QuorumConfig(preallocate_bytes=4096, **config)).lead()
    epochs = {broker_id: register(rig, broker_id) for broker_id in (1, 2)}
    for broker_id, epoch in epochs.items():
        beat(rig, epoch, broker_id)
    assigned = [
        TOPIC.CreatableReplicaAssignment(partition_index=number, broker_ids=[1, 2]) for number in range(partitions)
    ]
    rig.ask(rig.accept(), create(TOPIC(name="t", num_partitions=-1, replication_factor=-1, assignments=assigned)), 7)
    rig.sync()
    return rig, epochs


def leads(rig: Rig) -> list[int]:
    role = rig.replica._controller
    assert role is not None
    assert role.state is not None
    topic = role.state.image.topics.named("t")
    assert topic is not None
    return [partition.leader for partition in topic.partitions]


def test_what_many_partitions_change_is_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_role, "RECORDS_PER_BATCH_MAX", 8)
    rig, epochs = many(20)
    rig.replica._controller._batch_bytes_max = 700  # type: ignore[union-attr]  # ten records, and not twenty
    begin = rig.log.end_offset
    assert beat(rig, epochs[1], want_fence=True).is_fenced
    assert leads(rig) == [2] * 20
    assert rig.log.end_offset == begin + 21


def test_a_broker_that_leads_more_than_fits_into_a_batch_is_fenced_in_several() -> None:
    """No piece of what may be cut off is too large: else a dead broker would lead for ever."""
    rig, epochs = many(20)
    rig.replica._controller._batch_bytes_max = 700  # type: ignore[union-attr]
    beat(rig, epochs[2], 2)
    rig.pass_time(SESSION - 1)
    beat(rig, epochs[2], 2)
    rig.pass_time(SESSION // 8 + 1)
    rig.sync()
    assert leads(rig) == [2] * 20
    rig.replica._controller._batch_bytes_max = 40  # type: ignore[union-attr]  # not one record
    assert beat(rig, epochs[2], 2, want_fence=True).error_code == ErrorCode.POLICY_VIOLATION


def test_what_is_cut_off_is_made_good_when_it_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence comes last: a broker whose partitions are not all taken from it is not fenced."""
    monkeypatch.setattr(controller_role, "RECORDS_PER_BATCH_MAX", 8)
    rig, epochs = many(20, append_queue_records_max=20)
    answer = beat(rig, epochs[1], want_fence=True)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert measured(rig).timed_out_heartbeats == 1
    assert sorted(leads(rig)) == [1] * 4 + [2] * 16
    role = rig.replica._controller
    assert role is not None
    assert role.state is not None
    assert not role.state.image.brokers[1].fenced
    assert beat(rig, epochs[1], want_fence=True).is_fenced
    assert leads(rig) == [2] * 20


@pytest.mark.parametrize("piece", [3, elections.PIECE_PARTITIONS])
def test_leaders_that_were_cut_off_are_elected_a_moment_later(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """The unfencing comes first: the broker is no longer asked about, so the controller looks itself."""
    monkeypatch.setattr(elections, "PIECE_PARTITIONS", piece)
    monkeypatch.setattr(controller_role, "RECORDS_PER_BATCH_MAX", 8)
    rig, epochs = many(20, append_queue_records_max=40)
    for broker_id in (1, 2):
        assert beat(rig, epochs[broker_id], broker_id, want_fence=True).is_fenced
    assert leads(rig) == [-1] * 20
    rig.replica._controller._shell._appends._records_max = 10  # type: ignore[union-attr]
    assert beat(rig, epochs[2], 2).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert sorted(leads(rig)) == [-1] * 13 + [2] * 7
    for _ in range(3):
        rig.pass_time(1_100 * MS)
        rig.sync()
    assert leads(rig) == [2] * 20


# --- faults of ours ---------------------------------------------------------------------------------------------------


def test_what_the_image_cannot_take_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the log it would stop every replica, at every start."""
    rig = leader()
    end = rig.log.end_offset
    impossible = Decision(UnregisterBrokerResponse(), [RemoveTopicRecord(topic_id=Uuid(b"t" * 16))])
    monkeypatch.setattr(controller_role, "decide", lambda *_, **__: impossible)
    answer = rig.answer_to(UnregisterBrokerResponse, UnregisterBrokerRequest(broker_id=1), 0)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "decided what cannot be" in str(answer.error_message)
    assert rig.log.end_offset == end
    assert not rig.replica.stopped
    assert measured(rig).errors == 1
    monkeypatch.undo()
    assert register(rig) == end


def test_nor_is_what_it_decides_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next controller would decide the same: were it fatal, a quorum would stop for one fault in deciding."""
    rig = leader()
    register(rig)
    impossible = [RemoveTopicRecord(topic_id=Uuid(b"t" * 16))]
    monkeypatch.setattr(controller_role.brokers, "fence_expired", lambda state, now_us: impossible)
    before = measured(rig).errors
    rig.pass_time(20_000_000)
    assert not rig.replica.stopped
    assert encode_metadata_record(impossible[0], 0) not in stored(rig)
    assert measured(rig).errors > before
    monkeypatch.undo()
    end = rig.log.end_offset
    assert register(rig, broker_id=2) == end


def test_of_a_decision_in_pieces_the_good_ones_are_kept_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = leader()
    end = rig.log.end_offset
    pieces: list[Message] = [NoOpRecord(), RemoveTopicRecord(topic_id=Uuid(b"t" * 16))]
    monkeypatch.setattr(controller_role, "RECORDS_PER_BATCH_MAX", 1)
    decision = Decision(UnregisterBrokerResponse(), pieces, is_atomic=False)
    monkeypatch.setattr(controller_role, "decide", lambda *_, **__: decision)
    answer = rig.answer_to(UnregisterBrokerResponse, UnregisterBrokerRequest(broker_id=1), 0)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert rig.log.end_offset == end + 1
    assert not rig.replica.stopped


def test_a_controller_whose_records_lie_elsewhere_than_decided_stops() -> None:
    """Its epochs are offsets. Only the controller may append: this is what is left if another caller does."""
    rig = leader()
    rig.append(encode_metadata_record(ProducerIdsRecord(next_producer_id=5), 0))  # by somebody who must not
    rig.ask(rig.accept(), registration(), 4)
    rig.sync()
    assert isinstance(rig.replica.error, ImageFailed)
    assert "somebody else appends to this log" in str(rig.replica.error)


def test_a_lead_begins_at_once_and_looks_through_its_partitions_between_other_things() -> None:
    rig = leader()
    register(rig)
    beat(rig, rig.log.end_offset - 1)
    connection = rig.accept()
    for number in range(3):
        rig.ask(connection, create(TOPIC(name=f"topic-{number}", num_partitions=400, replication_factor=1)), 7)
    rig.sync()
    assert all(each.topics[0].error_code == 0 for each in rig.answers(connection))
    again = after_restart(rig)
    role = again.replica.controller
    assert role is not None
    assert role.state is not None
    assert (role.state.index.is_whole, role.deadline_us) == (False, 0)
    connection = again.accept()
    again.ask(connection, create(TOPIC(name="while-it-looks", num_partitions=1, replication_factor=1)), 7)
    assert not role.state.index.is_whole
    again.pass_time(0)
    assert role.state.index.is_whole
    assert role.deadline_us > again.now_us
    assert len(role.state.index.led(1)) == 1_201


def test_of_what_came_together_nothing_counts_behind_a_frame_that_breaks_the_protocol() -> None:
    """The connection ends there, as if the rest had come later; what came on others is answered."""
    rig = leader()
    broken, other = rig.accept(), rig.accept()
    end = rig.log.end_offset
    rig.ask_together(
        (broken, b"\x7f\xff no such request"),
        (broken, rig.frame_of(registration(1), 4)),
        (other, rig.frame_of(registration(2), 4)),
    )
    rig.sync()
    assert broken not in rig.transport.open
    (answer,) = rig.answers(other)
    assert isinstance(answer, BrokerRegistrationResponse)
    assert rig.log.end_offset == end + 1
    role = rig.replica.controller
    assert role is not None
    assert role.state is not None
    assert list(role.state.image.brokers) == [2]
