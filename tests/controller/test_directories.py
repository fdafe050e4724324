"""Brokers tell in which of their directories their replicas lie. KIP-858."""

from collections.abc import Mapping, Sequence

from fastquorum.controller.brokers import directories
from fastquorum.controller.image.partition import DIRECTORY_UNASSIGNED
from fastquorum.controller.partitions import elections
from fastquorum.types import NO_NODE, Uuid
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.partitions import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from fastquorum.wire.records.cluster import FeatureLevelRecord
from tests.controller.rig import TOPIC_ID, Controller, directory_of, refusal, uuid

Directory = AssignReplicasToDirsRequest.DirectoryData
SECOND_DIRECTORY, LOST = uuid(601), uuid(602)


def two(level: int = 30) -> Controller:
    """Two brokers, the first with two directories, and two partitions on both."""
    controller = Controller(level=level)
    for broker_id, more in ((1, [SECOND_DIRECTORY]), (2, [])):
        controller.register(broker_id, log_dirs=[directory_of(broker_id), *more])
        controller.beat(broker_id)
    controller.topic([1, 2], [2, 1])
    return controller


def assign(
    controller: Controller, places: Mapping[Uuid, Sequence[int]], broker_id: int = 1, topic_id: Uuid = TOPIC_ID
) -> list[int]:
    """Partitions by directory; the code of each."""
    topic = Directory.TopicData
    request = AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=controller.broker(broker_id).epoch,
        directories=[
            Directory(
                id=where,
                topics=[
                    topic(topic_id=topic_id, partitions=[topic.PartitionData(partition_index=each) for each in numbers])
                ],
            )
            for where, numbers in places.items()
        ],
    )
    answer = controller.decide(directories.assign_replicas(controller.state, request))
    assert isinstance(answer, AssignReplicasToDirsResponse)
    assert [each.id for each in answer.directories] == list(places)
    return [each.error_code for place in answer.directories for topic in place.topics for each in topic.partitions]


def test_replicas_lie_where_their_broker_says() -> None:
    controller = two()
    assert assign(controller, {SECOND_DIRECTORY: [0, 1]}) == [0, 0]
    assert controller.partition(0).directories == (SECOND_DIRECTORY, directory_of(2))
    assert controller.partition(1).directories == (directory_of(2), SECOND_DIRECTORY)
    assert controller.partition(0).leader == 1
    assert controller.partition(0).leader_epoch == 0


def test_said_again_it_is_not_written_again() -> None:
    controller = two()
    assign(controller, {SECOND_DIRECTORY: [0]})
    assert assign(controller, {SECOND_DIRECTORY: [0]}) == [0]
    assert controller.written == []


def test_a_replica_in_a_directory_that_is_not_online_is_out_of_sync() -> None:
    controller = two()
    assert assign(controller, {LOST: [0, 1]}) == [0, 0]
    assert (controller.partition(0).leader, controller.partition(0).isr) == (2, (2,))
    assert (controller.partition(1).leader, controller.partition(1).isr) == (2, (2,))
    assert controller.partition(0).directories[0] == LOST


def test_a_broker_that_registered_before_directories_were_known_stays_in_sync() -> None:
    """metadata.version was raised since: until it registers again nobody knows which it has (KAFKA-16162)."""
    controller = two(level=16)
    controller.write(FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert controller.broker(1).directories == ()
    assert assign(controller, {SECOND_DIRECTORY: [0]}) == [0]
    assert (controller.partition(0).leader, controller.partition(0).isr) == (1, (1, 2))
    assert controller.partition(0).directories[0] == SECOND_DIRECTORY


def test_a_replica_whose_place_is_not_decided_yet_stays_in_sync() -> None:
    controller = two()
    assert assign(controller, {DIRECTORY_UNASSIGNED: [0]}) == [0]
    assert (controller.partition(0).leader, controller.partition(0).isr) == (1, (1, 2))


def test_when_the_directory_fails_what_was_moved_there_is_out_of_sync() -> None:
    controller = two()
    assign(controller, {SECOND_DIRECTORY: [0]})
    controller.beat(1, offline_log_dirs=[SECOND_DIRECTORY])
    assert controller.partition(0).isr == (2,)
    assert controller.partition(1).isr == (2, 1)


def test_each_is_answered_for_itself() -> None:
    controller = two()
    assert assign(controller, {SECOND_DIRECTORY: [0, 7]}) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert assign(controller, {SECOND_DIRECTORY: [0]}, topic_id=uuid(9)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    controller.start(3)
    assert assign(controller, {directory_of(3): [0]}, broker_id=3) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_replica_lies_in_one_place() -> None:
    controller = two()
    assert assign(controller, {SECOND_DIRECTORY: [0], directory_of(1): [0]}) == [0, ErrorCode.INVALID_REQUEST]
    assert controller.partition(0).directories[0] == SECOND_DIRECTORY


def test_another_incarnation_is_refused() -> None:
    controller = two()
    request = AssignReplicasToDirsRequest(broker_id=1, broker_epoch=controller.broker(1).epoch + 1)
    code = refusal(lambda: directories.assign_replicas(controller.state, request))
    assert code is ErrorCode.STALE_BROKER_EPOCH


def test_before_directories_were_known() -> None:
    controller = two(level=16)
    assert refusal(lambda: assign(controller, {SECOND_DIRECTORY: [0]})) is ErrorCode.UNSUPPORTED_VERSION


def test_a_replica_that_was_made_anew_elsewhere_is_not_eligible() -> None:
    """C9. The disk that it lay on is gone; the broker went in good order, and came back without that."""
    controller = Controller(elr=True)
    for broker_id, more in ((1, [SECOND_DIRECTORY]), (2, []), (3, [])):
        controller.register(broker_id, log_dirs=[directory_of(broker_id), *more])
        controller.beat(broker_id)
    controller.topic([2, 1, 3], configs={"min_insync_replicas": "2"})
    controller.beat(3, want_fence=True)
    controller.beat(1, offline_log_dirs=[directory_of(1)])
    assert (controller.partition().isr, controller.partition().elr) == ((2,), (1,))
    controller.beat(2, want_fence=True)
    controller.wait(20)
    controller.register(1, incarnation=2, log_dirs=[SECOND_DIRECTORY], previous_broker_epoch=controller.broker(1).epoch)
    controller.beat(1)
    assert controller.partition().elr == (1, 2)
    assert assign(controller, {SECOND_DIRECTORY: [0]}) == [0]
    assert controller.partition().elr == (2,)
    controller.beat(1)
    for election in elections.elect_missing(controller.state).elections(controller.state):
        controller.write(election)
    assert controller.partition().leader == NO_NODE
    controller.beat(2)
    assert controller.partition().leader == 2


def test_a_replica_that_moves_within_its_broker_stays_eligible() -> None:
    controller = Controller(elr=True)
    for broker_id, more in ((1, [SECOND_DIRECTORY]), (2, [])):
        controller.register(broker_id, log_dirs=[directory_of(broker_id), *more])
        controller.beat(broker_id)
    controller.topic([2, 1], configs={"min_insync_replicas": "2"})
    controller.alter([2])
    assert controller.partition().elr == (1,)
    assert assign(controller, {SECOND_DIRECTORY: [0]}) == [0]
    assert (controller.partition().directories[1], controller.partition().elr) == (SECOND_DIRECTORY, (1,))
