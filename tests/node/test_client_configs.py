"""DescribeConfigs at a node beside a controller: what is committed, and what the node runs by. KIP-133, KIP-226."""

from typing import Any

import pytest

from fastquorum.config import MS, QuorumConfig
from fastquorum.controller.image.configs import ResourceType
from fastquorum.controller.state.controller_state import ControllerSettings
from fastquorum.node.clients.configs import started
from fastquorum.types import TOPIC_NAME
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
)
from tests.node.rig import Rig
from tests.node.test_controller_role import leader, rig_of

NODE, TOPIC = ResourceType.BROKER, ResourceType.TOPIC


def described(rig: Rig, kind: int, name: str, *, documentation: bool = False) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_documentation=documentation)
    (result,) = rig.answer_to(DescribeConfigsResponse, request, 4).results
    return result


def values(rig: Rig, kind: int, name: str) -> dict[str, str | None]:
    result = described(rig, kind, name)
    assert result.error_code == ErrorCode.NONE
    return {each.name: each.value for each in result.configs}


def set_for_all(name: str, value: str) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=NODE, configs=[resource.AlterableConfig(name=name, value=value)])]
    )


def test_what_is_set_is_told_when_it_is_committed_and_not_before() -> None:
    rig = leader()
    rig.ask(rig.accept(), set_for_all("log.retention.ms", "80"), 1)
    assert values(rig, NODE, "") == {}
    rig.sync()
    assert values(rig, NODE, "") == {"log.retention.ms": "80"}
    assert values(rig, NODE, "1")["log.retention.ms"] == "80"


def test_a_node_that_does_not_lead_tells_it_too() -> None:
    rig = rig_of(1, 2, 3)
    rig.follow()
    assert values(rig, NODE, "") == {}
    assert values(rig, NODE, "1")["process.roles"] == "controller"
    assert described(rig, NODE, "2").error_code == ErrorCode.INVALID_REQUEST


def test_a_node_tells_what_it_runs_by() -> None:
    rig = leader_with(QuorumConfig(preallocate_bytes=4096, fetch_timeout_us=3_000 * MS))
    configs = {each.name: each for each in described(rig, NODE, "1", documentation=True).configs}
    fetch_timeout, session = configs["controller.quorum.fetch.timeout.ms"], configs["broker.session.timeout.ms"]
    assert (fetch_timeout.value, fetch_timeout.config_source) == ("3000", 4), "it was told so"
    assert (session.value, session.config_source) == ("9000", 5), "that is the default"
    assert fetch_timeout.documentation
    assert (configs["node.id"].value, configs["busy.poll.us"].read_only) == ("1", True)


def test_a_node_tells_what_it_was_told_of_topics() -> None:
    settings = ControllerSettings("c", num_partitions=6, min_insync_replicas=2, unclean_leader_election=True)
    static = started(1, QuorumConfig(), settings).static
    assert (static["num.partitions"], static["min.insync.replicas"]) == ("6", "2")
    assert static["unclean.leader.election.enable"] == "true"
    assert "default.replication.factor" not in static, "that is the default"


def leader_with(config: QuorumConfig) -> Rig:
    return rig_of(1, config=config).lead()


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NODE, "one", ErrorCode.INVALID_REQUEST),
        (ResourceType.CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (99, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_is_refused_and_nothing_is_written(kind: int, name: str, code: ErrorCode) -> None:
    rig = leader()
    end = rig.log.end_offset
    result = described(rig, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert rig.log.end_offset == end


def test_the_log_that_is_shown_as_a_topic_is_described_as_one() -> None:
    assert values(leader(), TOPIC, TOPIC_NAME)["retention.ms"] == "-1"
