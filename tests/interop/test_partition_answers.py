"""Partitions become the same under a controller of ours and under one of Kafka's: by moves that are overridden and
cancelled, and by heartbeats that say several things at once. They are read from the committed log of each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pytest

from fastquorum.client.committed import committed_fold
from fastquorum.controller.image.partition import Partition
from fastquorum.kernels import load
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from fastquorum.wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

from .alike import Side, Sides, both
from .brokers import WAIT_S
from .kafka import Kafka
from .test_describe_configs import bring_in

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

BROKERS: Final = (11, 12, 13, 14, 15, 16)
Epochs = dict[tuple[Side, int], int]
Answers = list[Any]


@pytest.fixture(scope="module")
def sides(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with both(kafka, tmp_path_factory.mktemp("partitions")) as started:
        yield started


@pytest.fixture
def epochs(sides: Sides) -> Epochs:
    """Broker epochs of each side; the brokers are alive when a test begins."""
    return {(side, broker): bring_in(side, broker) for side in sides for broker in BROKERS}


class Seen(NamedTuple):
    """One partition of one controller's."""

    side: Side
    topic: str
    topic_id: Uuid

    def now(self) -> Partition:
        found = committed_fold(self.side.client, load("pure"), WAIT_S).image.topics.partition(self.topic_id, 0)
        assert found is not None
        return found


def made(side: Side, name: str, replicas: list[int]) -> Seen:
    topic = CreateTopicsRequest.CreatableTopic
    wanted = topic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[topic.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
    )
    (result,) = side.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 7, CreateTopicsResponse).topics
    assert result.error_code == ErrorCode.NONE
    return Seen(side, name, result.topic_id)


def alike(sides: Sides, play: Callable[[Side], Answers]) -> Answers:
    """What comes of it under both."""
    theirs, ours = sides.ask(play)
    assert ours == theirs
    return ours


# --- moves ------------------------------------------------------------------------------------------------------------


def move(seen: Seen, target: Sequence[int] | None) -> tuple[int, Partition]:
    wanted = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition = wanted.ReassignablePartition(partition_index=0, replicas=None if target is None else list(target))
    request = AlterPartitionReassignmentsRequest(
        topics=[wanted(name=seen.topic, partitions=[partition])], timeout_ms=60_000
    )
    answer = seen.side.ask(request, 0, AlterPartitionReassignmentsResponse)
    return answer.responses[0].partitions[0].error_code, seen.now()


def join(seen: Seen, epochs: Epochs, *brokers: int) -> Partition:
    """The leader has these in sync as well."""
    data = AlterPartitionRequest.TopicData
    now = seen.now()
    wanted = data.PartitionData(
        partition_index=0,
        leader_epoch=now.leader_epoch,
        partition_epoch=now.partition_epoch,
        new_isr_with_epochs=[
            data.PartitionData.BrokerState(broker_id=each, broker_epoch=epochs[seen.side, each])
            for each in (*now.isr, *brokers)
        ],
    )
    request = AlterPartitionRequest(
        broker_id=now.leader,
        broker_epoch=epochs[seen.side, now.leader],
        topics=[data(topic_id=seen.topic_id, partitions=[wanted])],
    )
    result = seen.side.ask(request, 3, AlterPartitionResponse).topics[0].partitions[0]
    assert result.error_code in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)
    return seen.now()


@pytest.mark.parametrize("joined", [(), (14,)])
@pytest.mark.parametrize(
    "targets",
    [
        [(14, 15), (16, 12), None],
        [(14,), (14, 15), None],
        [(14, 12), (14, 11, 12), None],
        [(14, 15), (15, 14), (14, 15, 11), None],
        [(14, 15, 16), (13, 16, 15, 14), None],
        [(14, 15, 16), None, None],
    ],
)
def test_moves_that_are_overridden_and_cancelled(
    sides: Sides, epochs: Epochs, targets: list[tuple[int, ...] | None], joined: tuple[int, ...]
) -> None:
    name = "-".join("".join(map(str, each or ())) for each in (joined, *targets))

    def play(side: Side) -> Answers:
        seen = made(side, name, [11, 12, 13])
        answers: Answers = [move(seen, targets[0])]
        answers += [join(seen, epochs, *joined)] if joined else []
        return answers + [move(seen, each) for each in targets[1:]]

    alike(sides, play)


# --- heartbeats -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_cordoning", [False, True])
@pytest.mark.parametrize(
    "wish", [{}, {"want_fence": True}, {"want_shut_down": True}, {"want_fence": True, "want_shut_down": True}]
)
@pytest.mark.parametrize("is_fenced", [False, True])
def test_a_heartbeat_that_tells_of_a_failed_directory_beside_its_wish(
    sides: Sides, epochs: Epochs, is_fenced: bool, wish: dict[str, bool], is_cordoning: bool
) -> None:
    """Both are decided as if the other were not: a broker that comes back may lead what lies in that directory."""
    number = 30 + is_fenced * 8 + is_cordoning * 4 + wish.get("want_fence", False) * 2 + wish.get("want_shut_down", 0)
    failed, good = (Uuid(name + bytes((number,)) * 15) for name in (b"f", b"g"))

    def play(side: Side) -> Answers:
        epoch = bring_in(side, number, (failed, good))
        alone, shared, elsewhere = (
            made(side, f"{name}{number}", replicas)
            for name, replicas in (("alone", [number]), ("shared", [number, 11]), ("elsewhere", [number]))
        )
        assign(side, number, epoch, {failed: (alone, shared), good: (elsewhere,)})
        if is_fenced:
            beat(side, number, epoch, want_fence=True)
        answer = beat(
            side, number, epoch, offline_log_dirs=[failed], cordoned_log_dirs=[good] if is_cordoning else None, **wish
        )
        broker = committed_fold(side.client, load("pure"), WAIT_S).image.brokers[number]
        states = broker.fenced, broker.in_controlled_shutdown, broker.directories, broker.cordoned_directories
        return [answer, states, *(each.now() for each in (alone, shared, elsewhere))]

    answers = alike(sides, play)
    if is_fenced and not wish:
        assert answers[2].leader == number


def assign(side: Side, broker: int, epoch: int, places: dict[Uuid, tuple[Seen, ...]]) -> None:
    data = AssignReplicasToDirsRequest.DirectoryData
    directories = [
        data(
            id=directory,
            topics=[
                data.TopicData(topic_id=each.topic_id, partitions=[data.TopicData.PartitionData(partition_index=0)])
                for each in held
            ],
        )
        for directory, held in places.items()
    ]
    request = AssignReplicasToDirsRequest(broker_id=broker, broker_epoch=epoch, directories=directories)
    assert side.ask(request, 0, AssignReplicasToDirsResponse).error_code == ErrorCode.NONE


def beat(side: Side, broker: int, epoch: int, **fields: Any) -> tuple[bool, bool, bool]:
    request = BrokerHeartbeatRequest(broker_id=broker, broker_epoch=epoch, current_metadata_offset=2**40, **fields)
    result = side.ask(request, 2, BrokerHeartbeatResponse)
    assert result.error_code == ErrorCode.NONE
    return result.is_caught_up, result.is_fenced, result.should_shut_down
