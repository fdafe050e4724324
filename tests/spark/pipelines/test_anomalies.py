"""Tests of anomalies in a metadata log: each has its numbers, and ordinary life is none."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.cli.spark import anomalies as spark_anomalies
from fastquorum.errors import UsageError
from fastquorum.sim.prng import Prng
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.pages.anomalies import MISSING, page_of
from fastquorum.spark.pipelines.anomalies import anomalies, unread
from fastquorum.spark.pipelines.anomalies.counting import counts_within, poisson_tail, stretches
from fastquorum.spark.pipelines.anomalies.findings import AnomalyKind, as_report
from fastquorum.spark.pipelines.anomalies.settings import AnomalySettings
from fastquorum.spark.pipelines.anomalies.signals import (
    CHECKPOINT_COLUMNS,
    SCHEMA,
    base_signals,
    checkpoint_signals,
    record_signals,
)
from fastquorum.storage.names import LOG_DIRECTORY
from tests.spark.damage import change as overwrite

from .timeline_model import Step
from .timeline_worlds import CLUSTER, broker_change, change, least, noop, partition, records, registered, topic

MINUTE = 60_000
HOUR = 60 * MINUTE
TOPIC = 2


def day(*more: Step, hours: int = 24) -> list[Step]:
    """No-ops once a minute, brokers 1 to 3, a topic of two partitions; and in order of time what else happens."""
    steps = [elected(0, 1)]
    steps += [registered(0, each, fenced=False) for each in (1, 2, 3)]
    steps += [topic(0), partition(0, 1, [1, 2, 3]), partition(0, 2, [2, 3, 1], partitionId=1)]
    steps += [noop(each * MINUTE) for each in range(1, hours * 60)]
    return sorted([*steps, *more], key=lambda step: step.time_ms)


def elected(time_ms: int, epoch: int) -> Step:
    return Step(time_ms, "LEADER_CHANGE", {"leaderId": epoch % 3 + 1}, epoch, True)


def restart(time_ms: int, broker_id: int) -> list[Step]:
    """It goes, and is back a minute later."""
    return [
        broker_change(time_ms, broker_id, fenced=1),
        registered(time_ms + MINUTE, broker_id, f"at {time_ms}"),
        broker_change(time_ms + MINUTE, broker_id, fenced=-1),
    ]


def snapshots(*ends: tuple[int, int], directory: str = "/n1") -> pa.Table:
    """By offset and time."""
    rows = [
        {
            "cluster_id": "c",
            "node_id": 1,
            "directory": directory,
            "offset": offset,
            "epoch": 1,
            "last_contained_timestamp": time_ms * 1000,
        }
        for offset, time_ms in ends
    ]
    kinds = [pa.string(), pa.int32(), pa.string(), pa.int64(), pa.int32(), pa.int64()]
    table = pa.Table.from_pylist(rows, pa.schema(list(zip(CHECKPOINT_COLUMNS, kinds, strict=True))))
    at = CHECKPOINT_COLUMNS.index("last_contained_timestamp")
    return table.set_column(at, CHECKPOINT_COLUMNS[at], table.column(at).cast(pa.timestamp("us", "UTC")))


def signals_of(records: pa.Table, base: pa.Table | None = None, checkpoints: pa.Table | None = None) -> pa.Table:
    """Return the signals of all of a log's tables."""
    parts = [*record_signals(records.to_batches())]
    parts += [] if base is None else base_signals(base.to_batches())
    parts += [] if checkpoints is None else checkpoint_signals(checkpoints.to_batches())
    return pa.Table.from_batches(parts, SCHEMA)


def found(steps: list[Step], checkpoints: pa.Table | None = None, **options: Any) -> dict[str, Any]:
    table = anomalies(signals_of(records(steps), checkpoints=checkpoints), AnomalySettings.of(**options))
    report: dict[str, Any] = json.loads(json.dumps(as_report(table)))
    return report


def only(steps: list[Step], checkpoints: pa.Table | None = None, **options: Any) -> dict[str, Any]:
    (row,) = found(steps, checkpoints, **options)["findings"]
    assert isinstance(row, dict)
    return row


# --- nothing unusual --------------------------------------------------------------------------------------------------


def test_in_a_quiet_log_nothing_is_unusual_and_it_is_told_what_was_looked_at() -> None:
    report = found(day())
    assert report["findings"] == []
    (cluster,) = report["clusters"]
    assert (cluster["cluster_id"], cluster["node_id"], cluster["lasted_ms"]) == ("c", 1, 24 * HOUR - MINUTE)
    assert cluster["quorum_elections"] == {"count": 1, "most": 1, "too_many": 6}


def test_a_rolling_restart_and_an_operators_day_are_nothing_unusual() -> None:
    steps = [step for at, each in enumerate((1, 2, 3)) for step in restart(9 * HOUR + at * 5 * MINUTE, each)]
    steps += [elected(9 * HOUR + each * 4 * MINUTE, 2 + each) for each in range(5)]
    steps += [change(9 * HOUR + each * MINUTE, leader=1 + each % 3) for each in range(10)]
    steps += [least(10 * HOUR, TOPIC, f"t{each}", "2") for each in range(5000)]  # in one second
    steps += [partition(11 * HOUR, 1, [1], partitionId=2 + each) for each in range(5000)]
    assert found(day(*steps))["findings"] == []


def test_a_short_real_log_has_no_storms() -> None:
    report = as_report(LocalEngine().anomalies(str(CLUSTER)))
    assert report["findings"] == []
    (cluster,) = report["clusters"]
    assert (cluster["end_offset"], cluster["snapshots"]) == (3836, 23)
    assert (cluster["quorum_elections"]["count"], cluster["broker_departures"]["count"]) == (2, 2)
    assert cluster["record_mix"] == "3.43 min are fewer than 6 windows"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_what_happens_at_random_at_an_even_rate_is_nothing_unusual(seed: int) -> None:
    """Poisson, at most as often as ordinary clusters see it."""
    prng = Prng(seed)
    steps = [elected(prng.between(1, 24 * HOUR), 2) for _ in range(6)]
    for _ in range(12):
        steps += restart(prng.between(1, 23 * HOUR), prng.between(1, 3))
    steps += [change(prng.between(1, 24 * HOUR), isr=[[1, 2, 3], [1, 2]][prng.between(0, 1)]) for _ in range(40)]
    steps += [least(prng.between(1, 24 * HOUR), TOPIC, "t", "2") for _ in range(200)]
    assert found(day(*steps))["findings"] == []


# --- each kind, planted -----------------------------------------------------------------------------------------------


def test_an_election_storm_of_the_quorum() -> None:
    row = only(day(*(elected(5 * HOUR + each * 30_000, 2 + each) for each in range(12))))
    assert (row["kind"], row["of"], row["peak"], row["threshold"]) == (AnomalyKind.ELECTION_STORM, "quorum", 12, 6)
    assert (row["begin"], row["end"]) == ("1970-01-01T05:00:00.000+00:00", "1970-01-01T05:05:30.000+00:00")
    assert row["end_offset"] - row["offset"] == 12 + 5  # no-ops between
    assert row["text"].startswith(
        "12 elections of the quorum's leader within 5.5 min, from 1970-01-01 05:00:00 on, epochs 2 to 13: 12 in a "
        "window of 30 min, where 6 are too many and 0.042 are usual; by chance in fewer than one of 10^9 such logs"
    )


def test_an_election_storm_of_partitions_is_one_and_names_the_worst() -> None:
    steps = [change(5 * HOUR + each * 60_000, leader=1 + each % 2) for each in range(1, 31)]
    steps += [change(5 * HOUR + each * 40_000, leader=1 + each % 2, partitionId=1) for each in range(2, 42)]
    row = only(day(*steps))
    assert (row["kind"], row["of"], row["subjects"]) == (AnomalyKind.ELECTION_STORM, "partitions", 2)
    assert (row["topic"], row["topic_id"], row["partition"], row["peak"]) == ("t", "id-t", 1, 40)
    assert row["text"].endswith("; so did 1 more partitions, less often")


def test_a_flapping_broker() -> None:
    steps = [step for each in range(6) for step in restart(7 * HOUR + each * 5 * MINUTE, 2)]
    row = only(day(*steps, *restart(2 * HOUR, 2), *restart(20 * HOUR, 3)))
    assert (row["kind"], row["broker_id"], row["peak"], row["threshold"]) == (AnomalyKind.FLAPPING_BROKER, 2, 6, 4)
    assert row["text"].startswith("broker 2 went 6 times within 25 min, from 1970-01-01 07:00:00 on: 6 in a window")
    assert 0 < row["chance"] < 0.01


def test_a_broker_that_returns_before_anybody_fenced_it_went_too() -> None:
    steps = [
        step
        for each in range(5)
        for step in (
            registered(7 * HOUR + each * MINUTE, 2, f"i{each + 2}"),
            broker_change(7 * HOUR + each * MINUTE, 2, fenced=-1),
        )
    ]
    assert only(day(*steps))["peak"] == 5


def test_an_isr_that_churns() -> None:
    steps = []
    for each in range(30):
        steps.append(change(9 * HOUR + each * 2 * MINUTE, isr=[1, 2]))
        steps.append(change(9 * HOUR + each * 2 * MINUTE + MINUTE, isr=[1, 2, 3]))
    row = only(day(*steps))
    assert (row["kind"], row["topic"], row["partition"], row["peak"]) == (AnomalyKind.ISR_CHURN, "t", 0, 15)
    assert "lost members of its ISR 30 times within 58 min" in row["text"]


def test_records_of_a_type_that_suddenly_become_many() -> None:
    steps = [least(12 * HOUR + 10 * MINUTE + each * 4000, TOPIC, "t", "2") for each in range(600)]
    ordinary = [least(each * 2 * HOUR + MINUTE, TOPIC, "t", "2") for each in range(12)]
    row = only(day(*steps, *ordinary))
    assert (row["kind"], row["type"]) == (AnomalyKind.RECORD_MIX_CHANGE, "CONFIG_RECORD")
    assert (row["begin"][11:16], row["end"][11:16]) == ("12:01", "12:49")  # with one that came before, in its window
    assert (row["peak"], row["threshold"], row["usual"]) == (301, 200, 0)
    assert "in 301 seconds of a window of 30 min there was one, where 200 are too many" in row["text"]


def test_records_that_become_many_every_few_hours_are_usual() -> None:
    steps = [least(hour * HOUR + each * 4000, TOPIC, "t", "2") for hour in (3, 9, 15, 21) for each in range(400)]
    assert found(day(*steps))["findings"] == []


def test_a_gap_between_snapshots_is_one_for_all_replicas() -> None:
    ends = [(60 * each, each * HOUR) for each in range(1, 24) if not 10 < each < 15]
    both = pa.concat_tables([snapshots(*ends), snapshots(*ends, directory="/n2")])
    row = only(day(), both)
    assert (row["kind"], row["offset"], row["end_offset"]) == (AnomalyKind.SNAPSHOT_GAP, 600, 900)
    assert (row["peak"], row["usual"], row["threshold"]) == (300, 60, 180)
    assert row["directories"] == ["/n1", "/n2"]
    assert row["text"].startswith("no snapshot for 300 min and 300 offsets, from that at offset 600 (1970-01-01 10:00")


def test_no_snapshot_since_is_a_gap() -> None:
    row = only(day(), snapshots(*((60 * each, each * HOUR) for each in range(1, 15))))
    assert row["offset"] == 840
    assert "to the end of the log" in row["text"]


def test_snapshots_that_are_far_apart_only_in_time_or_only_in_offsets_are_no_gap() -> None:
    by_bytes = [(240 * each, each * HOUR) for each in range(1, 6)]
    assert found(day(), snapshots(*by_bytes, (1440, 24 * HOUR)))["findings"] == []
    by_time = [(60 * each + (500 if each > 5 else 0), each * HOUR) for each in range(1, 24)]
    assert found(day(), snapshots(*by_time))["findings"] == []


# --- how much is too much ---------------------------------------------------------------------------------------------


def test_sensitivity_says_how_much_is_needed() -> None:
    steps = day(*(step for each in range(3) for step in restart(7 * HOUR + each * 5 * MINUTE, 2)))
    assert [len(found(steps, sensitivity=each)["findings"]) for each in ("low", "normal", "high")] == [0, 0, 1]


def test_the_window_says_what_is_counted_together() -> None:
    steps = day(*(elected(5 * HOUR + each * 20 * MINUTE, 2 + each) for each in range(8)))
    assert found(steps)["findings"] == []
    assert only(steps, window_minutes=180)["peak"] == 8


@pytest.mark.parametrize("options", [{"window_minutes": 0}, {"window_minutes": 1e9}, {"sensitivity": "extreme"}])
def test_what_cannot_be_a_setting_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        AnomalySettings.of(**options)


def test_what_never_was_committed_is_not_looked_at() -> None:
    storm = [elected(25 * HOUR + each * 1000, 2 + each) for each in range(20)]
    whole = day()
    both = [records(whole, 1), records([*whole, *storm], 2), records(whole, 3)]
    assert as_report(anomalies(signals_of(pa.concat_tables(both))))["findings"] == []


def test_a_storm_in_the_hole_of_one_replica_is_told_by_another_and_a_hole_of_all_is_counted() -> None:
    storm = [elected(25 * HOUR + each * 1000, 2 + each) for each in range(20)]
    steps = [*day(), *storm, noop(26 * HOUR)._replace(epoch=30)]
    holed, whole = records(steps, 1), records(steps, 2)
    holed = pa.concat_tables([holed.slice(0, len(steps) - 21), holed.slice(len(steps) - 1)])
    report = as_report(anomalies(signals_of(pa.concat_tables([holed, whole]))))
    assert (report["kinds"], report["clusters"][0]["missing_records"]) == ({"election-storm": 1}, 0)
    report = as_report(anomalies(signals_of(holed)))
    assert (report["kinds"], report["clusters"][0]["missing_records"]) == ({}, 20)


def test_replicas_that_share_nothing_are_named_and_nothing_is_said_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    other = [step._replace(epoch=7) for step in day(hours=1)]
    both = pa.concat_tables([records(day(hours=1), 1), records(other, 2)])
    report = as_report(anomalies(signals_of(both)))
    assert "no majority" in report["clusters"][0]["unchecked"]
    spark_anomalies.show(report)
    assert capsys.readouterr().out.endswith("1 clusters: nothing unusual; 1 could not be checked\n")
    assert spark_anomalies.verdict(report) == 1
    assert spark_anomalies.verdict(as_report(anomalies(signals_of(records(day(hours=1), 1))))) == 0


def test_records_that_could_not_be_read_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    (segment,) = (root / LOG_DIRECTORY).glob("*.log")
    overwrite(segment, segment.stat().st_size // 2, b"\xff\x00\xff")
    report = as_report(LocalEngine().anomalies(str(root)))
    (cluster,) = report["clusters"]
    assert cluster["missing_records"] == 611  # of one batch
    spark_anomalies.show(report)
    assert MISSING.format(611) in capsys.readouterr().out
    assert any(MISSING.format(611) in each for each in page_of(report).warnings)


def test_a_topic_from_before_the_log_has_its_name() -> None:
    steps = [step for step in day() if step.type != "TOPIC_RECORD"]
    steps += [change(23 * HOUR + each * 60_000, isr=[[1, 2, 3], [1]][each % 2]) for each in range(40)]
    base = pa.table({"cluster_id": ["c"], "node_id": [1], "directory": ["/n1"], "type": ["TOPIC_RECORD"],
                     "data": ['{"name":"named","topicId":"id-t"}']})  # fmt: skip
    base = base.set_column(1, "node_id", base["node_id"].cast(pa.int32()))
    (row,) = as_report(anomalies(signals_of(records(steps, first_offset=500), base)))["findings"]
    assert (row["topic"], row["partition"]) == ("named", 0)


def test_a_cluster_without_a_record_that_can_be_read_was_not_looked_at() -> None:
    tables = [unread("c"), anomalies(signals_of(records([]), checkpoints=snapshots((40, MINUTE))))]
    for each in tables:
        report = as_report(each)
        assert [cluster["unchecked"] for cluster in report["clusters"]] == ["none of its logs has a record to look at"]
        assert spark_anomalies.verdict(report) == 1


def test_nothing_comes_of_nothing() -> None:
    assert anomalies(signals_of(records([]))).num_rows == 0


# --- against slow twins -----------------------------------------------------------------------------------------------

events = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100)), max_size=40).map(sorted)


@settings(max_examples=300, deadline=None)
@given(events.filter(bool), st.integers(1, 30))
def test_windows_are_counted_as_one_would_by_hand(some: list[tuple[int, int]], window: int) -> None:
    subjects, times = np.array(some, np.int64).T
    expected = [
        sum(other == subject and time - window < at <= time for other, at in some[: place + 1])
        for place, (subject, time) in enumerate(some)
    ]
    assert counts_within(subjects, times, window).tolist() == expected


@settings(max_examples=300, deadline=None)
@given(events.filter(bool), st.integers(1, 30), st.integers(1, 5))
def test_stretches_are_what_windows_with_too_many_cover(
    some: list[tuple[int, int]], window: int, least_count: int
) -> None:
    subjects, times = np.array(some, np.int64).T
    counts = counts_within(subjects, times, window).tolist()
    covered = set()
    for place, count in enumerate(counts):
        if count >= least_count:
            covered |= set(range(place - count + 1, place + 1))
    bursts = list(stretches(subjects, times, 100, window, least_count, 2.0))
    assert {at for each in bursts for at in range(each.begin, each.end)} == covered
    assert sum(each.end - each.begin for each in bursts) == len(covered)
    assert all(each.peak == max(counts[each.begin : each.end]) or each.peak >= least_count for each in bursts)


@given(st.integers(0, 60), st.floats(0.001, 50))
def test_the_tail_is_the_rest_of_a_poisson_distribution(count: int, usual: float) -> None:
    below = math.fsum(math.exp(-usual + each * math.log(usual) - math.lgamma(each + 1)) for each in range(count))
    tail = poisson_tail(count, usual)
    assert tail == 1.0 if count <= usual else tail == pytest.approx(1 - below, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_in_whatever_order_rows_come_the_findings_are_the_same(seed: int) -> None:
    steps = day(*(elected(5 * HOUR + each * 30_000, 2 + each) for each in range(12)))
    signals, prng = signals_of(records(steps)), Prng(seed)
    assert anomalies(signals.take(prng.shuffled(range(signals.num_rows)))).equals(anomalies(signals))
