"""How replicas lie, from the tables of an image; what is planned with arrays is tested in tests/controller/planning."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from fastquorum.cli.topic.reassignment_plan import Planned, parse_plan
from fastquorum.controller.planning import NOBODY, Limits, plan_moves
from fastquorum.spark.pipelines.placement import PACKING, Placement, as_report, placement
from fastquorum.spark.pipelines.placement.layouts import (
    BROKER_COLUMNS,
    CONFIG_COLUMNS,
    PARTITION_COLUMNS,
    cluster_of,
)
from fastquorum.spark.pipelines.placement.reassignment import reassignment_text
from fastquorum.spark.scan import read_table
from fastquorum.spark.tables import TABLES
from tests.controller.planning.clusters import Cluster, clusters
from tests.wire.golden import CLUSTER

COLUMNS = {"partitions": PARTITION_COLUMNS, "brokers": BROKER_COLUMNS, "configs": CONFIG_COLUMNS}
MIN_ISR = "min.insync.replicas"
Tables = tuple[pa.Table, pa.Table, pa.Table]


def schema(name: str) -> pa.Schema:
    return pa.schema([TABLES[name].schema.field(column) for column in COLUMNS[name]])


def tables(cluster: Cluster, configs: dict[tuple[str, str], str] | None = None) -> Tables:
    """Return tables as a reader gives them; topics are a, b, a, b, ..."""
    partitions = [
        {
            "topic": "ab"[number % 2],
            "partition": number // 2,
            "leader": cluster.leader(number),
            "replicas": replicas,
            "isr": cluster.isr(number),
            "elr": cluster.elrs.get(number, []),
            "adding_replicas": [],
            "removing_replicas": replicas[:1] if number in cluster.moving else [],
            "end_offset": 70,
        }
        for number, replicas in enumerate(cluster.partitions)
    ]
    brokers = [
        {"broker_id": each, "rack": rack, "fenced": not is_active, "in_controlled_shutdown": False}
        for each, (rack, is_active) in cluster.brokers.items()
    ]
    settings = {("broker", ""): str(cluster.min_isr)} if configs is None else configs
    rows = [
        {"resource_type": kind, "resource_name": name, "name": MIN_ISR, "value": value}
        for (kind, name), value in settings.items()
    ]
    rows.append({"resource_type": "topic", "resource_name": "a", "name": "retention.ms", "value": "9"})
    return (
        pa.Table.from_pylist(partitions, schema("partitions")),
        pa.Table.from_pylist(brokers, schema("brokers")),
        pa.Table.from_pylist(rows, schema("configs")),
    )


def real(replica: str, limits: Limits, **more: Any) -> Placement:
    path = str(CLUSTER / replica)
    read = {name: read_table(path, name, columns=",".join(columns)) for name, columns in COLUMNS.items()}
    return placement(read["partitions"], read["brokers"], read["configs"], limits, **more)


def test_the_real_cluster_is_even_but_for_who_leads_after_its_broker_came_back() -> None:
    summary = real("c1", Limits()).summary
    assert summary["broker_states"] == {"active": 3}
    assert summary["now"]["replicas_per_broker"] == {"min": 610, "mean": 610.0, "max": 610, "imbalance": 0.0}
    assert (summary["now"]["leaders_per_broker"]["max"], summary["now"]["not_led_by_preferred"]) == (434, 369)
    assert summary["plan"]["moved_replicas"] == 0
    assert summary["plan"]["after"]["leaders_per_broker"]["max"] == 217
    assert summary["worst_losses"]["broker"]["name"] == 11


def test_a_fenced_broker_is_emptied_unless_it_will_be_back() -> None:
    brokers = {1: (None, True), 2: (None, True), 3: (None, False)}
    whole = tables(Cluster(brokers, [[3, 1], [1, 2]]))
    found = placement(*whole)
    assert found.moves.to_pylist() == [
        {"topic": "a", "partition": 0, "replicas": [3, 1], "planned": [2, 1], "added": 1, "reasons": ["dead"]}
    ]
    assert [row["state"] for row in found.brokers.to_pylist()] == ["active", "active", "fenced"]
    assert placement(*whole, keep_fenced=True).moves.num_rows == 0


def test_the_moves_are_a_plan_that_topic_reassign_takes() -> None:
    brokers = dict.fromkeys((1, 2), (None, True))
    text = "".join(reassignment_text(placement(*tables(Cluster(brokers, [[9, 1], [1, 2]]))).moves))
    assert parse_plan(text) == [Planned("a", 0, (2, 1))]
    assert json.loads("".join(reassignment_text(placement(*tables(Cluster(brokers, []))).moves)))["partitions"] == []


@pytest.mark.parametrize(
    ("configs", "least"),
    [
        ({}, [1, 1]),
        ({("broker", ""): "2"}, [2, 2]),
        ({("broker", ""): "2", ("broker", "1"): " 3 "}, [3, 2]),
        ({("broker", "1"): "3", ("topic", "a"): "2", ("topic", "b"): "9"}, [2, 3]),
        ({("broker", ""): "many"}, [1, 1]),
    ],
)
def test_the_least_isr_is_the_topics_else_its_leaders_else_the_default(
    configs: dict[tuple[str, str], str], least: list[int]
) -> None:
    brokers = dict.fromkeys((1, 2, 3), (None, True))
    cluster = cluster_of(*tables(Cluster(brokers, [[1, 2, 3], [2, 1, 3]]), configs))
    assert cluster.layout.min_isr.tolist() == least


def test_what_could_not_be_read_is_told() -> None:
    partitions, brokers, configs = tables(Cluster({}, []))
    damaged = pa.Table.from_pylist([{"error": "corrupt at 7"}], schema("partitions"))
    found = placement(pa.concat_tables([partitions, damaged]), brokers, configs)
    assert found.summary["errors"] == ["corrupt at 7"]
    assert (found.brokers.num_rows, found.losses.num_rows, found.moves.num_rows) == (0, 0, 0)


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_tables_and_arrays_say_the_same(cluster: Cluster) -> None:
    found = placement(*tables(cluster))
    layout = cluster.layout()
    few = (layout.replicas != NOBODY).sum(axis=1).clip(max=cluster.min_isr).astype("int32")
    plan = plan_moves(layout._replace(min_isr=few), ~layout.brokers.is_active)
    ids = layout.brokers.ids
    planned = [[int(ids[each]) for each in replicas if each != NOBODY] for replicas in plan.after.tolist()]
    assert found.moves["planned"].to_pylist() == planned
    assert sum(found.moves["added"].to_pylist()) == plan.moved_replicas == found.summary["plan"]["moved_replicas"]
    rows = found.brokers.to_pylist()
    assert [row["broker_id"] for row in rows] == ids.tolist()
    assert sum(row["gains"] for row in rows) == sum(row["gives"] for row in rows) == plan.moved_replicas
    assert all(row["replicas"] + row["gains"] - row["gives"] == row["replicas_after"] for row in rows)
    assert sum(row["leaders_after"] for row in rows) == sum(row["leaders"] for row in rows)
    worst = max((row["offline"] for row in found.losses.to_pylist() if row["kind"] == "broker"), default=0)
    assert (found.summary["worst_losses"]["broker"] or {"offline": 0})["offline"] == worst
    ((cluster_id, again),) = PACKING.unpacked(PACKING.packed("c", found))
    assert cluster_id == "c"
    assert all(ours.equals(theirs) for ours, theirs in zip(again[:3], found[:3], strict=True))
    assert json.loads(json.dumps(as_report([("c", again)]))) == as_report([("c", found)])
