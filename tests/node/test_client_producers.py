"""Idempotent producers: ids, sequences, batches sent again, before and after the lead changes hands."""

from typing import Any

import pytest

from fastquorum.config import MS
from fastquorum.errors import Overloaded
from fastquorum.kernels.lane import NO_CONNECTION
from fastquorum.kernels.producers import Stamp
from fastquorum.node.lane.producer_states import COUNTER_BITS, NAMED
from fastquorum.raft import events as ev
from fastquorum.types import TOPIC_NAME, ZERO_UUID
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from fastquorum.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse
from fastquorum.wire.messages.produce import ProduceResponse
from fastquorum.wire.messages.producers import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from fastquorum.wire.messages.quorum import VoteRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse
from tests.lane.builders import CLUSTER, fetch_response
from tests.node.rig import TOPIC, Rig, Ticket, endpoint, key
from tests.node.test_client_apis import produce, produced

PRODUCER = NAMED | 77


def batch(rig: Rig, sequence: int, count: int = 1, *, producer: int = PRODUCER, epoch: int = 0) -> bytes:
    """Return a batch as an idempotent client sends it."""
    return rig.kernels.encode_values(
        [b"v"] * count,
        base_offset=0,
        leader_epoch=0,
        timestamp_ms=1_000,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def send(
    rig: Rig, records: bytes, *, commit: bool = True
) -> ProduceResponse.TopicProduceResponse.PartitionProduceResponse:
    client = rig.accept()
    rig.ask(client, produce(records), 9)
    if commit:
        rig.sync()
    rig.work()
    (answer,) = rig.answers(client)
    return produced(answer)


def init(transactional_id: str | None = None) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1_000)


# --- sequences --------------------------------------------------------------------------------------------------------


def test_a_batch_sent_again_is_answered_with_its_offset_and_not_appended_again() -> None:
    rig = Rig().lead()
    first, second = send(rig, batch(rig, 0, 3)), send(rig, batch(rig, 3, 2))
    end = rig.log.end_offset
    again = send(rig, batch(rig, 0, 3))
    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert send(rig, batch(rig, 3, 2)).base_offset == second.base_offset
    assert rig.log.end_offset == end
    assert (rig.shell._appends.records, rig.shell._appends.size_bytes) == (0, 0)


def test_a_batch_sent_again_before_its_commit_is_answered_by_that_commit() -> None:
    rig = Rig(1, 2, 3).lead()
    client, impatient, follower = rig.accept(), rig.accept(), rig.accept()
    rig.fetch(follower, 2, 1)
    rig.ask(client, produce(batch(rig, 0, 2)), 9)
    rig.ask(impatient, produce(batch(rig, 0, 2)), 9)
    rig.sync()
    assert rig.answers(client) == rig.answers(impatient) == []
    rig.fetch(follower, 2, 3)
    (one,), (other,) = rig.answers(client), rig.answers(impatient)
    assert produced(one).base_offset == produced(other).base_offset == 1
    assert rig.log.end_offset == 3


def test_a_batch_sent_again_is_sent_away_with_the_first_when_the_lead_ends() -> None:
    rig = Rig(1, 2, 3).lead()
    clients = [rig.accept(), rig.accept()]
    for client in clients:
        rig.ask(client, produce(batch(rig, 0)), 9)
    rig.replica.request(ev.DiskStalled(), rig.now_us)
    for client in clients:
        (answer,) = rig.answers(client)
        assert produced(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("sequence", "epoch", "code"),
    [
        (2, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (4, 0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 2, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (-1, 1, ErrorCode.INVALID_RECORD),
        (0, -1, ErrorCode.INVALID_RECORD),
    ],
)
def test_what_is_not_a_producers_next_is_refused_and_changes_nothing(
    sequence: int, epoch: int, code: ErrorCode
) -> None:
    rig = Rig().lead()
    fenced = code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(rig, batch(rig, 0, 3, epoch=1 if fenced else 0)).error_code == 0
    end = rig.log.end_offset
    answer = send(rig, batch(rig, sequence, epoch=epoch))
    assert answer.error_code == code
    assert answer.error_message
    assert rig.log.end_offset == end
    assert rig.shell._appends.records == 0


def test_a_new_leader_knows_what_it_followed() -> None:
    """Its log holds the batches: that is where their producers are remembered."""
    rig = Rig(1, 2, 3)
    connection = rig.follow(leader_id=2, epoch=5)
    (header, _), *_ = rig.requests_on(connection)
    log = bytearray()
    for base, sequence in ((0, 10), (2, 12)):
        data = bytearray(batch(rig, sequence, 2))
        rig.kernels.stamp_batch(data, base, 5)
        log += data
    rig.replica.on_frame(connection, fetch_response(header.correlation_id, bytes(log), leader_id=2), rig.now_us)
    rig.sync()
    assert rig.log.end_offset == 4
    rig.transport.close(connection)
    rig.replica.on_disconnected(connection, rig.now_us)
    rig.lead()
    client, follower = rig.accept(), rig.accept()
    rig.ask(client, produce(batch(rig, 12, 2)), 9)
    rig.ask(client, produce(batch(rig, 99, 2)), 9)
    for _ in range(2):
        rig.fetch(follower, 3, rig.log.end_offset)
    rig.work()
    known, gap = (produced(answer) for answer in rig.answers(client))
    assert (known.error_code, known.base_offset) == (0, 2)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


FORBIDDEN = {
    "a gap": (5, 0, b"v", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    "other values": (0, 1, b"w", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    "an epoch that is over": (1, 0, b"v", ErrorCode.INVALID_PRODUCER_EPOCH),
    "an id that was not given out": (0, 0, b"v", ErrorCode.UNKNOWN_PRODUCER_ID),
}


def forbidden(rig: Rig, name: str) -> bytes:
    """A batch that a leader whose log has batches 0 and 1 of the producer, in epoch 1, refuses."""
    sequence, epoch, value, code = FORBIDDEN[name]
    return rig.kernels.encode_values(
        [value],
        base_offset=0,
        leader_epoch=0,
        timestamp_ms=2_000,
        producer_id=5 if code is ErrorCode.UNKNOWN_PRODUCER_ID else PRODUCER,
        producer_epoch=1 if name == "a gap" else epoch,
        base_sequence=sequence,
    )


def leader_with_a_producer(follower_id: int = 2) -> tuple[Rig, int]:
    """And a follower's connection, which has all of its log."""
    rig = Rig(1, 2, 3).lead()
    client, follower = rig.accept(), rig.accept()
    for sequence in range(2):
        rig.ask(client, produce(batch(rig, sequence, epoch=1)), 9)
    rig.sync()
    rig.fetch(follower, follower_id, 1)
    rig.fetch(follower, follower_id, rig.log.end_offset)
    assert [produced(each).error_code for each in rig.answers(client)] == [0, 0]
    return rig, follower


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_final_is_said_only_by_one_who_leads_still(name: str) -> None:
    """A leader that was deposed while it stood still has a log that lacks what was appended since."""
    rig, follower = leader_with_a_producer()
    client = rig.accept()
    rig.ask(client, produce(forbidden(rig, name)), 9)
    rig.work()
    assert rig.answers(client) == [], "nobody has confirmed yet that it leads"
    rig.fetch(follower, 2, rig.log.end_offset)
    rig.work()
    (answer,) = rig.answers(client)
    assert produced(answer).error_code == FORBIDDEN[name][3]
    assert produced(answer).error_message
    assert rig.shell.waiting() == (0, 0)


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_deposed_leader_sends_those_away_whom_it_would_refuse(name: str) -> None:
    rig, _ = leader_with_a_producer()
    client = rig.accept()
    rig.ask(client, produce(forbidden(rig, name)), 9)
    rig.ask(client, produce(forbidden(rig, name)), 9)
    rig.replica.request(ev.DiskStalled(), rig.now_us)
    rig.work()
    codes = [produced(answer).error_code for answer in rig.answers(client)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert rig.shell.waiting() == (0, 0)


def test_what_becomes_right_before_the_leader_is_confirmed_is_appended() -> None:
    """Its predecessor came later, on another connection."""
    rig, follower = leader_with_a_producer()
    late, early = rig.accept(), rig.accept()
    rig.ask(early, produce(batch(rig, 3, epoch=1)), 9)
    rig.ask(late, produce(batch(rig, 2, epoch=1)), 9)
    for _ in range(3):
        rig.fetch(follower, 2, rig.log.end_offset)
        rig.work()
        rig.sync()
    codes = [produced(answer).error_code for client in (late, early) for answer in rig.answers(client)]
    assert codes == [0, 0]


def test_an_append_that_waited_for_a_decision_is_checked_when_its_turn_comes() -> None:
    rig = Rig().lead()
    first = send(rig, batch(rig, 0))
    with rig.lock:
        rig.shell.freeze(rig.now_us)
    tickets = [Ticket(), Ticket(), Ticket()]
    for sequence, ticket in zip((1, 0, 5), tickets, strict=True):
        data = bytearray(batch(rig, sequence))
        rig.shell.append_encoded(data, 1, ticket, rig.now_us, Stamp(PRODUCER, 0, sequence, 1))
    assert len(rig.shell._appends.queued) == 3
    rig.replica.request(ev.TimerFired(), rig.now_us)
    rig.sync()
    rig.work()
    assert [ticket.offsets for ticket in tickets] == [[first.base_offset + 1], [first.base_offset], []]
    assert [type(error).__name__ for ticket in tickets for error in ticket.errors] == ["OutOfOrderSequence"]


def test_what_a_producer_has_is_not_told_while_an_append_waits_that_may_be_its_own() -> None:
    """Its next append would take the place of that one."""
    rig = Rig().lead()
    first = send(rig, batch(rig, 0))
    with rig.lock:
        rig.shell.freeze(rig.now_us)
    ticket = Ticket()
    rig.shell.append_encoded(bytearray(batch(rig, 1)), 1, ticket, rig.now_us, Stamp(PRODUCER, 0, 1, 1))
    with pytest.raises(Overloaded, match="have not been decided about yet"):
        rig.shell.producer(PRODUCER)
    rig.replica.request(ev.TimerFired(), rig.now_us)
    rig.sync()
    rig.work()
    assert ticket.offsets == [first.base_offset + 1]
    known = rig.shell.producer(PRODUCER)
    assert known is not None
    assert known.next_sequence == 2


def test_what_a_producer_has_is_not_told_before_a_refusal_is_confirmed() -> None:
    rig, follower = leader_with_a_producer()
    ticket = Ticket()
    rig.shell.append_encoded(bytearray(batch(rig, 3, epoch=1)), 1, ticket, rig.now_us, Stamp(PRODUCER, 1, 3, 1))
    with pytest.raises(Overloaded, match="have not been decided about yet"):
        rig.shell.producer(PRODUCER)
    rig.work()
    rig.fetch(follower, 2, rig.log.end_offset)
    rig.work()
    assert [type(error).__name__ for error in ticket.errors] == ["OutOfOrderSequence"]
    assert rig.shell.producer(PRODUCER) is not None


# --- ids --------------------------------------------------------------------------------------------------------------


def test_ids_are_the_leaders_epoch_and_a_counter() -> None:
    rig = Rig().lead()
    answers = [rig.answer_to(InitProducerIdResponse, init(), 4) for _ in range(3)]
    epoch = rig.replica.raft.epoch
    assert [each.producer_id for each in answers] == [epoch << COUNTER_BITS | number for number in range(3)]
    assert {(each.error_code, each.producer_epoch) for each in answers} == {(0, 0)}


def test_there_are_no_transactions() -> None:
    answer = Rig().lead().answer_to(InitProducerIdResponse, init("payments"), 4)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


def test_without_a_leader_there_are_no_ids_yet() -> None:
    answer = Rig(1, 2, 3).answer_to(InitProducerIdResponse, init(), 4)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def request_to_leader(rig: Rig, kind: type[Message] = InitProducerIdRequest) -> tuple[int, Any]:
    """The connection on which a follower asks the leader, for an id or else, and the request's header."""
    rig.establish()
    for connection in rig.outgoing(2):
        for header, message in rig.requests_on(connection):
            if isinstance(message, kind):
                return connection, header
    raise AssertionError("the leader was not asked")


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_follower_asks_the_leader_for_ids(code: ErrorCode) -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    client = rig.accept()
    rig.ask(client, init(), 4)
    connection, header = request_to_leader(rig)
    rig.reply(connection, header, InitProducerIdResponse(error_code=code, producer_id=1234, producer_epoch=0))
    (answer,) = rig.answers(client)
    assert isinstance(answer, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_id) == ((0, 1234) if code is ErrorCode.NONE else (code, -1))


def test_what_a_follower_forwards_goes_by_a_link_on_which_no_vote_has_to_wait_for_its_answer() -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    rig.ask(rig.accept(), init(), 4)
    connection, _ = request_to_leader(rig)
    rig.pass_time(2 * rig.config.fetch_timeout_us)  # it hears no more of its leader, and asks everybody for a vote
    rig.establish()
    requests = {each: [type(message) for _, message in rig.requests_on(each)] for each in rig.outgoing(2)}
    voting = [each for each, kinds in requests.items() if VoteRequest in kinds]
    assert voting
    assert connection not in voting


def test_a_follower_whose_leader_goes_away_says_try_again() -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    client = rig.accept()
    rig.ask(client, init(), 4)
    connection, _ = request_to_leader(rig)
    assert connection != NO_CONNECTION
    rig.transport.close(connection)
    rig.replica.on_disconnected(connection, rig.now_us)
    (answer,) = rig.answers(client)
    assert isinstance(answer, InitProducerIdResponse)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_client_that_left_is_not_answered() -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    client = rig.accept()
    rig.ask(client, init(), 4)
    rig.replica.on_disconnected(client, rig.now_us)
    connection, header = request_to_leader(rig)
    rig.reply(connection, header, InitProducerIdResponse(producer_id=1, producer_epoch=0))
    assert rig.transport.take(client) == []


def test_a_leader_that_does_not_answer_is_given_up() -> None:
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    client = rig.accept()
    rig.ask(client, init(), 4)
    request_to_leader(rig)
    rig.pass_time(rig.config.request_timeout_us)
    (answer,) = rig.answers(client)
    assert isinstance(answer, InitProducerIdResponse)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


# --- the quorum, as its leader describes it ---------------------------------------------------------------------------


def describe_quorum() -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(topics=[topic(topic_name=TOPIC_NAME, partitions=[topic.PartitionData()])])


def leaders_description() -> DescribeQuorumResponse:
    topic, node = DescribeQuorumResponse.TopicData, DescribeQuorumResponse.Node
    row = topic.PartitionData.ReplicaState(replica_id=2, replica_directory_id=key(2).directory_id, log_end_offset=9)
    partition = topic.PartitionData(leader_id=2, leader_epoch=5, high_watermark=9, current_voters=[row])
    return DescribeQuorumResponse(
        topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])], nodes=[node(node_id=2, listeners=[])]
    )


@pytest.mark.parametrize("version", range(3))
def test_a_follower_has_the_leader_describe_the_quorum(version: int) -> None:
    """In whichever version it is asked, though the leader is asked in the newest."""
    rig = Rig(1, 2, 3)
    rig.follow(leader_id=2, epoch=5)
    client = rig.accept()
    rig.ask(client, describe_quorum(), version)
    connection, header = request_to_leader(rig, DescribeQuorumRequest)
    rig.reply(connection, header, leaders_description())
    (answer,) = rig.answers(client)
    assert isinstance(answer, DescribeQuorumResponse)
    (row,) = answer.topics[0].partitions[0].current_voters
    assert (row.replica_id, row.log_end_offset) == (2, 9)
    assert (row.replica_directory_id, len(answer.nodes)) == (
        (key(2).directory_id, 1) if version == 2 else (ZERO_UUID, 0)
    )


@pytest.mark.parametrize("leader_goes_away", [True, False])
def test_who_cannot_have_it_described_says_that_it_does_not_lead(leader_goes_away: bool) -> None:
    rig = Rig(1, 2, 3)
    if leader_goes_away:
        rig.follow(leader_id=2, epoch=5)
    client = rig.accept()
    rig.ask(client, describe_quorum(), 2)
    if leader_goes_away:
        connection, _ = request_to_leader(rig, DescribeQuorumRequest)
        rig.transport.close(connection)
        rig.replica.on_disconnected(connection, rig.now_us)
    (answer,) = rig.answers(client)
    assert isinstance(answer, DescribeQuorumResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- who and what -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint_type", [1, 2])
def test_voters_are_shown_as_brokers_and_as_controllers(endpoint_type: int) -> None:
    rig = Rig(1, 2, 3).lead()
    answer = rig.answer_to(DescribeClusterResponse, DescribeClusterRequest(endpoint_type=endpoint_type), 2)
    assert (answer.error_code, answer.endpoint_type, answer.cluster_id, answer.controller_id) == (
        0,
        endpoint_type,
        CLUSTER,
        1,
    )
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
        (node_id, endpoint(node_id).host, endpoint(node_id).port) for node_id in (1, 2, 3)
    ]


def test_another_endpoint_type_is_refused() -> None:
    answer = Rig().lead().answer_to(DescribeClusterResponse, DescribeClusterRequest(endpoint_type=9), 2)
    assert (answer.error_code, answer.brokers) == (ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, [])


@pytest.mark.parametrize("version", range(7))
def test_there_is_no_coordinator(version: int) -> None:
    request = FindCoordinatorRequest(key="g") if version < 4 else FindCoordinatorRequest(coordinator_keys=["g", "h"])
    answer = Rig().lead().answer_to(FindCoordinatorResponse, request, version)
    codes = [answer.error_code] if version < 4 else [each.error_code for each in answer.coordinators]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * (1 if version < 4 else 2)


def configs_of(rig: Rig, kind: int, name: str, keys: list[str] | None = None) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    (result,) = rig.answer_to(DescribeConfigsResponse, DescribeConfigsRequest(resources=[resource]), 4).results
    return result


def test_configurations_of_the_topic_and_of_the_node() -> None:
    rig = Rig(1, 2, 3).lead()
    topic = configs_of(rig, 2, TOPIC)
    assert {each.name: each.value for each in topic.configs}["min.insync.replicas"] == "2"
    (fetch_timeout,) = configs_of(rig, 4, "1", ["controller.quorum.fetch.timeout.ms"]).configs
    assert fetch_timeout.value == str(rig.config.fetch_timeout_us // MS)
    assert all(each.read_only for each in [*topic.configs, fetch_timeout])


def test_a_resource_that_is_asked_about_twice_is_refused() -> None:
    """Thousands of answers would keep the quorum waiting."""
    own = DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    other = DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name=TOPIC)
    request = DescribeConfigsRequest(resources=[own, other, own])
    results = Rig(1, 2, 3).lead().answer_to(DescribeConfigsResponse, request, 4).results
    assert [each.error_code for each in results] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
    assert results[0].configs == []


@pytest.mark.parametrize(("kind", "name"), [(2, "other"), (4, "2"), (8, "1")])
def test_configurations_of_others_are_refused(kind: int, name: str) -> None:
    result = configs_of(Rig(1, 2, 3).lead(), kind, name)
    assert result.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST)
    assert result.configs == []
