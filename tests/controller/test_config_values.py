"""What values the configurations of groups and of client metrics may have. KIP-848, KIP-932, KIP-1071; KIP-714."""

import pytest

from fastquorum.controller.definitions.checks import double, listed
from fastquorum.controller.definitions.client_metrics import client_metrics_fault
from fastquorum.controller.definitions.groups import GROUP_CONFIGS, group_config_fault
from fastquorum.wire.error_codes import ErrorCode

SESSION, HEARTBEAT, ASSIGNMENT = ("45000", "60000"), ("5000", "15000"), ("0", "15000")
BOUNDS = {
    "consumer.assignment.interval.ms": ASSIGNMENT,
    "consumer.heartbeat.interval.ms": HEARTBEAT,
    "consumer.session.timeout.ms": SESSION,
    "share.assignment.interval.ms": ASSIGNMENT,
    "share.delivery.count.limit": ("2", "10"),
    "share.heartbeat.interval.ms": HEARTBEAT,
    "share.partition.max.record.locks": ("100", "4000"),
    "share.record.lock.duration.ms": ("15000", "60000"),
    "share.session.timeout.ms": SESSION,
    "streams.assignment.interval.ms": ASSIGNMENT,
    "streams.heartbeat.interval.ms": HEARTBEAT,
    "streams.initial.rebalance.delay.ms": ("0", "2147483647"),
    "streams.num.standby.replicas": ("0", "2"),
    "streams.session.timeout.ms": SESSION,
}
"""The defaults of Kafka 4.3."""
WORDS = {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}


def test_every_configuration_is_looked_at_here() -> None:
    assert set(GROUP_CONFIGS) == {*BOUNDS, *WORDS}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_stays_within_its_bounds(name: str) -> None:
    low, high = BOUNDS[name]
    for good in (low, high, f" {low} "):
        assert group_config_fault(name, good) == ""
    for bad in (str(int(low) - 1), str(int(high) + 1), "", "many", "1.5", "1_0", "9" * 30_000):
        assert group_config_fault(name, bad).startswith("Invalid value")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("share.isolation.level", ("read_committed", "read_uncommitted"), ("", "READ_COMMITTED", "serializable")),
        ("share.renew.acknowledge.enable", ("true", "False"), ("", "yes", "1")),
        (
            "share.auto.offset.reset",
            (
                "earliest", "latest", "by_duration:PT1H", "by_duration:P2DT3H4M5.678S", "by_duration:pt0s",
                "by_duration:PT-1M90S", "by_duration:-PT-1S", "by_duration:PT1.S", " by_duration:PT1S ",
            ),
            (
                "", "none", "LATEST", "by_duration", "by_duration:", "by_duration:1H", "by_duration:P",
                "by_duration:PT", "by_duration:P1DT", "by_duration:-PT1S", "by_duration:PT-0.5S",
                "by_duration:PT1.0000000000S", "by_duration:PT1M1H", "by_duration:PT" + "9" * 30_000 + "S",
                "by_duration:P9999999999999999999D", "by_duration:PT1S\u00a0", "by_duration:PT\u0661S",
            ),
        ),
    ],
)  # fmt: skip
def test_a_word_is_one_of_those_there_are(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    assert [value for value in good if group_config_fault(name, value)] == []
    assert [value for value in bad if not group_config_fault(name, value)] == []


def test_a_group_has_no_others() -> None:
    assert group_config_fault("retention.ms", "5") == "Unknown group config name: retention.ms"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metrics", ""),
        ("metrics", "*"),
        ("metrics", "a,b,a"),
        ("metrics", "org.apache.kafka.producer., org.apache.kafka.consumer."),
        ("interval.ms", "100"),
        ("interval.ms", "3600000"),
        ("match", ""),
        ("match", "client_id=app-[0-9]{3}, client_software_name = apache.*"),
        ("match", "client_instance_id=[^a-f]+\\{x\\},client_source_address=10\\..*,client_source_port=(?:80|443)"),
        ("match", "client_software_version=3.="),
    ],
)
def test_a_subscription_may_have_these(name: str, value: str) -> None:
    assert client_metrics_fault(name, value) == (ErrorCode.NONE, "")


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("metrics", "a,,b", ErrorCode.INVALID_CONFIG),
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "3600001", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "often", ErrorCode.INVALID_CONFIG),
        ("interval.ms", "2147483648", ErrorCode.INVALID_CONFIG),
        ("interval.ms", "", ErrorCode.INVALID_CONFIG),
        ("match", "client_id", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=", ErrorCode.INVALID_CONFIG),
        ("match", "=x", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=a=b", ErrorCode.INVALID_CONFIG),
        ("match", "user=alice", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=(", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=a{", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=[[]", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=(?P<x>a)", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=" + "(" * 30_000, ErrorCode.INVALID_CONFIG),
        ("match", "client_id=" + "(" * 10_000 + ")" * 10_000, ErrorCode.INVALID_CONFIG),
        ("retention.ms", "5", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_subscription_may_not_have_these(name: str, value: str, code: ErrorCode) -> None:
    got, text = client_metrics_fault(name, value)
    assert (got, bool(text)) == (code, True)


@pytest.mark.parametrize("pattern", ["client_id=(?a)(?u)a", "client_id=a{" + "1" * 4_301 + "}"])
def test_what_the_compiler_of_patterns_refuses_in_whatever_way_is_refused(pattern: str) -> None:
    """Both were errors that nobody expected, and ended one controller after another."""
    code, text = client_metrics_fault("match", pattern)
    assert (code, text.partition(":")[0]) == (ErrorCode.INVALID_CONFIG, "Illegal client matching pattern")


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", ["1" * 32_766 + "x", "0x" + "1" * 32_764, "0x" + "1" * 32_000 + ".p"])
def test_a_long_text_that_is_no_number_is_found_out_in_no_time(text: str) -> None:
    """The number was looked at from each of its digits anew: for a minute."""
    assert double(text) is None


@pytest.mark.timeout(10)
def test_a_long_gap_in_a_list_is_passed_over_in_no_time() -> None:
    assert listed("a" + " " * 32_765 + "b") == ["a" + " " * 32_765 + "b"]
    assert listed(" a ,\tb\x0b, ,c ") == ["a", "b", "", "c"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.", 1.0), (".5e1f", 5.0), ("0x1.8p1", 3.0), ("0x.8p1", 1.0), ("0x1.p1", 2.0), ("0x1p1D", 2.0)],
)
def test_a_number_is_read_as_java_reads_it(text: str, value: float) -> None:
    assert double(text) == value
