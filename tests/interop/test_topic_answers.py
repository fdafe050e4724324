"""A controller of ours and one of Kafka's answer alike about topics: what a new one is told to have, what is named more
than once, how much one request may make, and where nobody had to be elected."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from fastquorum.controller.image.configs import ResourceType
from fastquorum.types import ZERO_UUID, Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from fastquorum.wire.messages.partitions import ElectLeadersRequest, ElectLeadersResponse
from fastquorum.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

from .alike import NODE, Side, Sides, both
from .kafka import Kafka
from .test_describe_configs import bring_in, set_everywhere

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

BROKERS: Final = (11, 12, 13)
Topic = CreateTopicsRequest.CreatableTopic
Answers = list[Any]


@pytest.fixture(scope="module")
def sides(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with both(kafka, tmp_path_factory.mktemp("topics")) as started:
        yield started


@pytest.fixture(autouse=True)
def brokers(sides: Sides) -> None:
    """They are alive when a test begins."""
    for side in sides:
        for broker in BROKERS:
            bring_in(side, broker)


def alike(sides: Sides, ask: Callable[[Side], Answers]) -> Answers:
    """What both say."""
    theirs, ours = sides.ask(ask)
    assert ours == theirs
    return ours


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> Topic:
    """`_` in a name stands for a dot."""
    given = [Topic.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Topic(name=name, num_partitions=partitions, replication_factor=replicas, configs=given)


def create(side: Side, *topics: Topic, version: int = 7, validate_only: bool = False) -> Answers:
    """Kafka's order is that of the request, and of a hash table for what is named more than once."""
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=60_000, validate_only=validate_only)
    return sorted(
        (
            each.name,
            ErrorCode(each.error_code),
            each.error_message,
            each.num_partitions,
            each.replication_factor,
            each.topic_config_error_code,
            [(one.name, one.value, one.read_only, one.config_source, one.is_sensitive) for one in each.configs],
        )
        for each in side.ask(request, version, CreateTopicsResponse).topics
    )


def tried(*topics: Topic) -> Callable[[Side], Answers]:
    return lambda side: create(side, *topics, validate_only=True)


# --- what a new topic has ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_all_configurations_of_a_new_topic_are_told(sides: Sides, version: int) -> None:
    wanted = (
        topic(f"plain{version}", 2),
        topic(f"own{version}", retention_ms=" +7 ", internal_segment_bytes="2000000"),
    )
    own, plain = alike(sides, lambda side: create(side, *wanted, version=version))
    assert (len(plain[-1]) > 30, len(own[-1]) - len(plain[-1])) == ((version > 4), (version > 4))
    assert alike(sides, tried(topic("tried", 2)))[0][3:5] == (2, 1)


def test_the_source_of_each_is_told(sides: Sides) -> None:
    every, one = ("", str(NODE))
    of_all = {"log_retention_ms": "80000000", "log_roll_hours": " 3", "compression_type": " zstd "}
    of_one = {"log_retention_hours": "4", "log_roll_jitter_hours": "many", "log_cleaner_min_cleanable_ratio": "0.2500"}
    set_everywhere(sides, ResourceType.BROKER, every, **of_all)
    set_everywhere(sides, ResourceType.BROKER, one, **of_one)
    try:
        (made,) = alike(sides, tried(topic("sourced", 1, min_insync_replicas="1")))
        assert {source for *_, source, _ in made[-1]} == {1, 2, 3, 5}
    finally:
        set_everywhere(sides, ResourceType.BROKER, every, **dict.fromkeys(of_all))
        set_everywhere(sides, ResourceType.BROKER, one, **dict.fromkeys(of_one))


@pytest.mark.parametrize(
    "configs",
    [
        {"remote_storage_enable": "true"},
        {"remote_storage_enable": " True ", "cleanup_policy": "compact"},
        {"remote_storage_enable": "true", "min_compaction_lag_ms": "9", "max_compaction_lag_ms": "8"},
        {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"},
        {"remote_log_copy_disable": "true", "local_retention_ms": "-1", "retention_ms": "5"},
        {"local_retention_bytes": "99", "retention_bytes": "5"},
        {"local_retention_bytes": "-1", "local_retention_ms": "-1"},
    ],
)
def test_remote_logs_where_brokers_are_not_said_to_have_remote_storage(sides: Sides, configs: dict[str, str]) -> None:
    alike(sides, tried(topic("remote", **configs)))


# --- how much ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted",
    [
        [topic("many", 9_999), topic("never", 1, 9)],
        [topic("many", 9_998, retention_ms="5")],
        [topic("many", 9_999, retention_ms="5")],
        [topic("many", 9_998), topic("one", 1)],
        [topic("many", 10_000)],
        [topic("many", 9_999), topic("one", 2)],
        [topic("many", 9_999), topic("twice", 5), topic("twice", 5), topic("__cluster_metadata", 5)],
    ],
)
def test_what_a_request_may_make_at_most(sides: Sides, wanted: list[Topic]) -> None:
    alike(sides, tried(*wanted))


def grow(side: Side, *topics: tuple[str, int]) -> Answers:
    wanted = CreatePartitionsRequest.CreatePartitionsTopic
    named = [wanted(name=name, count=count, assignments=None) for name, count in topics]
    request = CreatePartitionsRequest(topics=named, timeout_ms=60_000, validate_only=True)
    results = side.ask(request, 3, CreatePartitionsResponse).results
    return sorted((each.name, each.error_code, each.error_message) for each in results)


def test_as_many_partitions_are_added(sides: Sides) -> None:
    alike(sides, lambda side: create(side, topic("grown")))
    assert alike(sides, lambda side: grow(side, ("grown", 10_001))) == [("grown", 0, None)]


# --- more than once ---------------------------------------------------------------------------------------------------


def test_a_topic_that_is_named_more_than_once(sides: Sides) -> None:
    names = ("d1", "d2", "d1", "__cluster_metadata", "d1", "d3", "d3")
    alike(sides, lambda side: create(side, *(topic(name) for name in names)))
    alike(sides, lambda side: create(side, topic("d1"), topic("d1")))
    alike(sides, lambda side: grow(side, ("d2", 5), ("d2", 6), ("d2", 7), ("nowhere", 3)))


def test_a_topic_that_is_deleted_more_than_once(sides: Sides) -> None:
    names, unknown = ("x1", "x2", "x3", "x4", "x5"), Uuid(b"q" * 16)

    def delete(side: Side) -> Answers:
        made = CreateTopicsRequest(topics=[topic(name) for name in names], timeout_ms=60_000)
        ids = {each.name: each.topic_id for each in side.ask(made, 7, CreateTopicsResponse).topics}
        state = DeleteTopicsRequest.DeleteTopicState
        wanted = [
            *(state(name=name) for name in ("x1", "x1", "x3", "x5", "nope", "nope", "no", "x2")),
            *(state(name=None, topic_id=ids[name]) for name in ("x2", "x2", "x2", "x3")),
            state(name="x4", topic_id=ids["x4"]),
            *(state(name=None, topic_id=each) for each in (ZERO_UUID, ZERO_UUID, unknown)),
        ]
        named = {each: name for name, each in ids.items()}
        results = side.ask(DeleteTopicsRequest(topics=wanted, timeout_ms=60_000), 6, DeleteTopicsResponse).responses
        return sorted(
            (each.name or "", named.get(each.topic_id, str(each.topic_id)), each.error_code, each.error_message or "")
            for each in results
        )

    alike(sides, delete)

    def delete_by_name(side: Side) -> Answers:
        request = DeleteTopicsRequest(topic_names=["x1", "x1", "x2", "n"], timeout_ms=60_000)
        results = side.ask(request, 5, DeleteTopicsResponse).responses
        return sorted((each.name, each.error_code, each.error_message) for each in results)

    alike(sides, delete_by_name)


def altered(answer: Any) -> Answers:
    return sorted(
        (each.resource_type, each.resource_name, each.error_code, each.error_message) for each in answer.responses
    )


def test_a_resource_that_is_changed_more_than_once(sides: Sides) -> None:
    alike(sides, lambda side: create(side, topic("c1"), topic("c2")))
    named = [(2, "c1"), (2, "c1"), (2, "c1"), (2, "c2"), (3, "z"), (3, "z"), (8, "1"), (8, "1"), (2, "nowhere")]

    def one_by_one(side: Side) -> Answers:
        wanted = IncrementalAlterConfigsRequest.AlterConfigsResource
        config = wanted.AlterableConfig
        of_topic = [config(name="retention.ms", config_operation=0, value="7")]
        of_logger = [config(name="root", config_operation=0, value="INFO")]
        resources = [
            wanted(resource_type=kind, resource_name=name, configs=of_logger if kind == 8 else of_topic)
            for kind, name in named
        ]
        request = IncrementalAlterConfigsRequest(resources=resources, validate_only=True)
        return altered(side.ask(request, 1, IncrementalAlterConfigsResponse))

    def at_once(side: Side) -> Answers:
        wanted = AlterConfigsRequest.AlterConfigsResource
        configs = [wanted.AlterableConfig(name="retention.ms", value="7")]
        resources = [
            wanted(resource_type=kind, resource_name=name, configs=configs) for kind, name in named if kind == 2
        ]  # Kafka's controller leaves a request that names another type without an answer
        return altered(side.ask(AlterConfigsRequest(resources=resources, validate_only=True), 2, AlterConfigsResponse))

    theirs, ours = sides.ask(one_by_one)
    loggers = [len([each for each in found if each[0] == 8]) for found in (theirs, ours)]
    assert loggers == [2, 2]  # ours has no loggers
    assert [each for each in ours if each[0] != 8] == [each for each in theirs if each[0] != 8]
    alike(sides, at_once)


# --- elections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [0, 1])
def test_every_topic_is_told_though_nobody_had_to_be_elected(sides: Sides, kind: int) -> None:
    alike(sides, lambda side: create(side, topic(f"led{kind}", 3)))

    def elect(side: Side) -> Answers:
        answer = side.ask(ElectLeadersRequest(election_type=kind, topic_partitions=None), 2, ElectLeadersResponse)
        return sorted((each.topic, each.partition_result) for each in answer.replica_election_results)

    assert (f"led{kind}", []) in alike(sides, elect)
