"""What changed of partitions over a history, in columns: who joined and left each ISR, and who led after whom.

Knows no log and no options. Rows are ordered by record, then by partition.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.carrying import UNSAID, Flags, Ints
from fastquorum.spark.pipelines.timeline.earlier import LEADER_FIELDS as QUORUM_FIELDS
from fastquorum.spark.pipelines.timeline.earlier import LEADER_RECORD
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.partition_rows import (
    CHANGED,
    CREATED,
    MOMENT,
    REMOVED,
    PartitionHistory,
    lengths,
    numbers,
)
from fastquorum.spark.stored import arrow
from fastquorum.spark.tables.columns import NODES

_PARTITION: Final = (
    *arrow.fields(pa.string(), "event", "topic", "topic_id"),
    *arrow.fields(pa.int32(), "partition", "leader", "leader_epoch", "partition_epoch"),
    *arrow.fields(NODES, "isr", "replicas"),
)
"""`event`: created, changed or removed. `leader` is -1 where there is none."""
ISR_FIELDS: Final = pa.schema(
    [
        *_PARTITION,
        *arrow.fields(NODES, "joined", "left"),
        pa.field("min_isr", pa.int32()),
        pa.field("is_under_min_isr", pa.bool_()),
    ]
)
"""`joined`, `left`: against the ISR before; null where that is not known. `min_isr`: the effective min.insync.replicas
as of this record, as the log's configurations have it; null where not all of them are known."""
LEADER_FIELDS: Final = pa.schema(
    [pa.field("scope", pa.string()), *_PARTITION, pa.field("former_leader", pa.int32()), pa.field("elected_by", NODES)]
)
"""`scope`: whether it is a "partition"'s leader or the "quorum"'s, whose `leader_epoch` is the quorum's. `elected_by`:
who voted for the quorum's. `former_leader`: null where it is not known, and of a partition that was just created."""
_EVENTS: Final = pa.array(["created", "changed", "removed"])
_CHANGED_EVENT: Final = "changed"
_SPAN: Final = 1 << 31
"""More than any node's id."""


class Changes(NamedTuple):
    """Rows of a history, and what each tells."""

    rows: Ints
    fields: pa.Table


def isr_changes(history: History, found: PartitionHistory) -> Changes:
    """Return changes of ISRs (ISR_FIELDS): a row for each partition's creation and removal, and wherever a member
    joined or left. Another order of the same members is not a change."""
    says = found.stated(lengths(found.records["isr"])) != UNSAID
    at = np.flatnonzero((found.kinds != MOMENT) & (says | (found.kinds == REMOVED)))
    kinds, sources = found.kinds[at], found.last_stated_in(lengths(found.records["isr"]))
    before = np.where(_among(at, found.starts) | (kinds == CREATED), UNSAID, sources[at - 1])
    is_known = (kinds == CREATED) | (before != UNSAID)
    all_isr = found.records["isr"].combine_chunks()
    was = _taken(all_isr, before, before == UNSAID)
    now = _taken(all_isr, sources[at], kinds == REMOVED)
    joined, left = _difference(now, was, is_known), _difference(was, now, is_known)
    members = np.asarray(pc.add(_count(joined), _count(left)))
    matters = (kinds != CHANGED) | ~is_known | (members > 0)
    at, order = _in_order(found, at[matters])
    columns = _columns(found, at) | {
        "joined": joined.filter(pa.array(matters)).take(order),
        "left": left.filter(pa.array(matters)).take(order),
    }
    least = pa.array(_least(found, at), pa.int32(), mask=(found.kinds[at] == REMOVED) | (not history.is_whole))
    columns |= {"min_isr": least, "is_under_min_isr": pc.less(pc.list_value_length(columns["isr"]), least)}
    return Changes(found.rows[at], pa.table([columns[name] for name in ISR_FIELDS.names], schema=ISR_FIELDS))


def leader_changes(history: History, found: PartitionHistory) -> Changes:
    """Return changes of leaders (LEADER_FIELDS): a row for each partition's creation and removal, and wherever another
    broker leads, or none; and for each leader that the quorum elected. A leader that is named again is not a change."""
    leaders = found.filled(numbers(found.records["leader"]))
    former = np.append(UNSAID, leaders[:-1]) if len(leaders) else leaders
    former[found.starts] = UNSAID
    former[found.kinds == CREATED] = UNSAID
    is_stated = found.stated(numbers(found.records["leader"])) != UNSAID
    is_other = (found.kinds == CHANGED) & is_stated & (leaders != former)
    at, _ = _in_order(found, np.flatnonzero(is_other | (found.kinds == CREATED) | (found.kinds == REMOVED)))
    columns = _columns(found, at) | {
        "scope": pa.repeat("partition", len(at)),
        "former_leader": pa.array(former[at], pa.int32(), mask=former[at] == UNSAID),
        "elected_by": pa.nulls(len(at), NODES),
    }
    of_partitions = pa.table([columns[name] for name in LEADER_FIELDS.names], schema=LEADER_FIELDS)
    of_quorum = _quorum_changes(history)
    rows = np.concatenate([found.rows[at], of_quorum.rows])
    order = np.argsort(rows, kind="stable")
    return Changes(rows[order], pa.concat_tables([of_partitions, of_quorum.fields]).take(pa.array(order)))


def _quorum_changes(history: History) -> Changes:
    rows, records = history.records_of(LEADER_RECORD, QUORUM_FIELDS)
    leaders = records["leaderId"].combine_chunks()
    voters = records["grantingVoters"].combine_chunks()
    elected_by = pa.ListArray.from_arrays(voters.offsets, voters.values.field("voterId"), mask=voters.is_null())
    columns = {
        "scope": pa.repeat("quorum", len(rows)),
        "event": pa.repeat(_CHANGED_EVENT, len(rows)),
        "leader": leaders,
        "leader_epoch": pa.array(history.epochs[rows], pa.int32()),
        "former_leader": pa.concat_arrays([pa.nulls(1, pa.int32()), leaders])[: len(rows)],
        "elected_by": elected_by,
    }
    whole = [columns.get(each.name, pa.nulls(len(rows), each.type)) for each in LEADER_FIELDS]
    return Changes(rows, pa.table(whole, schema=LEADER_FIELDS))


# --- columns ----------------------------------------------------------------------------------------------------------


def _in_order(found: PartitionHistory, at: Ints) -> tuple[Ints, pa.Array]:
    """By record, and what brings them into that order."""
    order = np.argsort(found.rows[at], kind="stable")
    return at[order], pa.array(order)


def _columns(found: PartitionHistory, at: Ints) -> dict[str, pa.Array]:
    """Return what partitions are at these rows: nothing but their names where they are removed."""
    is_gone = found.kinds[at] == REMOVED
    topics = found.partitions.topics[found.owners[at]]
    leaders = found.filled(numbers(found.records["leader"]))[at]
    partition_epochs, leader_epochs = (each[at] for each in found.epochs())
    columns = {
        "event": _EVENTS.take(pa.array(found.kinds[at])),
        "topic": found.topics.names_of(topics),
        "topic_id": found.topics.ids.take(pa.array(topics)),
        "partition": pa.array(found.partitions.numbers[found.owners[at]], pa.int32()),
        "leader": pa.array(leaders, pa.int32(), mask=is_gone | (leaders == UNSAID)),
        "leader_epoch": pa.array(leader_epochs, pa.int32(), mask=is_gone | (leader_epochs == UNSAID)),
        "partition_epoch": pa.array(partition_epochs, pa.int32(), mask=is_gone | (partition_epochs == UNSAID)),
    }
    for name in ("isr", "replicas"):
        lists = found.records[name].combine_chunks()
        columns[name] = _taken(lists, found.last_stated_in(lengths(found.records[name]))[at], is_gone)
    return columns


def _least(found: PartitionHistory, at: Ints) -> Ints:
    """Their effective min.insync.replicas."""
    names = found.topics.name_of[found.partitions.topics[found.owners[at]]]
    leaders = found.filled(numbers(found.records["leader"]))[at]
    replicas = found.filled(lengths(found.records["replicas"]))[at]
    return found.min_isr.at(names, leaders, replicas, found.rows[at])


def _taken(lists: pa.ListArray, at: Ints, is_none: Flags) -> pa.ListArray:
    """Take lists by index; null where there is none, or nothing states it."""
    return lists.take(pa.array(at, mask=is_none | (at == UNSAID)))


def _count(lists: pa.ListArray) -> pa.Array:
    return pc.list_value_length(lists).fill_null(0)


def _difference(one: pa.ListArray, other: pa.ListArray, is_known: Flags) -> pa.ListArray:
    """Return what the other list lacks of each list; null where that is not known. A null list has no members."""
    parents, nodes = np.asarray(pc.list_parent_indices(one), np.int64), np.asarray(one.flatten(), np.int64)
    others = np.asarray(pc.list_parent_indices(other), np.int64) * _SPAN + np.asarray(other.flatten(), np.int64)
    kept = ~_among(parents * _SPAN + nodes, np.sort(others))
    ends = np.zeros(len(one) + 1, np.int32)
    np.cumsum(np.bincount(parents[kept], minlength=len(one)), out=ends[1:])
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(nodes[kept], pa.int32()), mask=pa.array(~is_known))


def _among(values: Ints, others: Ints) -> Flags:
    """Return which values are among `others`, which are in order. Faster than `np.isin` if both almost are."""
    at = np.minimum(np.searchsorted(others, values), len(others) - 1)
    found: Flags = others[at] == values if len(others) else np.zeros(len(values), np.bool_)
    return found
