"""Descriptions of configurations in one image, at one node. KIP-133, KIP-226, KIP-569, KIP-714."""

from typing import Any

import pytest

from fastquorum.controller.configs.describing import Described, Entry, RequestedResource, described
from fastquorum.controller.configs.nodes import ConfigSource, StartValues
from fastquorum.controller.definitions.definition import ConfigType, Definition, canonical
from fastquorum.controller.image import EMPTY, Image
from fastquorum.controller.image.configs import ResourceType
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.configs import DescribeConfigsRequest
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.topics import TopicRecord
from tests.controller.rig import uuid

TOPIC, NODE, GROUP, METRICS = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
)
STARTED = StartValues(
    node_id=1,
    static={"log.retention.hours": "2", "busy": "5"},
    definitions={"busy": Definition(ConfigType.LONG, "0")},
    documentation={"busy": "how busy it is"},
)


def image(**values: dict[str, str]) -> Image:
    """Topics t and u, and what is set: for topic t, node n1, all nodes, group g, subscription m; `other`: of node 2."""
    names = {"t": (TOPIC, "t"), "n1": (NODE, "1"), "all": (NODE, ""), "g": (GROUP, "g"), "m": (METRICS, "m")}
    names["other"] = (NODE, "2")
    records = [
        ConfigRecord(resource_type=names[owner][0], resource_name=names[owner][1], name=name, value=value)
        for owner, configs in values.items()
        for name, value in configs.items()
    ]
    topics = [TopicRecord(name=name, topic_id=uuid(number)) for number, name in enumerate(("t", "u"), 1)]
    return EMPTY.apply([*topics, *records])


def ask(of: Image, *resources: tuple[int, str], keys: list[str] | None = None, **more: bool) -> list[Described]:
    named = [
        RequestedResource(resource_type=kind, resource_name=name, configuration_keys=keys) for kind, name in resources
    ]
    more.setdefault("include_synonyms", True)
    return described(of, STARTED, DescribeConfigsRequest(resources=named, **more)).results


def entry(of: Image, kind: int, resource: str, name: str, **more: Any) -> Entry:
    (result,) = ask(of, (kind, resource), keys=[name], **more)
    assert result.error_code == ErrorCode.NONE
    (found,) = result.configs
    return found


def synonyms(found: Entry) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in found.synonyms]


def test_a_topic_has_what_the_node_was_started_with_in_the_topics_unit() -> None:
    found = entry(image(), TOPIC, "t", "retention.ms")
    assert (found.value, found.config_type) == ("7200000", ConfigType.LONG)
    assert (found.config_source, synonyms(found)) == (ConfigSource.DEFAULT, []), "nobody has said it by this name"


def test_what_is_set_for_all_nodes_holds_for_topics_and_what_is_set_for_this_one_goes_before() -> None:
    everybodys = image(all={"log.retention.ms": "70"}, other={"log.retention.ms": "60"})
    found = entry(everybodys, TOPIC, "t", "retention.ms")
    assert (found.value, found.config_source) == ("70", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    own = image(all={"log.retention.ms": "70"}, n1={"log.retention.ms": "80"}, t={"retention.ms": " 90"})
    found = entry(own, TOPIC, "t", "retention.ms")
    assert (found.value, found.config_source, found.read_only) == ("90", ConfigSource.TOPIC, False)
    assert synonyms(found) == [
        ("retention.ms", "90", ConfigSource.TOPIC),
        ("log.retention.ms", "80", ConfigSource.DYNAMIC_BROKER),
        ("log.retention.ms", "70", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "2", ConfigSource.STATIC_BROKER),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]
    assert synonyms(entry(own, TOPIC, "t", "retention.ms", include_synonyms=False)) == []
    assert entry(own, TOPIC, "u", "retention.ms").value == "80", "another topic's is not this one's"


def test_a_time_below_nothing_is_for_ever_and_so_are_bytes_as_they_are() -> None:
    started = STARTED._replace(static={"log.retention.hours": "-2"})
    request = DescribeConfigsRequest(resources=[RequestedResource(resource_type=TOPIC, resource_name="t")])
    (result,) = described(image(all={"log.retention.bytes": "-5"}), started, request).results
    values = {each.name: each.value for each in result.configs}
    assert (values["retention.ms"], values["retention.bytes"]) == ("-1", "-5")


def test_what_is_kafkas_own_is_told_of_a_topic_only_if_it_is_set() -> None:
    name = "internal.segment.bytes"
    assert ask(image(), (TOPIC, "t"), keys=[name])[0].configs == []
    assert entry(image(t={name: "5"}), TOPIC, "t", name).value == "5"


def test_throttled_replicas_are_told_as_often_as_they_are_named() -> None:
    name = "leader.replication.throttled.replicas"
    assert entry(image(t={name: "0:1, 0:1"}), TOPIC, "t", name).value == "0:1,0:1"


def test_nobody_is_told_a_password_or_what_might_be_one() -> None:
    secret = "listener.name.outside.ssl.keystore.password"
    of = image(n1={secret: "s"}, all={"plugin.word": "s"})
    for found in (
        entry(of, NODE, "1", secret),
        entry(of, NODE, "", "plugin.word"),
    ):
        assert (found.value, found.is_sensitive) == (None, True)
        assert {value for _, value, _ in synonyms(found)} == {None}
    assert entry(of, NODE, "1", secret).config_type == ConfigType.PASSWORD
    assert entry(of, NODE, "", "plugin.word").config_type == ConfigType.UNKNOWN


def test_of_all_nodes_only_what_is_set_for_all_is_told() -> None:
    of = image(all={"log.cleaner.threads": "2"}, n1={"log.cleaner.threads": "3"})
    (result,) = ask(of, (NODE, ""))
    (found,) = result.configs
    assert (found.name, found.value, found.config_source) == (
        "log.cleaner.threads",
        "2",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
    )
    assert (found.read_only, synonyms(found)) == (
        False,
        [("log.cleaner.threads", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER)],
    )
    assert ask(image(), (NODE, ""))[0].configs == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.dirs", "/elsewhere"),  # only ever read at the start
        ("ssl.keystore.location", "/k"),  # of no listener in particular
        ("log.cleaner.threads", "many"),
        ("min.insync.replicas", "0"),
        ("background.threads", "9999999999"),
        ("transaction.partition.verification.enable", "maybe"),
        ("log.cleaner.io.buffer.load.factor", "1_0"),
    ],
)
def test_what_no_node_takes_over_is_not_told_as_set(name: str, value: str) -> None:
    of = image(all={name: value}, n1={name: value})
    assert ask(of, (NODE, ""))[0].configs == []
    assert all(source >= ConfigSource.STATIC_BROKER for _, _, source in synonyms(entry(of, NODE, "1", name)))


@pytest.mark.parametrize("name", ["listener.name.outside.ssl.protocol", "sasl.enabled.mechanisms"])
def test_what_is_a_nodes_own_cannot_be_set_for_all(name: str) -> None:
    assert ask(image(all={name: "v"}), (NODE, ""))[0].configs == []
    assert entry(image(n1={name: "v"}), NODE, "1", name).config_source == ConfigSource.DYNAMIC_BROKER


def test_a_nodes_own_setting_is_told_with_its_meaning() -> None:
    found = entry(image(), NODE, "1", "busy", include_documentation=True)
    assert (found.value, found.config_source, found.read_only) == ("5", ConfigSource.STATIC_BROKER, True)
    assert synonyms(found) == [("busy", "5", ConfigSource.STATIC_BROKER), ("busy", "0", ConfigSource.DEFAULT)]
    assert found.documentation == "how busy it is"
    assert entry(image(), NODE, "1", "busy").documentation is None
    assert entry(image(), NODE, "1", "num.io.threads", include_documentation=True).documentation is None


def test_groups_have_what_nodes_have_and_some_of_their_own() -> None:
    of = image(all={"group.consumer.assignment.interval.ms": "7"}, g={"share.isolation.level": "read_committed"})
    assert entry(of, GROUP, "g", "consumer.assignment.interval.ms").value == "7"
    found = entry(of, GROUP, "g", "share.isolation.level")
    assert (found.value, found.config_source) == ("read_committed", ConfigSource.GROUP)
    name = "share.isolation.level"
    assert synonyms(found) == [
        (name, "read_committed", ConfigSource.GROUP),
        (name, "read_uncommitted", ConfigSource.DEFAULT),
    ]
    assert entry(of, GROUP, "another", name).value == "read_uncommitted", "a group need not be there"


def test_subscriptions_have_what_is_set_and_else_what_is_always_so() -> None:
    of = image(m={"interval.ms": "100", "metrics": "a , b"})
    found = entry(of, METRICS, "m", "metrics")
    assert (found.value, found.config_source, found.config_type) == (
        "a,b",
        ConfigSource.CLIENT_METRICS,
        ConfigType.LIST,
    )
    assert [(each.name, each.value) for each in ask(of, (METRICS, "none"))[0].configs] == [
        ("interval.ms", "300000"),
        ("match", ""),
        ("metrics", ""),
    ]


@pytest.mark.parametrize("name", ["2", "-1", "one", "", "٣"])
def test_another_nodes_loggers_and_configurations_are_not_told(name: str) -> None:
    for kind in (NODE, ResourceType.BROKER_LOGGER):
        if name or kind is not NODE:
            (result,) = ask(image(), (kind, name))
            assert (result.error_code, result.configs) == (ErrorCode.INVALID_REQUEST, [])
    assert ask(image(), (ResourceType.BROKER_LOGGER, "1"))[0].error_code == ErrorCode.NONE


def test_a_resource_that_is_asked_about_twice_is_refused_and_the_others_are_told() -> None:
    results = ask(image(), (TOPIC, "t"), (TOPIC, "u"), (TOPIC, "t"), (TOPIC, "v"))
    refused = ErrorCode.INVALID_REQUEST
    assert [each.error_code for each in results] == [refused, 0, refused, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [bool(each.configs) for each in results] == [False, True, False, False]


def test_nothing_is_told_if_one_resource_is_of_no_type_that_there_is() -> None:
    results = ask(image(), (TOPIC, "t"), (7, "t"))
    assert [each.error_code for each in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert [each.configs for each in results] == [[], []]


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        (ConfigType.BOOLEAN, " TRUE", "true"),
        (ConfigType.INT, "+007", "7"),
        (ConfigType.LONG, "9223372036854775808", "9223372036854775808"),  # none, and told as it is
        (ConfigType.SHORT, "40000", "40000"),
        (ConfigType.STRING, " a b ", "a b"),
        (ConfigType.LIST, " a ,b,, c ", "a,b,,c"),
        (ConfigType.LIST, "", ""),
        (ConfigType.DOUBLE, "1", "1.0"),
        (ConfigType.DOUBLE, "0", "0.0"),
        (ConfigType.DOUBLE, "0.001", "0.001"),
        (ConfigType.DOUBLE, "0.0005", "5.0E-4"),
        (ConfigType.DOUBLE, "-12345678.9", "-1.23456789E7"),
        (ConfigType.DOUBLE, "9999999", "9999999.0"),
        (ConfigType.DOUBLE, "1e308", "1.0E308"),
        (ConfigType.DOUBLE, "nan", "nan"),
        (ConfigType.DOUBLE, "NaN", "NaN"),
        (ConfigType.DOUBLE, "-Infinity", "-Infinity"),
        (ConfigType.DOUBLE, "0x1p-1", "0.5"),
        (ConfigType.LIST, "a,b , a", "a,b"),
        (ConfigType.UNKNOWN, " x ", " x "),
    ],
)
def test_a_value_is_told_as_java_would_write_it(kind: ConfigType, text: str, shown: str) -> None:
    assert canonical(kind, text) == shown
