"""The pipelines in one process: the functions that Spark runs, over tables that are read here. Needs no JVM."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from fastquorum.controller.planning import Limits
from fastquorum.spark.engines.engine import Latencies
from fastquorum.spark.engines.local_reads import LocalCluster, clusters_at, of_each
from fastquorum.spark.engines.reads import Choice, pairs_of, unproven_of, why_not
from fastquorum.spark.pipelines import anomalies as unusual
from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines import image_diff as differing
from fastquorum.spark.pipelines import placement as placing
from fastquorum.spark.pipelines import timeline as telling
from fastquorum.spark.pipelines.anomalies import signals
from fastquorum.spark.pipelines.anomalies.findings import SCHEMA as ANOMALIES
from fastquorum.spark.pipelines.anomalies.settings import WINDOW_MINUTES, AnomalySettings, Sensitivity
from fastquorum.spark.pipelines.candidates import OfImage
from fastquorum.spark.pipelines.invariants import findings, whole
from fastquorum.spark.pipelines.latency import comparing, files, merging, reading, report
from fastquorum.spark.pipelines.packing import PACKED
from fastquorum.spark.pipelines.placement import layouts
from fastquorum.spark.pipelines.timeline import base, history
from fastquorum.spark.stored.live_logs import settled_at
from fastquorum.spark.stored.stores import store_of


class LocalEngine:
    """The engine of one process. `threads`: None: one a core."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def audit_replicas(self, path: str) -> pa.Table:
        found = of_each(path, self._threads, LocalCluster.judged, auditing.accuses)
        return pa.concat_tables([auditing.SCHEMA.empty_table(), *found])

    def audit_invariants(self, path: str) -> pa.Table:
        found = of_each(path, self._threads, lambda each: whole.audit_by(each.read), findings.accuses)
        return pa.concat_tables([findings.SCHEMA.empty_table(), *found])

    def anomalies(
        self,
        path: str,
        window_minutes: float = WINDOW_MINUTES,
        sensitivity: str = Sensitivity.NORMAL,
    ) -> pa.Table:
        settings = AnomalySettings.of(window_minutes, sensitivity)
        found = of_each(path, self._threads, lambda each: _anomalies(each, settings))
        return pa.concat_tables([ANOMALIES.empty_table(), *found])

    def timelines(self, path: str) -> pa.Table:
        return pa.concat_tables([PACKED.empty_table(), *of_each(path, self._threads, _timeline)])

    def placements(
        self,
        path: str,
        limits: Limits = placing.ALL,
        *,
        keep_fenced: bool = False,
        at: int | None = None,
    ) -> pa.Table:
        found = of_each(path, self._threads, lambda each: _placement(each, limits, keep_fenced=keep_fenced, at=at))
        return pa.concat_tables([PACKED.empty_table(), *found])

    def image_diff(self, path: str, from_offset: int, to_offset: int | None = None) -> pa.Table:
        found = of_each(path, self._threads, lambda each: _image_diff(each, from_offset, to_offset))
        return pa.concat_tables([differing.SCHEMA.empty_table(), *differing.beside_user_logs(found)])

    def image_diff_between(
        self, path: str, other: str, at: int | None = None, *, everything: bool | None = None
    ) -> pa.Table:
        return settled_at((path, other), lambda: self._image_diff_between(path, other, at, everything=everything))

    def _image_diff_between(self, path: str, other: str, at: int | None, *, everything: bool | None) -> pa.Table:
        sides = [{each.id: each for each in clusters_at(where, self._threads)} for where in (path, other)]
        chosen = [_merged(Choice.of(each.choice(OfImage(at))) for each in side.values()) for side in sides]
        pairs = pairs_of(path, other, *chosen)
        found = []
        for pair in pairs:
            if (why := why_not(chosen, pair)) is not None:
                found.append(differing.not_compared(*pair, why))
                continue
            images = [
                _image(side[which], its.of_cluster(which), "image", differing.IMAGE_COLUMNS, at)
                for side, its, which in zip(sides, chosen, pair, strict=True)
            ]
            found.append(differing.compared(*images, everything=everything))
            found.extend(differing.not_proven(pair, ends, why) for ends, why in unproven_of(chosen, pair, at))
        return pa.concat_tables([differing.SCHEMA.empty_table(), *found])

    def latency(self, path: str, before: str | None, by: Sequence[str], threshold: float) -> Latencies:
        after = _latency_rows(path)
        merged = merging.merged(after, by)
        if before is None:
            return Latencies(merged, None, *report.left_out(after))
        earlier = _latency_rows(before)
        compared = comparing.compared(earlier, after, by, threshold)
        return Latencies(merged, compared, *report.left_out(after, earlier))


# --- of one cluster ---------------------------------------------------------------------------------------------------


def _anomalies(cluster: LocalCluster, settings: AnomalySettings) -> pa.Table:
    chosen = Choice.of(cluster.choice())
    for cluster_id, why in chosen.unread.items():
        return unusual.unread(cluster_id, why)
    its = chosen.directories
    made = pa.concat_tables(
        [
            cluster.read("records", signals.COLUMNS, directories=its, mapped=(signals.record_signals, signals.SCHEMA)),
            cluster.read(
                "base",
                signals.BASE_COLUMNS,
                directories=its,
                mapped=(signals.base_signals, signals.SCHEMA),
                types=",".join(signals.BASE_TYPES),
            ),
            cluster.read(
                "checkpoints", signals.CHECKPOINT_COLUMNS, mapped=(signals.checkpoint_signals, signals.SCHEMA)
            ),
        ]
    )
    start, end, unproven = chosen.reach(cluster.id)
    return unusual.anomalies(made, settings, end, unproven, log_start=start)


def _timeline(cluster: LocalCluster) -> pa.Table:
    chosen = Choice.of(cluster.choice())
    for cluster_id, why in chosen.unread.items():
        return telling.unchecked(cluster_id, why)
    records = cluster.read("records", history.COLUMNS, directories=chosen.directories)
    before = cluster.read("base", base.BASE_COLUMNS, directories=chosen.directories, types=",".join(base.BASE_TYPES))
    start, end, unproven = chosen.reach(cluster.id)
    found = telling.timeline_or_why(cluster.id, records, before, end, unproven, log_start=start)
    return telling.PACKING.packed(cluster.id, found)


def _placement(cluster: LocalCluster, limits: Limits, *, keep_fenced: bool, at: int | None) -> pa.Table:
    chosen = Choice.of(cluster.choice(OfImage(at)))
    for cluster_id, why in chosen.unread.items():
        return placing.unchecked(cluster_id, why)
    partitions, brokers, configs = (
        _image(cluster, chosen, name, columns, at)
        for name, columns in (
            ("partitions", layouts.PARTITION_COLUMNS),
            ("brokers", layouts.BROKER_COLUMNS),
            ("configs", layouts.CONFIG_COLUMNS),
        )
    )
    if partitions.num_rows + brokers.num_rows + configs.num_rows == 0:
        return PACKED.empty_table()
    unproven = chosen.unproven.get(cluster.id)
    found = placing.placement_or_why(partitions, brokers, configs, limits, keep_fenced=keep_fenced, unproven=unproven)
    return placing.PACKING.packed(cluster.id, found)


def _image_diff(cluster: LocalCluster, from_offset: int, to_offset: int | None) -> pa.Table:
    chosen = Choice.of(cluster.choice(OfImage(to_offset, from_offset)))
    found = [differing.not_compared(cluster_id, cluster_id, why) for cluster_id, why in chosen.unread.items()]
    if chosen.directories:
        rows = _image(cluster, chosen, "image", differing.CHANGE_COLUMNS, to_offset, diffFrom=from_offset)
        found.append(differing.changes_of(rows, from_offset))
    for cluster_id, why in chosen.unproven.items():
        to = chosen.end_of(cluster_id, to_offset)
        found.append(differing.not_proven((cluster_id, cluster_id), (from_offset, to), why))
    return pa.concat_tables([differing.SCHEMA.empty_table(), *found])


def _image(
    cluster: LocalCluster, chosen: Choice, name: str, columns: tuple[str, ...], at: int | None, **options: Any
) -> pa.Table:
    """An image table of the directory that was chosen, as of this offset, if any; of nothing that was not committed."""
    ends = {directory: chosen.ends[owner] for directory, owner in chosen.owners.items()}
    options |= {"committedEnds": json.dumps(ends)} | ({} if at is None else {"asOfOffset": at})
    return cluster.read(name, columns, directories=chosen.directories, **options)


def _merged(choices: Iterable[Choice]) -> Choice:
    """Merge the choices of a path's clusters into one."""
    whole = Choice([], {}, {}, {}, {}, {})
    for each in choices:
        whole.directories.extend(each.directories)
        whole.starts.update(each.starts)
        whole.ends.update(each.ends)
        whole.owners.update(each.owners)
        whole.unread.update(each.unread)
        whole.unproven.update(each.unproven)
    return whole


def _latency_rows(path: str) -> pa.Table:
    """Every histogram of every run at a path. Errors as of `files_at`."""
    rows = [
        reading.rows_of(each, store_of(each).read_named(each).decode("utf-8", "replace"))
        for each in files.files_at(path).found
    ]
    whole = pa.concat_tables([reading.ROWS.empty_table(), *rows])
    started: dict[Any, list[int]] = {}
    for at, each in enumerate(whole["started"].to_pylist()):
        started.setdefault(each, []).append(at)
    parts = [reading.without_doubles(whole.take(pa.array(at))) for at in started.values()]
    return pa.concat_tables([whole.slice(0, 0), *parts])
