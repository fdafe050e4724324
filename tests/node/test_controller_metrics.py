"""What a controller tells of itself and of the committed metadata, in numbers. C16."""

from typing import Any

from fastquorum.config import SECOND
from fastquorum.node.metadata.metrics import ControllerMetrics
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.topics import CreateTopicsResponse, DeleteTopicsRequest
from tests.node.rig import Rig
from tests.node.test_controller_role import TOPIC, beat, create, leader, measured, register, rig_of
from tests.node.test_snapshot_keeper import config_of, fill, reopened, take


def values(rig: Rig, *names: str) -> tuple[Any, ...]:
    found = measured(rig)
    return tuple(getattr(found, name) for name in names)


def topic(rig: Rig, name: str, *leaders: int) -> None:
    """Each partition is to be led by one of brokers 1 and 2, and is on both."""
    replicas = [[each, 3 - each] for each in leaders]
    assigned = [
        TOPIC.CreatableReplicaAssignment(partition_index=number, broker_ids=each)
        for number, each in enumerate(replicas)
    ]
    connection = rig.accept()
    rig.ask(connection, create(TOPIC(name=name, num_partitions=-1, replication_factor=-1, assignments=assigned)), 7)
    rig.sync()
    (answer,) = rig.answers(connection)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE


PARTITIONS = ("topics", "partitions", "offline_partitions", "imbalanced_partitions")
BROKERS = ("active_brokers", "fenced_brokers", "leaving_brokers")


def with_topics(**fields: Any) -> tuple[Rig, dict[int, int]]:
    rig = rig_of(config=config_of(**fields)).lead()
    epochs = {broker_id: register(rig, broker_id) for broker_id in (1, 2)}
    for broker_id, epoch in epochs.items():
        beat(rig, epoch, broker_id)
    topic(rig, "a", 1, 2, 2)
    topic(rig, "b", 1)
    return rig, epochs


def test_brokers_are_counted_by_their_state() -> None:
    rig = leader()
    assert values(rig, *BROKERS) == (0, 0, 0)
    epochs = {broker_id: register(rig, broker_id) for broker_id in (1, 2, 3)}
    assert values(rig, *BROKERS) == (0, 3, 0)
    for broker_id in (1, 2):
        beat(rig, epochs[broker_id], broker_id)
    assert values(rig, *BROKERS) == (2, 1, 0)


def test_one_that_shuts_down_is_active_until_it_is_fenced() -> None:
    rig, epochs = with_topics()
    beat(rig, epochs[1], 1, want_shut_down=True)
    assert values(rig, *BROKERS) == (2, 0, 1)
    assert values(rig, *PARTITIONS) == (2, 4, 0, 2), "2 leads them now, which is not the first of two of them"


def test_partitions_are_counted_as_they_change() -> None:
    rig, epochs = with_topics()
    assert values(rig, *PARTITIONS) == (2, 4, 0, 0)
    beat(rig, epochs[2], 2, want_fence=True)
    assert values(rig, *PARTITIONS) == (2, 4, 0, 2)
    beat(rig, epochs[1], 1, want_fence=True)
    assert values(rig, *PARTITIONS) == (2, 4, 4, 4)
    rig.ask(rig.accept(), DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="a")]), 6)
    assert values(rig, *PARTITIONS) == (2, 4, 4, 4), "nothing counts before it is committed"
    rig.sync()
    assert values(rig, *PARTITIONS) == (1, 1, 1, 1)


def test_a_restart_counts_the_same_from_the_log_and_from_a_snapshot() -> None:
    rig, epochs = with_topics(retention_bytes=1)
    beat(rig, epochs[2], 2, want_fence=True)
    before = values(rig, *PARTITIONS)
    again = reopened(rig).lead()
    again.pass_time(1)
    assert values(again, *PARTITIONS) == before == (2, 4, 0, 2)
    fill(rig, 1000)
    take(rig)
    fill(rig, 1500)
    take(rig)
    assert rig.log.start_offset > 0
    again = reopened(rig).lead()
    again.pass_time(1)
    assert values(again, *PARTITIONS) == values(rig, *PARTITIONS)
    assert values(again, *PARTITIONS)[:2] == (2, 4)


def test_who_is_active_and_how_far_it_is_are_told() -> None:
    rig = leader()
    end = rig.log.end_offset
    found = measured(rig)
    assert (found.is_active, found.last_applied, found.last_committed, found.new_leaders) == (True, end - 1, end - 1, 1)
    connection = rig.accept()
    rig.ask(connection, create(TOPIC(name="t", num_partitions=1, replication_factor=1)), 7)
    rig.pass_time(1)
    assert values(rig, "last_applied", "last_committed") == (end, end - 1), "its own registration is not committed yet"
    rig.sync()
    assert values(rig, "last_applied", "last_committed") == (end, end)


def test_a_follower_counts_the_leaders_it_hears_of() -> None:
    rig = rig_of(1, 2, 3)
    none: ControllerMetrics = measured(rig)
    assert (none.is_active, none.last_applied, none.last_committed, none.new_leaders) == (False, -1, -1, 0)
    rig.follow(2, 5)
    rig.follow(3, 6)
    rig.follow(3, 6)
    assert values(rig, "is_active", "new_leaders") == (False, 2)


def test_a_snapshot_is_told_by_its_size_and_age() -> None:
    rig = rig_of(config=config_of()).lead()
    rig.pass_time(6 * SECOND)
    size_bytes, age_us = values(rig, "snapshot_bytes", "since_snapshot_us")
    assert size_bytes == 0
    assert age_us >= 5 * SECOND, "since it was started"
    fill(rig, 1000)
    snapshot = take(rig)
    assert values(rig, "snapshot_bytes", "since_snapshot_us") == (rig.log.snapshots.size_bytes(snapshot), 0)
    rig.pass_time(3 * SECOND)
    assert values(rig, "since_snapshot_us", "errors") == (3 * SECOND, 0)


def test_a_snapshot_that_could_not_be_written_is_an_error() -> None:
    rig = rig_of(config=config_of()).lead()
    fill(rig, 1000)
    rig.pass_time(1)
    rig.disk.room_bytes = 0
    rig.snapshots.finish()
    assert values(rig, "errors", "snapshot_bytes") == (1, 0)
