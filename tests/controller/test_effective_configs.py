"""The response to a new topic lists all its configurations, and the source of each. KIP-525."""

from typing import Any

import pytest

from fastquorum.controller.definitions.topics import INTERNAL_TOPIC_CONFIGS, TOPIC_CONFIGS
from fastquorum.wire import decode, encode
from fastquorum.wire.messages.topics import CreateTopicsResponse
from fastquorum.wire.records.cluster import ConfigRecord
from tests.controller.rig import Controller
from tests.controller.test_topics import create, three, topic

OF_TOPIC, OF_NODE, OF_ALL_NODES, STATIC, DEFAULT = 1, 2, 3, 4, 5


def entries(result: Any) -> dict[str, tuple[str | None, int]]:
    """Return value and source, by name."""
    assert not any(each.read_only or each.is_sensitive for each in result.configs)
    return {each.name: (each.value, each.config_source) for each in result.configs}


def set_for_nodes(controller: Controller, node: str, name: str, value: str | None) -> None:
    controller.write(ConfigRecord(resource_type=4, resource_name=node, name=name, value=value))


def test_a_topic_that_is_given_nothing_has_the_defaults() -> None:
    (made,) = create(three(), topic())
    assert [each.name for each in made.configs] == sorted(TOPIC_CONFIGS.keys() - INTERNAL_TOPIC_CONFIGS)
    assert {source for _, source in entries(made).values()} == {DEFAULT}
    some = ("retention.ms", "segment.ms", "flush.ms", "cleanup.policy", "remote.storage.enable")
    assert [entries(made)[name][0] for name in some] == ["604800000", "604800000", str(2**63 - 1), "delete", "false"]


@pytest.mark.parametrize("is_tried_only", [True, False])
def test_what_a_topic_is_given_is_told_as_it_was_written(is_tried_only: bool) -> None:
    requested = topic(retention_ms=" +7 ", preallocate="TRUE", internal_segment_bytes="2000000")
    (made,) = create(three(), requested, validate_only=is_tried_only)
    configs = entries(made)
    assert list(configs) == sorted(configs)
    assert configs["retention.ms"] == (" +7 ", OF_TOPIC)
    assert configs["preallocate"] == ("TRUE", OF_TOPIC)
    assert configs["internal.segment.bytes"] == ("2000000", OF_TOPIC)
    assert (made.num_partitions, made.replication_factor, made.topic_config_error_code) == (2, 3, 0)


def test_the_next_that_says_something_is_told() -> None:
    """The node's own before that of all nodes, before what it was started with; under any name that a node has for
    it."""
    controller = three(min_insync_replicas=2, unclean_leader_election=True)
    (made,) = create(controller, topic("a"))
    assert entries(made)["min.insync.replicas"] == ("2", STATIC)
    assert entries(made)["unclean.leader.election.enable"] == ("true", STATIC)
    set_for_nodes(controller, "", "min.insync.replicas", "3")
    set_for_nodes(controller, "", "log.retention.ms", "5000")
    set_for_nodes(controller, "1", "log.retention.hours", " 3 ")
    set_for_nodes(controller, "2", "log.retention.ms", "1")  # another node
    (made,) = create(controller, topic("b"))
    assert entries(made)["min.insync.replicas"] == ("3", OF_ALL_NODES)
    assert entries(made)["retention.ms"] == ("10800000", OF_NODE)
    set_for_nodes(controller, "1", "log.retention.hours", None)
    (made,) = create(controller, topic("c"))
    assert entries(made)["retention.ms"] == ("5000", OF_ALL_NODES)


@pytest.mark.parametrize(("hours", "value"), [("soon", "0"), ("", "0"), ("99999999999", "0"), ("-1", "-3600000")])
def test_hours_that_are_no_number_are_none(hours: str, value: str) -> None:
    controller = three()
    set_for_nodes(controller, "", "log.roll.hours", hours)
    (made,) = create(controller, topic())
    assert entries(made)["segment.ms"] == (value, OF_ALL_NODES)


def test_what_topics_have_in_common_is_worked_out_once_for_all_of_them() -> None:
    """Creations are many: thirty configurations of each would be most of the work."""
    controller = three()
    first, given, second = create(controller, topic("a"), topic("b", retention_ms="5"), topic("c"))
    (third,) = create(controller, topic("d"))
    assert first.configs is second.configs
    assert first.configs is third.configs
    assert given.configs[0] is first.configs[0]
    set_for_nodes(controller, "", "log.retention.ms", "5000")
    (fourth,) = create(controller, topic("e"))
    assert entries(first)["retention.ms"] == ("604800000", DEFAULT)
    assert entries(fourth)["retention.ms"] == ("5000", OF_ALL_NODES)


@pytest.mark.parametrize("version", [2, 4, 5, 7])
def test_clients_before_version_5_are_not_told(version: int) -> None:
    made = create(three(), topic())
    answer = decode(CreateTopicsResponse, version, encode(CreateTopicsResponse(topics=made), version))
    (read,) = answer.topics
    assert bool(read.configs) == (version >= 5)
