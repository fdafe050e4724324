"""Topics are made, given more partitions, listed, deleted; or refused with Kafka's error, and then nothing is written.

KIP-4, KIP-195, KIP-455, KIP-516, KIP-730; K62 (KAFKA-14358); C15.
"""

import random
from typing import Any

import pytest

from fastquorum.controller.definitions.topics import TOPIC_CONFIGS, config_fault
from fastquorum.controller.image import EMPTY
from fastquorum.controller.requests import decide
from fastquorum.types import ZERO_UUID
from fastquorum.wire import Message
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.partitions import ListPartitionReassignmentsRequest
from fastquorum.wire.messages.producers import AllocateProducerIdsRequest
from fastquorum.wire.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from fastquorum.wire.records.topics import PartitionChangeRecord
from tests.controller.rig import TOPIC_ID, Controller, directory_of, refusal, uuid

NewTopic = CreateTopicsRequest.CreatableTopic


def ask(controller: Controller, message: Message, version: int = 7) -> Any:
    return controller.decide(decide(controller.state, message, version, controller.now_us, random.Random(3)))


def three(**more: Any) -> Controller:
    controller = Controller(**more)
    controller.start(1, 2, 3)
    return controller


def topic(name: str = "t", partitions: int = 2, replicas: int = 3, **configs: str) -> NewTopic:
    named = [NewTopic.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return NewTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=named)


def chosen(*assignments: list[int], first: int = 0, **fields: Any) -> NewTopic:
    made = [
        NewTopic.CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
        for number, brokers in enumerate(assignments, first)
    ]
    fields = {"num_partitions": -1, "replication_factor": -1, **fields}
    return NewTopic(name="t", assignments=made, **fields)


def create(controller: Controller, *topics: NewTopic, **fields: Any) -> list[Any]:
    answer = ask(controller, CreateTopicsRequest(topics=list(topics), **fields))
    return list(answer.topics)


# --- creating ---------------------------------------------------------------------------------------------------------


def test_a_topic_is_made_with_all_its_partitions_led_and_in_sync() -> None:
    controller = three()
    (made,) = create(controller, topic(partitions=6, retention_ms="1000"))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 6, 3)
    held = controller.state.image.topics.named("t")
    assert held is not None
    assert held.id == made.topic_id
    assert [number for number, _ in held.partitions.items()] == list(range(6))
    for partition in held.partitions:
        assert sorted(partition.replicas) == [1, 2, 3]
        assert (partition.isr, partition.leader) == (partition.replicas, partition.replicas[0])
        assert partition.directories == tuple(directory_of(each) for each in partition.replicas)
    assert sorted(partition.leader for partition in held.partitions) == [1, 1, 2, 2, 3, 3]
    assert controller.state.topic_setting("t", "retention.ms") == "1000"


def test_a_fenced_broker_is_a_replica_and_not_in_sync() -> None:
    controller = three()
    controller.beat(3, want_fence=True)
    create(controller, topic(partitions=3))
    for partition in controller.state.image.topics.named("t").partitions:  # type: ignore[union-attr]
        assert 3 in partition.replicas
        assert 3 not in partition.isr


def test_a_broker_that_leaves_or_is_cordoned_is_given_nothing() -> None:
    controller = three()
    controller.topic([1, 2], name="held", topic_id=uuid(9))
    controller.beat(1, want_shut_down=True)
    controller.beat(2, cordoned_log_dirs=[directory_of(2)])
    (refused_,) = create(controller, topic(replicas=2))
    assert refused_.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    create(controller, topic(replicas=1, partitions=4))
    assert {each.leader for each in controller.state.image.topics.named("t").partitions} == {3}  # type: ignore[union-attr]


def test_a_broker_that_has_left_is_a_replica_and_not_in_sync() -> None:
    """While brokers are restarted one after another topics can still be made."""
    controller = three()
    controller.topic([1, 2], name="held", topic_id=uuid(9))
    controller.beat_all()
    controller.beat(1, want_shut_down=True)
    controller.beat_all()
    assert controller.beat(1, want_shut_down=True).should_shut_down
    assert controller.broker(1).in_controlled_shutdown
    (made,) = create(controller, topic(replicas=3))
    assert made.error_code == 0
    for partition in controller.state.image.topics.named("t").partitions:  # type: ignore[union-attr]
        assert sorted(partition.replicas) == [1, 2, 3]
        assert sorted(partition.isr) == [2, 3]


def test_defaults_are_the_controllers() -> None:
    controller = three(num_partitions=5, default_replication_factor=2)
    (made,) = create(controller, topic(partitions=-1, replicas=-1))
    assert (made.num_partitions, made.replication_factor) == (5, 2)


def test_the_caller_may_choose_the_brokers() -> None:
    controller = three()
    (made,) = create(controller, chosen([2, 1], [3, 2]))
    assert (made.error_code, made.num_partitions) == (0, 2)
    held = controller.state.image.topics.named("t")
    assert held is not None
    assert [each.replicas for each in held.partitions] == [(2, 1), (3, 2)]


def test_to_validate_writes_nothing() -> None:
    controller = three()
    (made,) = create(controller, topic(), validate_only=True)
    assert made.error_code == 0
    assert controller.written == []
    assert controller.state.image.topics.named("t") is None


@pytest.mark.parametrize(
    ("requested", "code", "text"),
    [
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty string"),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'.' or '..'"),
        (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "'a/b' is longer than 249"),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "longer than 249"),
        (topic("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topic: a.b"),
        (topic("a.b"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a.b' already exists."),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "prohibited"),  # K62
        (topic(partitions=0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (topic(partitions=-2), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (topic(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (topic(replicas=5), ErrorCode.INVALID_REPLICATION_FACTOR, "5 time(s)"),
        (topic(nonsense="1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nonsense"),
        (topic(retention_ms="soon"), ErrorCode.INVALID_CONFIG, "Invalid value soon"),
        (
            topic(min_compaction_lag_ms="2", max_compaction_lag_ms="1"),
            ErrorCode.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (2) > max.compaction.lag.ms (1)",
        ),
        (chosen([1], replication_factor=1), ErrorCode.INVALID_REQUEST, "replication factor was not set to -1"),
        (chosen([1], num_partitions=1), ErrorCode.INVALID_REQUEST, "numPartitions was not set to -1"),
        (chosen([]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
        (chosen([1, 9]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "includes broker 9"),
        (chosen([1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 1 more than once"),
        (chosen([1, 2], [1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "which have 2 replica(s)"),
        (chosen([1], first=1), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "consecutive 0-based"),
        (chosen([4]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "fenced or in controlled shutdown"),
    ],
)
def test_a_topic_that_cannot_be(requested: NewTopic, code: ErrorCode, text: str) -> None:
    controller = three()
    controller.register(4)
    controller.topic([1], name="a.b", topic_id=uuid(9))
    count = len(controller.records)
    (refused_,) = create(controller, requested)
    assert (refused_.error_code, len(controller.records)) == (code, count)
    assert text in refused_.error_message


def test_names_are_told_apart_by_what_is_there_now() -> None:
    """`a.b` and `a_b` are one to metrics; whoever is gone is in nobody's way."""
    controller = three()
    codes = [create(controller, topic(name))[0].error_code for name in ("a.b", "a_b", "ab", "c_d", "c.d")]
    assert codes == [0, 17, 0, 0, 17]
    ask(controller, DeleteTopicsRequest(topic_names=["a.b"]), 5)
    assert [create(controller, topic(name))[0].error_code for name in ("a_b", "a.b")] == [0, 17]
    controller.fail_over()
    assert [create(controller, topic(name))[0].error_code for name in ("a.b", "c.d", "e.f")] == [17, 17, 0]


def test_a_name_is_not_compared_with_all_there_are() -> None:
    """A hundred times as many topics, and the same work: a name is looked up, not looked for."""
    controller = three()
    create(controller, topic("first.one"))
    state = controller.state
    held, state.image = state.image, EMPTY
    try:
        assert [state.name_collisions.taken(name) for name in ("first_one", "other_one", "plain")] == [
            "first.one",
            None,
            None,
        ]
    finally:
        state.image = held


def test_one_that_cannot_be_does_not_keep_the_others() -> None:
    controller = three()
    results = create(controller, topic("a"), topic("b", replicas=9), topic("c"), topic("d"), topic("d"))
    assert [each.error_code for each in results] == [0, ErrorCode.INVALID_REPLICATION_FACTOR, 0, 42]
    assert sorted(controller.state.image.topics.ids) == ["a", "c"]


def test_with_eligible_leader_replicas_a_new_partition_has_none() -> None:
    controller = three(elr=True)
    create(controller, topic(min_insync_replicas="2"))
    assert all(not each.elr for each in controller.state.image.topics.named("t").partitions)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("cleanup.policy", "compact,delete", "compact,forget"),
        ("cleanup.policy", "delete , delete", "delete,"),
        ("follower.replication.throttled.replicas", "*", "*,0:1"),
        ("leader.replication.throttled.replicas", "0:1 , 1:2", "0"),
        ("min.cleanable.dirty.ratio", "0x1p-1", "0x1"),
        ("min.cleanable.dirty.ratio", "NaN", "Infinity"),
        ("min.cleanable.dirty.ratio", ".5d", "0x1p999999"),
        ("retention.bytes", "\t5\n", "\u00a05"),
        ("message.timestamp.type", " CreateTime", "createtime"),
        ("compression.gzip.level", "-1", "0"),
        ("compression.type", "zstd", "rar"),
        ("min.cleanable.dirty.ratio", "0.5", "1.5"),
        ("min.insync.replicas", "1", "0"),
        ("preallocate", "True", "maybe"),
        ("min.cleanable.dirty.ratio", "1", "0.0_1"),
        ("retention.bytes", "-1", "1e9"),
        ("retention.ms", " 1000 ", "1_000"),  # which Python takes and Java does not
        ("retention.ms", "+1", "٣"),
        ("segment.bytes", "1048576", "1024"),
    ],
)
def test_values_are_checked(name: str, good: str, bad: str) -> None:
    assert config_fault(name, good) == ""
    assert config_fault(name, bad) == f"Invalid value {bad} for configuration {name}"
    assert name in TOPIC_CONFIGS


# --- deleting ---------------------------------------------------------------------------------------------------------


def delete(controller: Controller, *states: tuple[str | None, Any]) -> list[Any]:
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states]
    return list(ask(controller, DeleteTopicsRequest(topics=topics), 6).responses)


def test_topics_are_deleted_by_name_and_by_id() -> None:
    controller = three()
    controller.topic([1, 2])
    controller.topic([2, 3], name="u", topic_id=uuid(2))
    gone = delete(controller, ("t", ZERO_UUID), (None, uuid(2)))
    assert [(each.name, each.topic_id, each.error_code) for each in gone] == [("u", uuid(2), 0), ("t", TOPIC_ID, 0)]
    assert not controller.state.image.topics.ids
    assert not controller.state.index.led(1)


def test_an_older_client_names_them() -> None:
    controller = three()
    controller.topic([1])
    answer = ask(controller, DeleteTopicsRequest(topic_names=["t", "u"]), 4)
    codes = {each.name: each.error_code for each in answer.responses}
    assert codes == {"t": 0, "u": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_what_cannot_be_deleted() -> None:
    controller = three()
    controller.topic([1])
    count = len(controller.records)
    got = delete(controller, ("t", TOPIC_ID), (None, ZERO_UUID), (None, ZERO_UUID), (None, uuid(5)), ("u", ZERO_UUID))
    assert [each.error_code for each in got] == [42, 42, 42, 100, 3]
    assert len(controller.records) == count


@pytest.mark.parametrize(("version", "code"), [(6, 73), (4, 73), (2, 42)])
def test_where_deletion_is_disabled_nothing_is_even_looked_at(version: int, code: int) -> None:
    controller = three(delete_topics=False)
    controller.topic([1])
    count = len(controller.records)
    states = [DeleteTopicsRequest.DeleteTopicState(name="t", topic_id=ZERO_UUID)]
    request = DeleteTopicsRequest(topic_names=["t"]) if version < 6 else DeleteTopicsRequest(topics=states)
    assert [(each.name, each.error_code) for each in ask(controller, request, version).responses] == [("t", code)]
    assert len(controller.records) == count


# --- more partitions --------------------------------------------------------------------------------------------------


def grow(controller: Controller, count: int, *assignments: list[int], name: str = "t") -> Any:
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    chosen_ = [kind.CreatePartitionsAssignment(broker_ids=each) for each in assignments] or None
    request = CreatePartitionsRequest(topics=[kind(name=name, count=count, assignments=chosen_)])
    return ask(controller, request, 3).results[0]


def test_partitions_are_added_with_as_many_replicas() -> None:
    controller = three()
    controller.topic([1, 2])
    assert grow(controller, 3).error_code == 0
    assert [len(controller.partition(number).replicas) for number in range(3)] == [2, 2, 2]
    assert grow(controller, 4, [3, 1]).error_code == 0
    assert controller.partition(3).replicas == (3, 1)


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (1, (), ErrorCode.INVALID_PARTITIONS),
        (0, (), ErrorCode.INVALID_PARTITIONS),
        (3, ([1, 2],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, ([1],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, ([1, 9],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (10_002, (), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_added(count: int, assignments: tuple[list[int], ...], code: ErrorCode) -> None:
    controller = three()
    controller.topic([1, 2])
    before = len(controller.records)
    assert grow(controller, count, *assignments).error_code == code
    assert grow(controller, 2, name="u").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(controller.records) == before


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_what_moves_is_listed() -> None:
    controller = three()
    controller.topic([1, 2], [2, 1])
    moving = PartitionChangeRecord(
        partition_id=1,
        topic_id=TOPIC_ID,
        replicas=[2, 1, 3],
        directories=[directory_of(each) for each in (2, 1, 3)],
        adding_replicas=[3],
    )
    controller.write(moving)
    everything = ask(controller, ListPartitionReassignmentsRequest(topics=None), 0)
    kind = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    named = ask(
        controller,
        ListPartitionReassignmentsRequest(
            topics=[kind(name="t", partition_indexes=[1, 0, 1, 7]), kind(name="u", partition_indexes=[0])]
        ),
        0,
    )
    for answer in (everything, named):
        ((listed,),) = (answer.topics,)
        ((partition,),) = (listed.partitions,)
        assert (listed.name, partition.partition_index) == ("t", 1)
        assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == ([2, 1, 3], [3], [])


def test_blocks_of_producer_ids_follow_each_other() -> None:
    controller = three()
    epoch = controller.broker(1).epoch
    blocks = [ask(controller, AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch), 0) for _ in range(2)]
    assert [(each.producer_id_start, each.producer_id_len) for each in blocks] == [(0, 1000), (1000, 1000)]
    controller.fail_over()
    again = ask(controller, AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch), 0)
    assert again.producer_id_start == 2000
    stale = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch + 1)
    assert refusal(lambda: ask(controller, stale, 0)) is ErrorCode.STALE_BROKER_EPOCH
