"""Configurations of topics, brokers, groups and client metrics are changed. KIP-133, KIP-339, KIP-714, KIP-966."""

from typing import Any

import pytest

from fastquorum.controller import config_changes as configs
from fastquorum.controller.config_changes import Operation
from fastquorum.controller.definitions.definition import ConfigType
from fastquorum.controller.definitions.topics import TOPIC_CONFIGS
from fastquorum.controller.requests import refused
from fastquorum.wire import decode, encode
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from fastquorum.wire.records.brokers import RegisterControllerRecord
from fastquorum.wire.records.cluster import ConfigRecord
from tests.controller.rig import Controller

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = Operation
Altered = IncrementalAlterConfigsRequest.AlterConfigsResource
Replaced = AlterConfigsRequest.AlterConfigsResource


def two(**fields: Any) -> Controller:
    controller = Controller(**fields)
    controller.start(1, 2)
    controller.topic([1, 2])
    return controller


def of(kind: int, name: str, *changes: tuple[Any, ...]) -> Altered:
    """A resource, and (operation, name, value) for each change."""
    altered = [
        Altered.AlterableConfig(config_operation=operation, name=key, value=value[0] if value else None)
        for operation, key, *value in changes
    ]
    return Altered(resource_type=kind, resource_name=name, configs=altered)


def alter(
    controller: Controller, *resources: Altered, validate_only: bool = False, is_forwarded: bool = False
) -> list[tuple[int, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    decision = configs.incremental_alter_configs(controller.state, request, is_forwarded=is_forwarded)
    answer = controller.decide(decision)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    assert {(each.resource_type, each.resource_name) for each in answer.responses} == {
        (each.resource_type, each.resource_name) for each in resources
    }
    return [(each.error_code, each.error_message) for each in answer.responses]


def held(controller: Controller, kind: int, name: str) -> dict[str, str]:
    return dict(controller.state.image.configs.get((kind, name), {}))  # type: ignore[call-overload]


OK = [(ErrorCode.NONE, None)]


# --- one by one -------------------------------------------------------------------------------------------------------


def test_what_is_set_for_the_controllers_own_node_counts_for_topics() -> None:
    """Kafka's `getTopicConfig`: before every broker's default, and behind what the topic has itself."""
    controller = two()
    topic = controller.state.image.topics.named("t")
    assert topic is not None
    name = "unclean.leader.election.enable"
    alter(controller, of(BROKER, "2", (SET, name, "true")))
    assert not controller.state.allows_unclean_election(topic)
    alter(controller, of(BROKER, "", (SET, name, "false")), of(BROKER, "1", (SET, name, "true")))
    assert controller.state.allows_unclean_election(topic)
    alter(controller, of(TOPIC, "t", (SET, name, "false")))
    assert not controller.state.allows_unclean_election(topic)


def test_a_number_with_a_sign_is_one() -> None:
    """So Java reads it."""
    controller = two()
    topic = controller.state.image.topics.named("t")
    assert topic is not None
    assert alter(controller, of(TOPIC, "t", (SET, "min.insync.replicas", " +2"))) == OK
    assert controller.state.min_isr(topic) == 2


def test_a_value_is_set_and_taken_away() -> None:
    controller = two()
    assert alter(controller, of(TOPIC, "t", (SET, "retention.ms", "5"), (SET, "segment.ms", "7"))) == OK
    assert held(controller, TOPIC, "t") == {"retention.ms": "5", "segment.ms": "7"}
    assert alter(controller, of(TOPIC, "t", (DELETE, "retention.ms"))) == OK
    assert held(controller, TOPIC, "t") == {"segment.ms": "7"}


def test_what_a_broker_does_not_have_is_taken_away_as_kafka_does() -> None:
    """It is said to it, and refused where it may not be touched, set or not."""
    controller = two()
    assert alter(controller, of(BROKER, "1", (DELETE, "log.cleaner.threads"))) == OK
    (record,) = controller.written
    assert isinstance(record, ConfigRecord)
    assert (record.resource_name, record.name, record.value) == ("1", "log.cleaner.threads", None)
    controller = two(elr=True)
    ((code, text),) = alter(controller, of(BROKER, "1", (DELETE, "min.insync.replicas")))
    assert (code, controller.written) == (ErrorCode.INVALID_CONFIG, [])
    assert text == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."


def test_values_that_a_topic_cannot_have_together_are_refused() -> None:
    """Kafka's `LogConfig.validateValues`: of all that the topic would have, not of what is changed."""
    controller = two()
    least, most = "min.compaction.lag.ms", "max.compaction.lag.ms"
    assert alter(controller, of(TOPIC, "t", (SET, least, " 5 "), (SET, most, "5"))) == OK
    for change in ((SET, most, "4"), (SET, least, "6")):
        ((code, text),) = alter(controller, of(TOPIC, "t", change))
        assert (code, controller.written) == (ErrorCode.INVALID_CONFIG, [])
        assert text is not None
        assert text.startswith("conflict topic config setting min.compaction.lag.ms")
    assert alter(controller, of(TOPIC, "t", (SET, most, "4"), (DELETE, least))) == OK
    only = [Replaced.AlterableConfig(name=least, value="6")]
    request = AlterConfigsRequest(resources=[Replaced(resource_type=TOPIC, resource_name="t", configs=only)])
    assert controller.decide(configs.alter_configs(controller.state, request)).responses[0].error_code == 0


def test_what_is_so_already_is_not_written() -> None:
    controller = two()
    alter(controller, of(TOPIC, "t", (SET, "retention.ms", "5")))
    assert alter(controller, of(TOPIC, "t", (SET, "retention.ms", "5"), (DELETE, "segment.ms"))) == OK
    assert controller.written == []


def test_to_a_broker_the_same_is_said_again() -> None:
    """It reads its key stores anew for that."""
    controller = two()
    for _ in range(2):
        assert alter(controller, of(BROKER, "1", (SET, "ssl.keystore.location", "/k"))) == OK
        assert len(controller.written) == 1


def test_lists_grow_and_shrink() -> None:
    controller = two()
    alter(controller, of(TOPIC, "t", (APPEND, "cleanup.policy", "compact")))
    assert held(controller, TOPIC, "t") == {"cleanup.policy": "delete,compact"}
    alter(controller, of(TOPIC, "t", (APPEND, "cleanup.policy", "compact,delete")))
    assert controller.written == []
    alter(controller, of(TOPIC, "t", (SUBTRACT, "cleanup.policy", "delete")))
    assert held(controller, TOPIC, "t") == {"cleanup.policy": "compact"}
    alter(controller, of(TOPIC, "t", (APPEND, "leader.replication.throttled.replicas", "0:1,0:2")))
    assert held(controller, TOPIC, "t")["leader.replication.throttled.replicas"] == "0:1,0:2"


@pytest.mark.timeout(10)
def test_a_long_list_is_taken_from_a_long_one_in_no_time() -> None:
    """Each was compared with each: one request kept the quorum waiting for a quarter of a minute."""
    controller = two()
    name = "leader.replication.throttled.replicas"
    alter(controller, of(TOPIC, "t", (SET, name, ",".join(f"{number}:1" for number in range(4_000)))))
    others = ",".join(f"{number}:2" for number in range(500_000))
    assert alter(controller, of(TOPIC, "t", (SUBTRACT, name, f"{others},7:1"))) == OK
    assert held(controller, TOPIC, "t")[name].count(",") == 3_998


@pytest.mark.timeout(10)
def test_of_many_operations_on_one_name_the_last_one_counts_and_is_made_once() -> None:
    controller = two()
    alter(controller, of(BROKER, "", (SET, "ssl.cipher.suites", "a," * 16_383)))
    changes = [(APPEND, "ssl.cipher.suites", f"b{number}") for number in range(50_000)]
    assert alter(controller, of(BROKER, "", *changes)) == OK
    assert held(controller, BROKER, "")["ssl.cipher.suites"] == "a,b49999"


def test_defaults_of_all_brokers_count_for_topics() -> None:
    controller = two()
    topic = controller.state.image.topics.named("t")
    assert topic is not None
    alter(
        controller, of(BROKER, "", (SET, "min.insync.replicas", "2"), (SET, "unclean.leader.election.enable", "true"))
    )
    assert controller.state.min_isr(topic) == 2
    assert controller.state.allows_unclean_election(topic)
    alter(controller, of(TOPIC, "t", (SET, "min.insync.replicas", "1")))
    assert controller.state.min_isr(topic) == 1


def test_nothing_is_written_that_was_only_to_be_checked() -> None:
    controller = two()
    assert alter(controller, of(TOPIC, "t", (SET, "retention.ms", "5")), validate_only=True) == OK
    assert held(controller, TOPIC, "t") == {}


def test_each_resource_is_answered_for_itself() -> None:
    controller = two()
    results = alter(
        controller,
        of(TOPIC, "t", (SET, "retention.ms", "5")),
        of(TOPIC, "u", (SET, "retention.ms", "5")),
        of(BROKER, "1", (SET, "log.retention.ms", "5")),
    )
    assert [code for code, _ in results] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert held(controller, TOPIC, "t") == {"retention.ms": "5"}
    assert held(controller, BROKER, "1") == {"log.retention.ms": "5"}


@pytest.mark.parametrize(
    ("resource", "code", "text"),
    [
        (of(TOPIC, "u", (SET, "retention.ms", "5")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "'u' does not exist"),
        (of(TOPIC, "t", (SET, "retention", "5")), ErrorCode.INVALID_CONFIG, "Unknown topic config name: retention"),
        (
            of(TOPIC, "t", (SET, "errors.deadletterqueue.group.enable", "true")),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: errors.deadletterqueue.group.enable",
        ),
        (of(TOPIC, "t", (SET, "retention.ms", "soon")), ErrorCode.INVALID_CONFIG, "Invalid value soon"),
        (of(TOPIC, "t", (SET, "retention.ms")), ErrorCode.INVALID_REQUEST, "Null value not supported"),
        (of(TOPIC, "t", (APPEND, "retention.ms", "5")), ErrorCode.INVALID_CONFIG, "Can't APPEND to key retention.ms"),
        (of(TOPIC, "t", (SUBTRACT, "x", "5")), ErrorCode.INVALID_CONFIG, "Can't SUBTRACT to key x"),
        (of(TOPIC, "t", (9, "x", "5")), ErrorCode.INVALID_REQUEST, "Unknown operation 9 on x"),
        (of(BROKER, "one", (SET, "x", "5")), ErrorCode.INVALID_REQUEST, "base 10 number"),
        (of(BROKER, "9" * 30_000, (SET, "x", "5")), ErrorCode.INVALID_REQUEST, "base 10 number"),
        (of(BROKER, "7", (SET, "x", "5")), ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 7 found."),
        (of(BROKER, "1", (SET, "x", "5" * 32_768)), ErrorCode.INVALID_CONFIG, "exceeds the maximum value size"),
        (of(LOGGER, "1", (SET, "x", "INFO")), ErrorCode.INVALID_CONFIG, "Logger x does not exist!"),
        (of(LOGGER, "1", (DELETE, "root")), ErrorCode.INVALID_CONFIG, "Logger root does not exist!"),
        (of(LOGGER, "1", (APPEND, "x", "INFO")), ErrorCode.INVALID_REQUEST, "Operation 2"),
        (of(LOGGER, "1", (9, "x", "INFO")), ErrorCode.INVALID_REQUEST, "Operation 9"),
        (of(LOGGER, "2", (SET, "x", "INFO")), ErrorCode.INVALID_REQUEST, "this is node 1"),
        (of(LOGGER, "", (SET, "x", "INFO")), ErrorCode.INVALID_REQUEST, "must be an integer"),
        (of(7, "x", (SET, "x", "5")), ErrorCode.UNSUPPORTED_VERSION, "Unknown resource type 7."),
        (of(GROUP, "", (SET, "share.isolation.level", "read_committed")), ErrorCode.INVALID_REQUEST, "Default group"),
        (of(GROUP, "g", (SET, "x", "5")), ErrorCode.INVALID_CONFIG, "Unknown group config name: x"),
        (
            of(GROUP, "g", (SET, "consumer.session.timeout.ms", "44999")),
            ErrorCode.INVALID_CONFIG,
            "Invalid value 44999",
        ),
        (of(METRICS, "", (SET, "interval.ms", "100")), ErrorCode.INVALID_REQUEST, "can't be empty"),
        (of(METRICS, "m", (SET, "x", "5")), ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: x"),
        (of(METRICS, "m", (SET, "interval.ms", "99")), ErrorCode.INVALID_REQUEST, "100 to 3600000"),
        (of(METRICS, "m", (APPEND, "metrics", "x")), ErrorCode.INVALID_CONFIG, "Can't APPEND to key metrics"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(resource: Altered, code: ErrorCode, text: str) -> None:
    controller = two()
    before = controller.state.image
    [(got, message)] = alter(controller, resource)
    assert got == code
    assert message is not None
    assert text in message
    assert controller.state.image == before


def test_the_levels_of_loggers_are_not_replaced_as_a_whole() -> None:
    controller = two()
    resource = Replaced(resource_type=LOGGER, resource_name="1", configs=[])
    answer = controller.decide(configs.alter_configs(controller.state, AlterConfigsRequest(resources=[resource])))
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]
    assert alter(controller, of(LOGGER, "1")) == OK, "nothing of none can be set"


def test_of_a_resource_that_is_bad_in_part_nothing_is_changed() -> None:
    controller = two()
    alter(controller, of(TOPIC, "t", (SET, "segment.ms", "5"), (SET, "retention.ms", "soon")))
    assert held(controller, TOPIC, "t") == {}


def test_a_resource_that_is_named_more_than_once_is_answered_once_and_not_changed() -> None:
    controller = two()
    results = alter(controller, *(of(TOPIC, "t", (SET, "segment.ms", each)) for each in "567"))
    assert results == [(ErrorCode.INVALID_REQUEST, "Duplicate resource.")]
    assert controller.written == []


def test_a_type_that_there_is_not_and_levels_of_loggers_are_answered_each_time() -> None:
    controller = two()
    results = alter(controller, of(3, "z"), of(3, "z"), of(LOGGER, "1"), of(LOGGER, "1"))
    assert [code for code, _ in results] == [ErrorCode.UNSUPPORTED_VERSION] * 2 + [ErrorCode.NONE] * 2


# --- groups and client metrics ----------------------------------------------------------------------------------------


def test_a_groups_configuration_is_set_and_taken_away_whether_there_is_such_a_group_or_not() -> None:
    controller = two()
    changes = (SET, "consumer.session.timeout.ms", "45000"), (SET, "share.auto.offset.reset", "by_duration:PT1H")
    assert alter(controller, of(GROUP, "g", *changes)) == OK
    assert held(controller, GROUP, "g") == {
        "consumer.session.timeout.ms": "45000",
        "share.auto.offset.reset": "by_duration:PT1H",
    }
    assert alter(controller, of(GROUP, "g", *((DELETE, name) for _, name, _ in changes))) == OK
    assert held(controller, GROUP, "g") == {}


def test_a_subscription_to_clients_metrics_is_made_and_replaced() -> None:
    controller = two()
    changes = (SET, "metrics", "org.apache.kafka.producer."), (SET, "interval.ms", "30000")
    assert alter(controller, of(METRICS, "m", *changes, (SET, "match", "client_id=app-[0-9]+"))) == OK
    only = [Replaced.AlterableConfig(name="metrics", value="*")]
    request = AlterConfigsRequest(resources=[Replaced(resource_type=METRICS, resource_name="m", configs=only)])
    answer = controller.decide(configs.alter_configs(controller.state, request))
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
    assert held(controller, METRICS, "m") == {"metrics": "*"}


def test_many_patterns_keep_nobody_waiting() -> None:
    """Half a minute, were all of them looked at."""
    controller = two()
    pattern = "client_id=" + "(?i)" + "[\0-\uffff]" * 100
    resources = [of(METRICS, f"m{number}", (SET, "match", pattern)) for number in range(300)]
    results = alter(controller, *resources, of(TOPIC, "t", (SET, "retention.ms", "5")))
    assert [code for code, _ in results] == [ErrorCode.INVALID_REQUEST] * 300 + [ErrorCode.NONE]
    assert alter(controller, resources[0]) == OK


# --- as a whole -------------------------------------------------------------------------------------------------------


def test_what_is_no_longer_set_is_written_in_the_order_of_names() -> None:
    """Not of their hashes, which differ from process to process: the same decision has the same records."""
    controller = two()
    names = [name for name, known in TOPIC_CONFIGS.items() if known.type == ConfigType.LONG]
    alter(controller, of(TOPIC, "t", *((SET, name, "1000") for name in reversed(names))))
    request = AlterConfigsRequest(resources=[Replaced(resource_type=TOPIC, resource_name="t", configs=[])])
    controller.decide(configs.alter_configs(controller.state, request))
    assert [(each.name, each.value) for each in controller.written] == [(name, None) for name in sorted(names)]  # type: ignore[attr-defined]


def test_what_is_not_named_is_no_longer_set() -> None:
    controller = two()
    alter(controller, of(TOPIC, "t", (SET, "retention.ms", "5"), (SET, "segment.ms", "7")))
    changes = [Replaced.AlterableConfig(name="segment.ms", value="8")]
    request = AlterConfigsRequest(resources=[Replaced(resource_type=TOPIC, resource_name="t", configs=changes)])
    answer = controller.decide(configs.alter_configs(controller.state, request))
    assert isinstance(answer, AlterConfigsResponse)
    assert [each.error_code for each in answer.responses] == [0]
    assert held(controller, TOPIC, "t") == {"segment.ms": "8"}


# --- cordoned directories ---------------------------------------------------------------------------------------------


def test_only_a_broker_can_cordon_its_directories_and_everybody_can_free_them() -> None:
    """KIP-1066."""
    controller = two()
    cordon = of(BROKER, "1", (SET, "cordoned.log.dirs", "/a, /b"))
    for refused_one in (cordon, of(BROKER, "1", (SET, "cordoned.log.dirs", ","))):
        [(code, _)] = alter(controller, refused_one)
        assert (code, held(controller, BROKER, "1")) == (ErrorCode.INVALID_CONFIG, {})
    assert alter(controller, cordon, is_forwarded=True) == OK
    assert alter(controller, of(BROKER, "1", (SET, "cordoned.log.dirs", "/b"))) == OK
    assert alter(controller, of(BROKER, "1", (SET, "cordoned.log.dirs", ""))) == OK
    assert alter(controller, of(BROKER, "1", (DELETE, "cordoned.log.dirs"))) == OK
    assert held(controller, BROKER, "1") == {}


def test_a_controllers_configuration_is_set_too() -> None:
    controller = two()
    controller.write(RegisterControllerRecord(controller_id=3))
    assert alter(controller, of(BROKER, "3", (SET, "log.retention.ms", "5"))) == OK


# --- with eligible leader replicas ------------------------------------------------------------------------------------


def eligible(controller: Controller) -> tuple[int, ...]:
    return controller.partition().elr


def test_another_least_isr_makes_nobody_eligible() -> None:
    """KIP-966."""
    controller = two(elr=True)
    alter(controller, of(TOPIC, "t", (SET, "min.insync.replicas", "2")))
    controller.alter([1])
    assert eligible(controller) == (2,)
    alter(controller, of(TOPIC, "t", (SET, "min.insync.replicas", "1")))
    assert eligible(controller) == ()


def test_the_least_isr_is_the_clusters_and_not_a_brokers() -> None:
    controller = two(elr=True)
    assert alter(controller, of(BROKER, "", (SET, "min.insync.replicas", "2"))) == OK
    assert alter(controller, of(BROKER, "", (DELETE, "min.insync.replicas"))) == [
        (ErrorCode.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
    ]
    assert alter(controller, of(BROKER, "1", (SET, "min.insync.replicas", "2"))) == [
        (ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    ]


# --- refused as a whole -----------------------------------------------------------------------------------------------


def test_an_error_stands_at_each_resource() -> None:
    whole = AlterConfigsRequest(resources=[Replaced(resource_type=TOPIC, resource_name="t")])
    single = IncrementalAlterConfigsRequest(resources=[of(TOPIC, "t")])
    for request, answered in ((whole, AlterConfigsResponse), (single, IncrementalAlterConfigsResponse)):
        read = decode(answered, 1, encode(refused(request, 1, ErrorCode.NOT_CONTROLLER, "why"), 1))
        [response] = read.responses  # type: ignore[attr-defined]
        assert (response.resource_type, response.resource_name) == (TOPIC, "t")
        assert (response.error_code, response.error_message) == (ErrorCode.NOT_CONTROLLER, "why")
