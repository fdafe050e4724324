"""A log's facts put in order, and audited as they are replayed: what was before it, then every record that counts.

Where bytes could not be read nobody knows what they changed: behind a gap nothing is held against a record that only
what was before would contradict.
"""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import ImageFailed
from fastquorum.spark.pipelines.carrying import ints
from fastquorum.spark.pipelines.choosing import taken
from fastquorum.spark.pipelines.invariants import facts
from fastquorum.spark.pipelines.invariants.brokers import audit_brokers
from fastquorum.spark.pipelines.invariants.findings import SCHEMA, FindingKind, LogFinding, LogOwner, table_of
from fastquorum.spark.pipelines.invariants.partitions import PartitionAudit
from fastquorum.spark.pipelines.transactions import fates


def audit_log(log_facts: pa.Table) -> pa.Table:
    """Audit the facts of one log, in any order (SCHEMA). Without a START the log is whole if it begins at 0."""
    if log_facts.num_rows == 0:
        return SCHEMA.empty_table()
    found: list[LogFinding] = []
    is_mark = np.asarray(pc.is_in(log_facts["type"], pa.array(facts.MARKS)))
    marks = log_facts.filter(pa.array(is_mark))
    start, gaps = _marked(marks, found)
    offsets, is_base = ints(log_facts["offset"]), np.asarray(log_facts["is_base"])
    if facts.START not in marks["type"].to_pylist():
        start = 0 if 0 in offsets else None
    order = np.flatnonzero(~is_mark & (is_base | (offsets >= (start or 0))))
    # A snapshot's records stand at one offset: topics come before their partitions, however shuffled.
    kinds = np.where(is_base, facts.codes_of(log_facts), 0)
    order = order[np.lexsort((kinds[order], offsets[order], ~is_base[order]))]
    rows, offsets = taken(log_facts, order), offsets[order]
    base_count = int(is_base[order].sum())
    cuts = [0, *(base_count + np.searchsorted(offsets[base_count:], gaps)).tolist(), rows.num_rows]
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        is_first = number == 0
        found += _section(
            rows.slice(begin, end - begin), is_whole=is_first and start is not None, base_count=is_first * base_count
        )
    found += _stops(marks, found)
    return table_of(found, LogOwner.of(log_facts))


def _marked(marks: pa.Table, found: list[LogFinding]) -> tuple[int | None, list[int]]:
    """From where on the log is known, and where it has gaps."""
    start, gaps = None, []
    for mark in marks.to_pylist():
        if mark["type"] == facts.START:
            start = mark["offset"]
            if start is None:
                found.append(LogFinding(FindingKind.MISSING_SEGMENT, mark["name"], None))
        elif mark["type"] == facts.UNREADABLE:
            gaps.append(mark["offset"])
            found.append(_not_replayable(mark, _unread(mark)))
        elif mark["type"] == facts.GAP:
            gaps.append(mark["offset"] or 0)
    return start, sorted(gaps)


def _stops(marks: pa.Table, found: list[LogFinding]) -> list[LogFinding]:
    """Return what a node stops at, unless it is found already: most records are judged here by a few promises alone,
    and by all there is to them only where they are replayed."""
    known = {each.offset for each in found if each.kind is FindingKind.NOT_REPLAYABLE}
    stops = marks.filter(pc.equal(marks["type"], facts.STOPPED)).to_pylist()
    return [_not_replayable(each, each["name"]) for each in stops if each["offset"] not in known]


def _not_replayable(mark: dict[str, Any], says: str) -> LogFinding:
    return LogFinding(FindingKind.NOT_REPLAYABLE, says, mark["offset"], mark["epoch"], mark["timestamp"])


def _unread(mark: dict[str, Any]) -> str:
    """Return what cannot be read, and why: all that is unknown here may be known to newer software."""
    if mark["epoch"] is None:
        return f"the records of the batch cannot be read: {mark['name']}"
    why = "it is malformed" if mark["name"] == facts.MALFORMED else f"{mark['name']} here"
    return f"the record cannot be read: {why}"


def _section(rows: pa.Table, *, is_whole: bool, base_count: int) -> list[LogFinding]:
    """Audit records without a gap among them."""
    found: list[LogFinding] = []
    types, offsets = facts.codes_of(rows), np.asarray(rows["offset"], np.int64)
    none = np.zeros(len(types), np.bool_)
    try:
        counts, _ = fates(types, facts.TYPES, none, offsets, begins_whole=is_whole)
    except ImageFailed as error:
        at = int(np.searchsorted(offsets, error.offset))
        found.append(_not_replayable(rows.slice(at, 1).to_pylist()[0], str(error)))
        counts = ~none
    rows = taken(rows, np.flatnonzero(counts))
    partitions = PartitionAudit(rows, is_whole=is_whole, base_count=base_count)
    of_brokers, standing = audit_brokers(rows, partitions.are_left_by, is_whole=is_whole)
    return [*found, *of_brokers, *partitions.found(standing)]
