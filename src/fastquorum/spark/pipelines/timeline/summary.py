"""Where it was worst: for people and for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.lives import BrokerLife, Event
from fastquorum.spark.pipelines.timeline.over_time import iso_time, over_time, strips
from fastquorum.spark.pipelines.timeline.partitions import CONDITIONS
from fastquorum.spark.pipelines.timeline.states import States
from fastquorum.types import NodeId

_WORST: Final = 10
_MINUTE_MS: Final = 60_000
_TIES: Final = [("topic", "ascending"), ("topic_id", "ascending"), ("partition", "ascending")]


def summary(
    history: History,
    states: States,
    happened: pa.Table,
    partitions: pa.Table,
    brokers: pa.Table,
    lives: Mapping[NodeId, BrokerLife],
) -> dict[str, Any]:
    """For JSON. Of each condition the worst partitions, longest first, and of brokers those fenced longest; none
    that never were. `unknown_partitions`, `missing_records` and `unreadable_records`: what the sums do not have in
    them. `over_time` and `strips`: see there."""
    return {
        **history.replica._asdict(),
        "begin": iso_time(history.begin_ms),
        "end": iso_time(history.end_ms),
        "lasted_ms": history.end_ms - history.begin_ms,
        "end_offset": history.end_offset,
        "is_whole": history.is_whole,
        "clock_back_ms": history.clock_back_ms,
        "unknown_partitions": states.unknown_count,
        "missing_records": history.missing_count,
        "unreadable_records": history.unreadable_count,
        "events": {each.value: _count(happened, each) for each in Event if _count(happened, each)},
        "partitions": _sums(partitions),
        "worst_partitions": {each: _worst(partitions, f"{each}_ms", _TIES) for each in CONDITIONS},
        "brokers": brokers.num_rows,
        "worst_brokers": _worst(brokers, "fenced_ms", [("broker_id", "ascending")]),
        "over_time": over_time(history, states, lives.values()),
        "strips": strips(history, lives.values()),
    }


def as_text(found: dict[str, Any]) -> Iterator[str]:
    """Yield a summary, line by line."""
    if "unchecked" in found:
        yield f"cluster {found['cluster_id']} has no timeline: {found['unchecked']}"
        return
    yield (
        f"cluster {found['cluster_id']}, as node {found['node_id']} has it: {found['begin']} to {found['end']}, "
        f"{_minutes(found['lasted_ms'])}, up to offset {found['end_offset']}"
    )
    yield from _doubts(found)
    counts = ", ".join(f"{name} {count} {'time' if count == 1 else 'times'}" for name, count in found["events"].items())
    yield f"events: {counts}" if counts else "nothing happened to any node"
    partitions = found["partitions"]
    yield f"{partitions['count']} partitions, {partitions['at_end']['count']} of them at the end"
    for each in CONDITIONS:
        name = each.replace("_", "-")
        yield f"{name}: {_minutes(partitions[f'{each}_ms'])} in sum, {partitions['at_end'][each]} at the end"
        for row in found["worst_partitions"][each]:
            longest = _minutes(row[f"longest_{each}_ms"])
            yield f"  {row['topic']}-{row['partition']}: {_minutes(row[f'{each}_ms'])}, {longest} at a stretch"
    for row in found["worst_brokers"]:
        yield f"broker {row['broker_id']}: fenced for {_minutes(row['fenced_ms'])}, {row['bounces']} bounces"


def _doubts(found: dict[str, Any]) -> Iterator[str]:
    if "unproven" in found:
        yield f"not proven: {found['unproven']}"
    if not found["is_whole"]:
        unknown = found["unknown_partitions"]
        yield f"what was before the log is not known; {unknown} partitions changed before it says what they were"
    if found["missing_records"]:
        yield (
            f"{found['missing_records']} records are missing from this log, or damaged, and no other is without a "
            f"hole; {found['unknown_partitions']} partitions changed before it says what they were"
        )
    if found["unreadable_records"]:
        yield f"{found['unreadable_records']} records cannot be read: damage, or a type or version unknown here"
    if found["clock_back_ms"]:
        yield f"the clock went back, by {found['clock_back_ms']} ms at most; it stands still for as long"


def _sums(partitions: pa.Table) -> dict[str, Any]:
    names = ["existed_ms", *(f"{each}_ms" for each in CONDITIONS), "leader_changes"]
    return {
        "count": partitions.num_rows,
        **{name: _sum(partitions[name]) for name in names},
        "at_end": {
            "count": _sum(partitions["is_there"]),
            **{each: _sum(partitions[f"is_{each}"]) for each in CONDITIONS},
        },
    }


def _worst(table: pa.Table, by: str, ties: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    bad = table.filter(pc.greater(table[by], 0))
    rows: list[dict[str, Any]] = bad.take(pc.select_k_unstable(bad, _WORST, [(by, "descending"), *ties])).to_pylist()
    return rows


def _count(happened: pa.Table, event: Event) -> int:
    return _sum(pc.equal(happened["event"], event.value))


def _sum(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


def _minutes(time_ms: int) -> str:
    return f"{time_ms / _MINUTE_MS:.2f} min"
