"""The layout of a real cluster's image, and whether a controller takes what is planned of it."""

import numpy as np

from fastquorum.controller.partitions.reassignments import alter_reassignments
from fastquorum.controller.planning import plan_moves
from fastquorum.controller.state.controller_state import ControllerSettings, ControllerState
from fastquorum.spark.pipelines.placement.layouts import (
    BROKER_COLUMNS,
    CONFIG_COLUMNS,
    PARTITION_COLUMNS,
    cluster_of,
)
from fastquorum.spark.scan import read_table
from fastquorum.wire.messages.partitions import AlterPartitionReassignmentsRequest
from tests.controller.image.logs import folded
from tests.controller.planning.images import layout_of
from tests.wire.golden import CLUSTER

OFFSET = 1820
"""Broker 13 is fenced."""
Topic = AlterPartitionReassignmentsRequest.ReassignableTopic


def state() -> ControllerState:
    image = folded(CLUSTER / "c1" / "__cluster_metadata-0" / "00000000000000000000.log", OFFSET).image
    return ControllerState(ControllerSettings("c"), image, OFFSET, 1, 0)


def test_a_layout_is_the_same_from_an_image_as_from_its_tables() -> None:
    lead = state()
    of_image = layout_of(lead.image, lead.min_isr)
    names = {"partitions": PARTITION_COLUMNS, "brokers": BROKER_COLUMNS, "configs": CONFIG_COLUMNS}
    of_tables = cluster_of(
        *(
            read_table(str(CLUSTER / "c1"), name, columns=",".join(columns), asOfOffset=OFFSET)
            for name, columns in names.items()
        )
    )
    topics = of_tables.topics.to_pylist()
    mine = [of_image.topics[each].name for each in of_image.topic_of]
    assert list(zip(mine, of_image.numbers.tolist(), strict=True)) == list(
        zip(topics, of_tables.numbers.tolist(), strict=True)
    )
    assert of_image.layout.brokers.rack_names == of_tables.layout.brokers.rack_names
    for ours, theirs in zip(of_image.layout.brokers[:2], of_tables.layout.brokers[:2], strict=True):
        assert np.array_equal(ours, theirs)
    for ours, theirs in zip(of_image.layout[1:], of_tables.layout[1:], strict=True):
        assert np.array_equal(ours, theirs)


def test_a_controller_takes_every_move() -> None:
    lead = state()
    of_image = layout_of(lead.image, lead.min_isr)
    plan = plan_moves(of_image.layout, ~of_image.layout.brokers.is_active)
    assert plan.moved_replicas == 80
    request = AlterPartitionReassignmentsRequest(timeout_ms=1000)
    for topic, number, replicas in of_image.targets(plan.partitions.tolist(), plan.after):
        partition = Topic.ReassignablePartition(partition_index=number, replicas=list(replicas))
        request.topics.append(Topic(name=topic.name, partitions=[partition]))
    answer = alter_reassignments(lead, request).answer
    assert {result.error_code for topic in answer.responses for result in topic.partitions} == {0}
    assert sum(len(topic.partitions) for topic in answer.responses) == len(plan.partitions)
