"""A controller of ours and one of Kafka's are told the same, and describe what was set alike: every type of resource,
every source, every error."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from fastquorum.controller.image.configs import ResourceType
from fastquorum.controller.image.features import SUPPORTED
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fastquorum.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

from .alike import NODE, Side, Sides, both
from .brokers import OURS, wait_for
from .kafka import Kafka
from .nodes import CLUSTER_ID

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

BROKER: Final = 11
STATIC: Final = 4
"""The source of what a node was started with; below it is what was set since."""
OTHER_VALUES: Final = {"max.connections", "listener.name.controller.max.connections", *OURS}
"""Configurations with another default in our nodes, or set when these nodes are started."""

_LATER = itertools.count(1_000)

Answers = dict[str, Any]


def describe(
    side: Side, *resources: tuple[int, str], version: int = 4, synonyms: bool = True, keys: list[str] | None = None
) -> list[Answers]:
    """Without what is written in prose, and in no order."""
    wanted = [
        DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name in resources
    ]
    request = DescribeConfigsRequest(resources=wanted, include_synonyms=synonyms)
    return [_plain(each) for each in side.ask(request, version, DescribeConfigsResponse).results]


def set_configs(side: Side, kind: int, name: str, **values: str | None) -> ErrorCode:
    """`_` in a name stands for a dot."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        resource.AlterableConfig(name=key.replace("_", "."), config_operation=int(value is None), value=value)
        for key, value in values.items()
    ]
    wanted = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configs=configs)]
    )
    (answer,) = side.ask(wanted, 1, IncrementalAlterConfigsResponse).responses
    return ErrorCode(answer.error_code)


def _plain(result: DescribeConfigsResponse.DescribeConfigsResult) -> Answers:
    entries = {
        each.name: (
            each.value,
            each.read_only,
            each.config_source,
            each.is_sensitive,
            each.config_type,
            each.documentation,
            [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
        )
        for each in result.configs
    }
    assert len(entries) == len(result.configs)
    return {
        "resource": (result.resource_type, result.resource_name),
        "error": ErrorCode(result.error_code),
        "has_text": bool(result.error_message),
        "configs": entries,
    }


def bring_in(side: Side, broker_id: int = BROKER, directories: Sequence[Uuid] = ()) -> int:
    """A broker that only its registration knows is unfenced, or still is; its epoch."""
    feature = BrokerRegistrationRequest.Feature
    registration = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=Uuid(bytes((broker_id,)) * 16),
        listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="nowhere", port=9)],
        features=[
            feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
        log_dirs=list(directories) or [Uuid(bytes((broker_id + 100,)) * 16)],
        rack=None,
    )
    registered = side.ask(registration, 4, BrokerRegistrationResponse)
    assert registered.error_code == 0

    def is_unfenced() -> bool:
        beat = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=registered.broker_epoch, current_metadata_offset=2**40
        )
        return not side.ask(beat, 1, BrokerHeartbeatResponse).is_fenced

    wait_for("the broker to be unfenced", is_unfenced)
    return int(registered.broker_epoch)


def make_topics(side: Side) -> None:
    """On one broker."""
    bring_in(side)
    topic = CreateTopicsRequest.CreatableTopic
    config = topic.CreatableTopicConfig
    topics = [
        topic(name="plain", num_partitions=1, replication_factor=1),
        topic(
            name="own",
            num_partitions=1,
            replication_factor=1,
            configs=[
                config(name="retention.ms", value=" +90000000 "),
                config(name="cleanup.policy", value="compact , delete"),
                config(name="preallocate", value="TRUE"),
                config(name="min.cleanable.dirty.ratio", value="0.00012"),
                config(name="follower.replication.throttled.replicas", value="0:1, 1:2"),
            ],
        ),
    ]
    created = side.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7, CreateTopicsResponse)
    assert [each.error_code for each in created.topics] == [0, 0]


@pytest.fixture(scope="module")
def sides(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with both(kafka, tmp_path_factory.mktemp("configs")) as started:
        for side in started:
            make_topics(side)
        yield started


TOPIC, NODES, LOGGERS, METRICS, GROUP = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


def set_everywhere(sides: Sides, kind: int, name: str, **values: str | None) -> None:
    assert sides.ask(lambda side: set_configs(side, kind, name, **values)) == (ErrorCode.NONE, ErrorCode.NONE)
    # Kafka's node describes what it has published, which comes a moment after its controller has answered.
    later = str(next(_LATER))
    assert set_configs(sides.theirs, METRICS, "later", interval_ms=later) == ErrorCode.NONE

    def is_published() -> bool:
        return bool(describe(sides.theirs, (METRICS, "later"))[0]["configs"]["interval.ms"][0] == later)

    wait_for("what was set to be published", is_published)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("synonyms", [True, False])
def test_topics_groups_and_subscriptions_that_nothing_was_set_for(sides: Sides, version: int, synonyms: bool) -> None:
    wanted = ((TOPIC, "plain"), (TOPIC, "own"), (GROUP, "readers"), (METRICS, "seen"), (NODES, ""))
    theirs, ours = sides.ask(lambda side: describe(side, *wanted, version=version, synonyms=synonyms))
    assert ours == theirs
    assert ours[1]["configs"]["min.cleanable.dirty.ratio"][0] == "1.2E-4"


def test_what_was_set_for_groups_and_subscriptions(sides: Sides) -> None:
    set_everywhere(sides, GROUP, "set", consumer_session_timeout_ms=" 50000", share_auto_offset_reset="earliest")
    set_everywhere(sides, METRICS, "set", interval_ms=" 30000 ", match="client_id=a.*,client_source_port=1")
    theirs, ours = sides.ask(lambda side: describe(side, (GROUP, "set"), (METRICS, "set")))
    assert ours == theirs


def test_what_was_set_for_all_nodes_and_for_one(sides: Sides) -> None:
    """And what follows from it for topics and groups. What a node cannot take over is not told."""
    set_everywhere(
        sides,
        NODES,
        "",
        log_retention_ms="80000000",
        log_cleaner_threads="2",
        log_cleaner_min_cleanable_ratio="0.25",
        log_flush_interval_ms="5000",
        group_share_assignment_interval_ms="2000",
        follower_replication_throttled_rate="77",
        max_connections="500",
        compression_type="zstd",
        own_plugin_word="secret",
        log_dirs="/elsewhere",
        ssl_keystore_password="secret",
        sasl_enabled_mechanisms="PLAIN",
        listener_name_controller_max_connections="9",
        listener_name_controller_ssl_protocol="TLSv1.2",
        num_io_threads="many",
    )
    set_everywhere(
        sides,
        NODES,
        str(NODE),
        log_retention_ms="70000000",
        message_max_bytes="2000000",
        listener_name_controller_ssl_cipher_suites="one,two",
        leader_replication_throttled_rate="78",
        log_roll_jitter_ms="60000",
    )

    def looks(side: Side) -> list[Answers]:
        return describe(side, (NODES, ""), (NODES, str(NODE)), (TOPIC, "plain"), (TOPIC, "own"), (GROUP, "readers"))

    wait_for("Kafka's node to take it over", lambda: "log.retention.ms" in looks(sides.theirs)[0]["configs"])
    wait_for("and for what is its own", lambda: looks(sides.theirs)[2]["configs"]["retention.ms"][0] == "70000000")
    theirs, ours = sides.ask(looks)
    for place in (0, 2, 3, 4):
        assert ours[place] == theirs[place]
    assert "log.dirs" not in ours[0]["configs"]
    their_node, our_node = (each[1]["configs"] for each in (theirs, ours))
    names = dynamic(our_node)
    assert names == dynamic(their_node)
    for name in names - OTHER_VALUES:
        assert our_node[name] == their_node[name], name
    assert our_node["max.connections"][:6] == their_node["max.connections"][:6]


def dynamic(configs: Answers) -> set[str]:
    """What was set while the node ran."""
    return {name for name, entry in configs.items() if any(source < STATIC for _, _, source in entry[-1])}


def test_a_node_tells_all_that_a_kafka_node_would_and_what_is_its_own(sides: Sides) -> None:
    theirs, ours = sides.ask(lambda side: describe(side, (NODES, str(NODE)))[0]["configs"])
    assert theirs.keys() - ours.keys() == set(), "nothing is missing"
    assert all(entry[1] for name, entry in ours.items() if name not in theirs), "what is ours is read-only"
    for name, (_, is_read_only, _, is_sensitive, kind, *_) in theirs.items():
        assert (ours[name][1], *ours[name][3:5]) == (is_read_only, is_sensitive, kind), name
    other = {name for name in theirs if ours[name] != theirs[name] and theirs[name][2] != STATIC}
    assert other - OTHER_VALUES == set()


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NODES, str(BROKER), ErrorCode.INVALID_REQUEST),
        (NODES, "one", ErrorCode.INVALID_REQUEST),
        (NODES, "99999999999", ErrorCode.INVALID_REQUEST),
        (LOGGERS, "", ErrorCode.INVALID_REQUEST),
        (LOGGERS, str(BROKER), ErrorCode.INVALID_REQUEST),
        (LOGGERS, "one", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (3, "t", ErrorCode.INVALID_REQUEST),
        (0, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_is_refused_alike(sides: Sides, kind: int, name: str, error: ErrorCode) -> None:
    theirs, ours = sides.ask(lambda side: describe(side, (kind, name), (TOPIC, "plain")))
    assert ours == theirs
    assert ours[0]["error"] == error
    assert ours[0]["configs"] == {}


def test_only_what_is_asked_for_is_told(sides: Sides) -> None:
    keys = ["retention.ms", "no.such"]
    for wanted in (keys, []):
        theirs, ours = sides.ask(lambda side, wanted=wanted: describe(side, (TOPIC, "plain"), keys=wanted))
        assert ours == theirs
    assert [*describe(sides.ours, (TOPIC, "plain"), keys=keys)[0]["configs"]] == ["retention.ms"]


def test_a_node_of_ours_has_no_loggers_to_set(sides: Sides) -> None:
    theirs, ours = sides.ask(lambda side: describe(side, (LOGGERS, str(NODE)))[0])
    assert (ours["error"], ours["configs"]) == (ErrorCode.NONE, {})
    assert theirs["error"] == ErrorCode.NONE
