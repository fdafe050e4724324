"""Tests of timelines: leaders, fenced brokers, and partitions without a leader, with few replicas, or a small ISR."""

import itertools
import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.cli.spark import timeline as spark_timeline
from fastquorum.errors import ImageFailed, UsageError
from fastquorum.spark.pipelines.timeline import (
    PACKING,
    Timeline,
    as_report,
    based_timeline,
    timeline_or_why,
)
from fastquorum.spark.pipelines.timeline.base import BASE_COLUMNS
from fastquorum.spark.pipelines.timeline.history import COLUMNS
from fastquorum.spark.pipelines.timeline.lives import Event, LifeState
from fastquorum.spark.pipelines.timeline.summary import as_text
from fastquorum.spark.scan import read_table
from fastquorum.storage.names import LOG_DIRECTORY
from tests.spark.damage import change as overwrite

from .timeline_model import BROKER, CONDITIONS, SCHEMA, TOPIC, Step, partition_rows, settled, walk
from .timeline_worlds import (
    CLUSTER,
    broker_change,
    change,
    dumped,
    image_of,
    least,
    logs,
    noop,
    partition,
    records,
    registered,
    removal,
    timeline,
    topic,
)

ADDITIVE = ("existed_ms", *(f"{each}_ms" for each in CONDITIONS), "leader_changes")


def of(*steps: Step) -> Timeline:
    return timeline(records(list(steps)))


def only(table: pa.Table) -> dict[str, Any]:
    (row,) = table.to_pylist()
    return row


def events_of(found: Timeline) -> list[tuple[int, str, int | None]]:
    return [(row["offset"], row["event"], row["node_id"]) for row in found.events.to_pylist()]


# --- a real cluster ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> Timeline:
    """Return the timeline of three replicas; one has a tail that the others never got."""
    return timeline(read_table(str(CLUSTER)).select(COLUMNS))


def test_the_real_clusters_events_are_those_that_were_done_to_it(real: Timeline) -> None:
    assert events_of(real) == [
        (0, Event.LEADER, 3),
        (2, Event.VOTERS, None),
        (38, Event.REGISTERED, 12),
        (39, Event.REGISTERED, 11),
        (41, Event.REGISTERED, 13),
        (45, Event.UNFENCED, 12),
        (48, Event.UNFENCED, 11),
        (50, Event.UNFENCED, 13),
        (1815, Event.FENCED, 13),  # killed
        (1827, Event.REGISTERED, 13),
        (1835, Event.UNFENCED, 13),
        (2457, Event.SHUTTING_DOWN, 12),  # by SIGTERM
        (3076, Event.FENCED, 12),
        (3096, Event.REGISTERED, 12),
        (3097, Event.UNFENCED, 12),
        (3720, Event.LEADER, 2),  # 3 was killed
        (3763, Event.VOTER_ADDED, 4),
        (3774, Event.VOTER_REMOVED, 4),
    ]
    why = {row["offset"]: row["why"] for row in real.events.to_pylist() if row["event"] == Event.FENCED}
    assert why == {1815: None, 3076: "a controlled shutdown had begun"}
    assert {row["offset"]: row["epoch"] for row in real.events.to_pylist()}[3720] == 3


def test_the_real_clusters_partitions_went_through_what_kafka_dumped(real: Timeline) -> None:
    """Topic by topic, by the slow model, from the text that kafka-dump-log printed."""
    steps = settled(dumped("dump-c1.txt.gz"))
    end_ms = steps[-1].time_ms
    ids = {step.data["topicId"] for step in steps if step.type == "TOPIC_RECORD"}
    expected = []
    of_topics: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        for topic_id in ids if step.type == "CONFIG_RECORD" else [step.data.get("topicId", "")]:
            of_topics[topic_id].append(step)
    for topic_id in ids:
        expected += partition_rows(walk(of_topics[topic_id], end_ms))
    expected.sort(key=lambda row: (row["topic"], row["topic_id"], row["partition"]))
    assert len(expected) == 740
    assert sum(row["is_there"] for row in expected) == 650
    assert sum(row["under_replicated_ms"] for row in expected) > 1_000_000
    assert real.partitions.to_pylist() == expected


def test_the_real_clusters_brokers_were_what_kafka_dumped(real: Timeline) -> None:
    steps = settled(dumped("dump-c1.txt.gz"))
    of_brokers = [step for step in steps if "BROKER" in step.type]
    walked = walk(of_brokers, steps[-1].time_ms)
    rows = {row["broker_id"]: row for row in real.brokers.to_pylist()}
    assert {each: row["bounces"] for each, row in rows.items()} == {11: 0, 12: 1, 13: 1}
    for broker_id, row in rows.items():
        lasted = {name: row[f"{name}_ms"] for name in ("fenced", "active")}
        assert lasted | {"shutdown": row["controlled_shutdown_ms"]} == walked.lasted[broker_id]
        assert row["led"] == sum(each["leader"] == broker_id for each in real.partitions.to_pylist())
    assert sum(row["led_ms"] for row in rows.values()) == sum(real.partitions["existed_ms"].to_pylist())


def test_an_uncommitted_tail_of_the_real_cluster_is_not_told(real: Timeline) -> None:
    tail = timeline(read_table(str(CLUSTER / "c2")))
    assert real.summary["end_offset"] == 3836
    assert tail.summary["end_offset"] == 4447
    assert events_of(tail)[: len(events_of(real))] == events_of(real)
    assert events_of(tail)[len(events_of(real)) :] != []
    assert timeline(read_table(str(CLUSTER / "c2")), committed_end=3836).partitions == real.partitions


def test_the_real_clusters_summary_is_json_and_text(real: Timeline) -> None:
    summary = json.loads(json.dumps(real.summary))
    assert summary["cluster_id"] == "usACA5tBSrKS64DhDt4jig"
    assert summary["node_id"] == 1
    assert summary["events"]["fenced"] == 2
    assert len(summary["worst_partitions"]["under_replicated"]) == 10
    assert summary["worst_partitions"]["offline"] == []
    assert [row["broker_id"] for row in summary["worst_brokers"]] == [12, 13, 11]
    text = "\n".join(as_text(summary))
    assert "740 partitions, 650 of them at the end" in text
    assert "broker 13: fenced for 0.17 min, 1 bounces" in text


# --- sums worked out by hand ------------------------------------------------------------------------------------------


def test_a_partition_is_offline_while_nobody_leads_it() -> None:
    row = only(
        of(
            topic(0),
            partition(100, 1, [1, 2]),
            change(200, leader=-1, isr=[1]),
            change(250, leader=2),
            change(300, leader=-1),
            change(310, leader=2),
            noop(1000),
        ).partitions
    )
    assert (row["existed_ms"], row["offline_ms"], row["longest_offline_ms"]) == (900, 60, 50)
    assert (row["leader_changes"], row["leader"], row["is_offline"]) == (4, 2, False)


def test_a_partition_is_under_replicated_while_its_isr_lacks_a_replica() -> None:
    row = only(of(topic(0), partition(0, 1, [1, 2, 3]), change(10, isr=[1, 2]), noop(50)).partitions)
    assert (row["under_replicated_ms"], row["is_under_replicated"], row["under_min_isr_ms"]) == (40, True, 0)


def test_a_replica_that_is_being_added_is_not_missed() -> None:
    moving = change(10, replicas=[1, 2, 3], addingReplicas=[3])
    row = only(of(topic(0), partition(0, 1, [1, 2]), moving, change(50, addingReplicas=[]), noop(80)).partitions)
    assert row["under_replicated_ms"] == 30


def test_the_least_isr_is_the_topics_then_the_leaders_then_every_brokers_then_one() -> None:
    row = only(
        of(
            topic(0),
            partition(0, 1, [1, 2, 3], [1]),
            noop(10),  # one is enough by default
            least(20, BROKER, "", "2"),
            least(50, BROKER, "1", "1"),
            least(60, TOPIC, "t", "3"),
            least(65, TOPIC, "u", "1"),
            least(80, TOPIC, "t", None),
            change(100, leader=2, isr=[2]),
            noop(200),
        ).partitions
    )
    assert (row["under_min_isr_ms"], row["longest_under_min_isr_ms"], row["is_under_min_isr"]) == (150, 100, True)


def test_a_least_isr_above_the_number_of_replicas_means_all_of_them() -> None:
    row = only(
        of(topic(0), least(0, TOPIC, "t", "5"), partition(0, 1, [1, 2]), change(7, isr=[1]), noop(10)).partitions
    )
    assert row["under_min_isr_ms"] == 3


@pytest.mark.parametrize("value", ["", "two", "1.5"])
def test_a_least_isr_that_is_no_number_is_the_default_one(value: str) -> None:
    row = only(of(topic(0), least(0, TOPIC, "t", value), partition(0, 1, [1, 2], [1]), noop(10)).partitions)
    assert row["under_min_isr_ms"] == 0


def test_a_removed_topic_stops_counting_and_its_setting_goes_with_it() -> None:
    again = [topic(50, "t", "id-2"), partition(50, 1, [1, 2], [1], topicId="id-2"), noop(90)]
    first = [topic(0), least(0, TOPIC, "t", "2"), partition(0, 1, [1, 2], [1]), removal(30)]
    old, new = of(*first, *again).partitions.sort_by("existed_ms").to_pylist()
    assert (old["topic"], old["existed_ms"], old["under_min_isr_ms"], old["is_there"]) == ("t", 30, 30, False)
    assert (old["leader"], old["is_under_replicated"]) == (None, False)
    assert (new["topic"], new["existed_ms"], new["under_min_isr_ms"], new["is_there"]) == ("t", 40, 0, True)


def test_what_a_transaction_holds_counts_from_its_end_on() -> None:
    row = only(
        of(
            Step(0, "BEGIN_TRANSACTION_RECORD", {"name": "n"}),
            topic(0),
            partition(10, -1, [1]),
            Step(100, "END_TRANSACTION_RECORD"),
            noop(130),
        ).partitions
    )
    assert (row["existed_ms"], row["offline_ms"]) == (30, 30)


@pytest.mark.parametrize("after", [[Step(20, "ABORT_TRANSACTION_RECORD", {"reason": "r"})], []])
def test_what_a_transaction_holds_that_never_ended_does_not_count(after: list[Step]) -> None:
    begin = Step(10, "BEGIN_TRANSACTION_RECORD", {"name": "n"})
    found = of(topic(0), partition(0, 1, [1]), begin, change(10, leader=-1), registered(15, 1), *after, noop(40))
    assert only(found.partitions)["offline_ms"] == 0
    assert events_of(found) == []


def test_a_clock_that_goes_back_stands_still_until_it_has_caught_up() -> None:
    found = of(topic(0), partition(100, 1, [1]), change(80, leader=-1), change(110, leader=1), noop(120))
    row = only(found.partitions)
    assert (row["existed_ms"], row["offline_ms"]) == (20, 10)
    assert found.summary["clock_back_ms"] == 20


def test_a_brokers_time_is_shared_out_among_what_it_was() -> None:
    found = of(
        registered(0, 7),
        broker_change(10, 7, fenced=-1),
        topic(20),
        partition(20, 7, [7]),
        broker_change(60, 7, inControlledShutdown=1),
        change(65, leader=-1, isr=[7]),
        broker_change(70, 7, fenced=1),
        registered(90, 7, "i2"),
        broker_change(95, 7, fenced=-1),
        change(100, leader=7),
        noop(200),
    )
    row = only(found.brokers)
    assert row["registered_ms"] == 200
    assert (row["fenced_ms"], row["controlled_shutdown_ms"], row["active_ms"]) == (10 + 25, 10, 50 + 105)
    assert (row["bounces"], row["fences"], row["state"]) == (1, 1, LifeState.ACTIVE)
    assert (row["led_ms"], row["led_mean"], row["led"]) == (45 + 100, 0.725, 1)


def test_a_broker_that_is_unregistered_is_no_longer_registered() -> None:
    gone = Step(30, "UNREGISTER_BROKER_RECORD", {"brokerId": 7, "brokerEpoch": 7})
    found = of(registered(0, 7, fenced=False), gone, registered(50, 7, "i2"), noop(60))
    row = only(found.brokers)
    assert (row["registered_ms"], row["fenced_ms"], row["bounces"]) == (40, 10, 1)
    assert [event for _, event, _ in events_of(found)] == [Event.REGISTERED, Event.UNREGISTERED, Event.REGISTERED]


def test_a_return_without_a_fence_before_says_so() -> None:
    found = of(registered(0, 7), broker_change(5, 7, fenced=-1), registered(9, 7, "i2"), noop(10))
    assert found.events["why"].to_pylist() == [None, None, "its former incarnation was active still"]


def test_old_records_of_fencing_say_the_same() -> None:
    old = [Step(at, f"{name}_BROKER_RECORD", {"id": 7, "epoch": 7}) for at, name in ((5, "UNFENCE"), (9, "FENCE"))]
    found = of(registered(0, 7), *old, noop(10))
    assert events_of(found)[1:] == [(1, Event.UNFENCED, 7), (2, Event.FENCED, 7)]
    assert only(found.brokers)["active_ms"] == 4


def test_nothing_comes_of_nothing() -> None:
    found = timeline(SCHEMA.empty_table())
    assert [table.num_rows for table in (found.events, found.partitions, found.brokers)] == [0, 0, 0]
    assert list(as_text(found.summary)) != []


# --- which log is read, and how far -----------------------------------------------------------------------------------


def test_of_several_replicas_only_what_a_majority_shares_counts() -> None:
    whole = [topic(0), partition(0, 1, [1]), change(10, leader=-1), change(30, leader=1), noop(90)]
    replicas = [records(whole[:3], 1), records(whole[:4], 2), records(whole, 3)]
    found = timeline(pa.concat_tables(replicas))
    assert (found.summary["node_id"], found.summary["end_offset"]) == (2, 4)
    assert only(found.partitions)["offline_ms"] == 20


def test_a_tail_of_an_epoch_that_lost_is_not_read_however_long_it_is() -> None:
    shared = [topic(0), partition(0, 1, [1])]
    lost = [*shared, change(10, leader=-1), *(noop(20) for _ in range(9))]
    won = [*shared, Step(50, "LEADER_CHANGE", {"leaderId": 2}, 2, True), noop(60)._replace(epoch=2)]
    found = timeline(pa.concat_tables([records(lost, 1), records(won, 2), records(won, 3)]))
    assert (found.summary["node_id"], found.summary["end_offset"]) == (2, 4)
    assert only(found.partitions)["offline_ms"] == 0


def test_the_caller_may_know_what_is_committed() -> None:
    steps = [topic(0), partition(0, 1, [1]), change(10, leader=-1), noop(30)]
    assert timeline(records(steps), committed_end=2).summary["end_offset"] == 2


def test_replicas_that_share_nothing_are_refused() -> None:
    other = [step._replace(epoch=2) for step in (topic(0), noop(1))]
    with pytest.raises(UsageError, match="no majority"):
        timeline(pa.concat_tables([records([topic(0)], 1), records(other, 2)]))


def test_of_a_cluster_that_cannot_be_told_the_report_says_why_and_the_others_are_told() -> None:
    torn = pa.concat_tables([records([topic(0)], 1), records([topic(0)._replace(epoch=2)], 2)])
    clusters: dict[str | None, pa.Table] = {
        "impossible": records([noop(0), change(1, leader=1)]),
        "torn": torn,
        "well": records([registered(0, 1), topic(0), partition(0, 1, [1])]),
    }
    base = read_table(str(CLUSTER), "base").select(BASE_COLUMNS).slice(0, 0)
    packed = [PACKING.packed(name, timeline_or_why(name, each, base)) for name, each in clusters.items()]
    found = PACKING.unpacked(pa.concat_tables(packed))
    report = json.loads(json.dumps(as_report(found)))
    impossible, none_shared, well = report["clusters"]
    assert "PARTITION_CHANGE_RECORD at offset 1 cannot be applied" in impossible["unchecked"]
    assert none_shared == {"cluster_id": "torn", "unchecked": none_shared["unchecked"]}
    assert "no majority shares a record" in none_shared["unchecked"]
    assert (well["cluster_id"], well["partitions"]["count"], "unchecked" in well) == ("c", 1, False)
    assert {each["cluster_id"] for each in report["events"]} == {"well"}
    assert [*as_text(none_shared)] == [f"cluster torn has no timeline: {none_shared['unchecked']}"]
    tables = PACKING.tables(found)
    assert tables["partitions"]["cluster_id"].to_pylist() == ["well"]
    assert tables["summary"]["cluster_id"].to_pylist() == [*clusters]


def test_clusters_are_told_one_at_a_time() -> None:
    one = records([noop(0)])
    other = one.set_column(0, "cluster_id", pa.array(["d"]))
    with pytest.raises(UsageError, match="2 clusters"):
        timeline(pa.concat_tables([one, other]))


def test_rows_in_any_order_are_read_in_their_offsets() -> None:
    rows = records([topic(0), partition(0, 1, [1]), change(10, leader=-1), change(30, leader=1), noop(90)])
    assert timeline(rows.take([4, 2, 0, 3, 1])).partitions == timeline(rows).partitions


def test_a_log_that_is_cut_off_is_told_from_where_it_says_what_was_created() -> None:
    steps = [change(0, partitionId=9, leader=3), topic(5), partition(5, 1, [1, 2], [1]), broker_change(7, 7, fenced=1)]
    found = timeline(records([*steps, noop(20)], first_offset=1000))
    assert only(found.partitions)["under_replicated_ms"] == 15
    assert events_of(found) == [(1003, Event.FENCED, 7)]
    assert (found.summary["is_whole"], found.summary["unknown_partitions"]) == (False, 1)
    assert "1 partitions changed" in "\n".join(as_text(found.summary))


def test_a_log_that_is_cut_off_in_a_transaction_counts_it_if_it_ended() -> None:
    end = Step(10, "END_TRANSACTION_RECORD")
    found = timeline(records([topic(0), partition(0, 1, [1]), end, noop(30)], first_offset=5))
    assert only(found.partitions)["existed_ms"] == 20


def test_an_image_says_what_there_was_before_and_nothing_that_happened() -> None:
    image = records([topic(70), partition(70, 1, [1, 2]), registered(70, 1, fenced=False)], node_id=9)
    found = timeline(records([change(100, isr=[1]), broker_change(110, 1, fenced=1)], first_offset=500), image)
    assert events_of(found) == [(501, Event.FENCED, 1)]
    row = only(found.partitions)
    assert (row["existed_ms"], row["under_replicated_ms"]) == (40, 10)
    assert only(found.brokers)["registered_ms"] == 40
    assert found.summary["is_whole"]


@pytest.mark.parametrize(
    ("steps", "offset"),
    [
        ([topic(0), change(0, leader=1)], 1),
        ([topic(0), partition(0, 1, [1]), removal(1), change(2, leader=1)], 3),
        ([noop(0), broker_change(0, 3, fenced=1)], 1),
        ([noop(0), Step(1, "END_TRANSACTION_RECORD")], 1),
        ([Step(0, "BEGIN_TRANSACTION_RECORD"), Step(1, "BEGIN_TRANSACTION_RECORD")], 1),
    ],
)
def test_what_cannot_be_is_named_with_its_offset(steps: list[Step], offset: int) -> None:
    with pytest.raises(ImageFailed) as caught:
        timeline(records(steps))
    assert caught.value.offset == offset


def test_records_that_nobody_can_read_are_counted() -> None:
    rows = records([topic(0), noop(1), noop(2)])
    rows = rows.set_column(rows.schema.get_field_index("data"), "data", pa.array([rows["data"][0].as_py(), None, "{}"]))
    found = timeline(rows)
    assert found.summary["unreadable_records"] == 1
    assert "1 records cannot be read" in "\n".join(as_text(found.summary))


def test_a_replica_without_a_hole_is_read_though_a_damaged_one_comes_first() -> None:
    steps = [topic(0), partition(0, 1, [1, 2]), change(10, isr=[1]), noop(30)]
    damaged = records(steps, node_id=1)
    no_epoch = pa.array([0, 0, None, 0], damaged["epoch"].type)
    damaged = damaged.set_column(damaged.schema.get_field_index("epoch"), "epoch", no_epoch)
    gap = records(steps, node_id=2)
    gap = pa.concat_tables([gap.slice(0, 1), gap.slice(2)])
    found = timeline(pa.concat_tables([damaged, gap, records(steps, node_id=3)]))
    assert (found.summary["node_id"], only(found.partitions)["under_replicated_ms"]) == (3, 20)
    assert (found.summary["missing_records"], found.summary["unreadable_records"]) == (0, 0)


def test_what_is_missing_where_no_replica_is_whole_is_counted_and_nothing_is_asked_of_it() -> None:
    rows = records([topic(0), partition(0, 1, [1, 2]), change(10, isr=[1]), broker_change(11, 7, fenced=1), noop(30)])
    found = timeline(pa.concat_tables([rows.slice(0, 1), rows.slice(2)]))
    assert (found.summary["missing_records"], found.summary["unknown_partitions"]) == (1, 1)
    assert "1 records are missing from this log, or damaged" in "\n".join(as_text(found.summary))


# --- of a log that begins with a snapshot -----------------------------------------------------------------------------


def based(base: pa.Table, node_id: int, end_offset: int | None) -> pa.Table:
    """An image in the form of table `base`, with the row that says from where on the log is known."""
    rows = base.select(["cluster_id", "node_id", "directory", "epoch", "timestamp", "type", "data"])
    first = pa.table([[each] for each in ("c", node_id, f"/n{node_id}", None, None, None, None)], schema=rows.schema)
    rows = pa.concat_tables([first, rows])
    return rows.append_column("end_offset", pa.array([end_offset] * rows.num_rows, pa.int64()))


def test_what_a_snapshot_holds_already_is_told_once() -> None:
    image = records([topic(70), partition(70, 1, [1, 2]), registered(70, 1, fenced=False)], node_id=9)
    log = [partition(60, 1, [1, 2]), broker_change(65, 1, fenced=-1), change(100, isr=[1]), noop(110)]
    found = based_timeline(records(log, first_offset=500, node_id=9), based(image, 9, 502))
    assert events_of(found) == []
    row = only(found.partitions)
    assert (row["existed_ms"], row["under_replicated_ms"]) == (40, 10)
    assert (found.summary["is_whole"], found.summary["end_offset"]) == (True, 504)


def test_the_snapshot_is_that_of_the_replica_that_is_read() -> None:
    log = [change(100, isr=[1]), noop(110)]
    images = [
        based(records([topic(70), partition(70, 1, [1, 2])], node_id=1), 1, 500),
        based(records([topic(90), partition(90, 1, [1, 2])], node_id=2), 2, 500),
    ]
    both = pa.concat_tables([records(log, first_offset=500, node_id=each) for each in (1, 2)])
    found = based_timeline(both, pa.concat_tables(images))
    assert (found.summary["node_id"], only(found.partitions)["existed_ms"]) == (1, 40)


def test_a_snapshot_alone_is_a_cluster_to_which_nothing_happened() -> None:
    image = records([topic(70), partition(70, 1, [1, 2], isr=[1]), registered(70, 1, fenced=False)], node_id=3)
    found = based_timeline(records([]), based(image, 3, 500))
    assert events_of(found) == []
    assert [found.summary[each] for each in ("cluster_id", "node_id", "end_offset", "is_whole")] == ["c", 3, 500, True]
    assert found.summary["partitions"]["at_end"]["under_replicated"] == 1


def test_without_a_good_snapshot_nothing_is_known_of_what_was_before() -> None:
    log = records([change(100, isr=[1]), noop(110)], first_offset=500)
    nothing = records([]).slice(0, 0)
    found = based_timeline(log, based(nothing, 1, None))
    assert (found.summary["is_whole"], found.summary["unknown_partitions"]) == (False, 1)
    empty = based_timeline(records([noop(1)]), based(nothing, 1, 0))
    assert empty.summary["is_whole"]


# --- against the slow model -------------------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(logs())
def test_whatever_happens_the_sums_are_those_of_the_slow_model(steps: list[Step]) -> None:
    found = timeline(records(steps))
    end_ms = max((step.time_ms for step in steps), default=0)
    walked = walk(settled(steps), end_ms)
    assert found.partitions.to_pylist() == partition_rows(walked)
    rows = {row["broker_id"]: row for row in found.brokers.to_pylist()}
    assert set(walked.lasted) | {each for each in walked.led_ms if each != -1} == set(rows)
    for broker_id, row in rows.items():
        lasted = walked.lasted.get(broker_id, {"fenced": 0, "shutdown": 0, "active": 0})
        assert (row["fenced_ms"], row["controlled_shutdown_ms"], row["active_ms"]) == (
            lasted["fenced"],
            lasted["shutdown"],
            lasted["active"],
        )
        assert row["led_ms"] == walked.led_ms.get(broker_id, 0)
        assert row["bounces"] == walked.bounces.get(broker_id, 0)
        assert row["led"] == sum(each["leader"] == broker_id for each in walked.world.partitions.values())


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(logs(), st.data())
def test_a_log_in_two_with_an_image_between_sums_up_to_the_same(steps: list[Step], data: st.DataObject) -> None:
    markers = ("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")
    open_at = itertools.accumulate(step.type == markers[0] or -(step.type in markers[1:]) for step in steps)
    cuts = [at for at, is_open in enumerate(open_at, 1) if not is_open] or [0]
    cut = data.draw(st.sampled_from(cuts))
    before = settled(steps[:cut])
    now_ms = max((step.time_ms for step in steps[:cut]), default=0)
    brokers = [step for step in before if step.type == "REGISTER_BROKER_RECORD"]
    # An image of nothing would say nothing of its time either, and clocks go back.
    image = records([noop(now_ms), *image_of(walk(before, now_ms).world, now_ms), *brokers])
    parts = [timeline(records(steps[:cut])), timeline(records(steps[cut:], first_offset=cut), image)]
    sums: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0] * len(ADDITIVE))
    for row in itertools.chain(*(each.partitions.to_pylist() for each in parts)):
        key = row["topic_id"], row["partition"]
        sums[key] = [known + row[name] for known, name in zip(sums[key], ADDITIVE, strict=True)]
    whole = timeline(records(steps)).partitions.to_pylist()
    assert sums == {(row["topic_id"], row["partition"]): [row[name] for name in ADDITIVE] for row in whole}


@pytest.mark.parametrize("place", [1207, 2000, 3000])
def test_a_replica_that_lacks_what_others_have_is_not_read(place: int, tmp_path: Path) -> None:
    root = shutil.copytree(CLUSTER, tmp_path / "cluster")
    wanted = timeline(read_table(str(root), columns=",".join(COLUMNS)))
    assert wanted.summary["node_id"] == 1
    damage(root / "c1", place)
    found = timeline(read_table(str(root), mode="quarantine", columns=",".join(COLUMNS)))
    assert (found.summary["node_id"], found.summary["unreadable_records"]) == (2, 0)
    assert found.events.equals(wanted.events)
    assert found.partitions.equals(wanted.partitions)


def test_damage_that_every_replica_has_is_told(tmp_path: Path) -> None:
    root = shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    damage(root, 3000)
    found = timeline(read_table(str(root), mode="quarantine", columns=",".join(COLUMNS)))
    assert (found.summary["end_offset"], found.summary["unreadable_records"]) == (3836, 1)
    assert "1 records cannot be read: damage, or a type or version unknown here" in as_text(found.summary)


def test_a_person_is_shown_each_cluster_under_its_name_with_dates(capsys: pytest.CaptureFixture[str]) -> None:
    report = as_report([("one", real := timeline(read_table(str(CLUSTER / "c1"), columns=",".join(COLUMNS))))])
    other = {**real.summary, "cluster_id": "other"}
    event = {**report["events"][0], "cluster_id": "other", "timestamp": "2026-11-30T23:59:59+00:00", "text": "it began"}
    ours = [{**each, "cluster_id": real.summary["cluster_id"]} for each in report["events"]]
    spark_timeline.show({"events": [*ours, event], "clusters": [real.summary, other]})
    lines = capsys.readouterr().out.splitlines()
    (first, second) = (at for at, line in enumerate(lines) if line.startswith("cluster "))
    assert (first, lines[second - 1]) == (0, "")
    assert lines[second].startswith("cluster other, as node 1 has it: ")
    assert lines[second + 1 : second + 3] == [f"2026-11-30 23:59:59.000Z  {event['offset']:>8}  it began", ""]
    assert lines[1].startswith(f"{ours[0]['timestamp'][:10]} {ours[0]['timestamp'][11:23]}Z  ")
    assert lines[1].endswith(f"  {ours[0]['text']}")


def damage(root: Path, offset: int) -> None:
    """Also of the offset that the batch claims."""
    batches = read_table(str(root), "batches").to_pylist()
    at = next(each["position"] for each in batches if each["base_offset"] <= offset <= each["last_offset"])
    (segment,) = (root / LOG_DIRECTORY).glob("*.log")
    overwrite(segment, at, b"\x01")
