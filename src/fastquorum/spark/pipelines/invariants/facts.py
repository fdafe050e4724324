"""What records say that a promise is about, in few narrow columns: all that has to be shuffled of a log.

Made of table `records`, in parallel and before a log is put together; of what was before a log, from table `base`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import DecompressedTooLarge
from fastquorum.kernels import BatchFault
from fastquorum.spark.pipelines.carrying import Flags, Ints
from fastquorum.spark.pipelines.transactions import ABORT, BEGIN, END
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.texts import parsed
from fastquorum.wire.records.control import ControlRecordType

COLUMNS: Final = (*arrow.OWNER, "segment", "offset", "epoch", "timestamp", "type", "data", "error")
"""Columns that are read from table `records`, damage set aside in `error`."""
BASE_COLUMNS: Final = (*arrow.OWNER, "end_offset", "epoch", "timestamp", "type", "data", "error")
"""Columns that are read from table `base`."""
REPLAY_COLUMNS: Final = (*arrow.OWNER, "offset", "epoch", "timestamp", "error")
"""Columns that are read from table `replay`."""
_NODES: Final = pa.list_(pa.int32())
_FACT_FIELDS: Final = (
    ("id", pa.string()),
    ("name", pa.string()),
    ("number", pa.int32()),
    ("said_epoch", pa.int64()),
    ("leader", pa.int32()),
    ("leader_epoch", pa.int32()),
    ("replicas", _NODES),
    ("isr", _NODES),
    ("elr", _NODES),
    ("fenced", pa.int8()),
    ("shutting_down", pa.int8()),
)
SCHEMA: Final = pa.schema(
    [
        *arrow.OWNER_FIELDS,
        pa.field("is_base", pa.bool_(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("timestamp", arrow.TIMESTAMP),
        pa.field("type", pa.string(), nullable=False),
        *(pa.field(*each) for each in _FACT_FIELDS),
    ]
)
"""`id`: of the topic, or the broker's incarnation. `number`: of the partition, or the broker. `said_epoch`: of the
partition, or the broker. What a record does not say is null. `is_base`: it is of the snapshot that the log begins
with; its `offset` is where that ends, exclusive."""
START: Final = "start"
"""In place of a type: the log is known from `offset` on; null: it begins later, and nothing says with what."""
GAP: Final = "gap"
"""Likewise: from `offset` on, bytes could not be read; `name` says why."""
UNREADABLE: Final = "unreadable"
"""Likewise: the record at `offset`, or without an epoch all those of the batch there, could not be read, though the
bytes are as they were written; `name` says why."""
STOPPED: Final = "stopped"
"""Likewise: a node that replays the log stops at `offset`; `name` says why."""
MARKS: Final = (START, GAP, UNREADABLE, STOPPED)
MALFORMED: Final = "malformed"
"""Such a reason of a single record; the others are a type or a version that is unknown."""
_NO_RECORDS: Final = f"corrupt: ({BatchFault.RECORD}|{BatchFault.COMPRESSION}|{DecompressedTooLarge.reason})\\b"
"""What a reader says of a batch whose header and checksum are good."""

_PARTITION: Final = {
    "number": "partitionId",
    "id": "topicId",
    "leader": "leader",
    "replicas": "replicas",
    "isr": "isr",
    "elr": "eligibleLeaderReplicas",
}
_BROKER: Final = {"number": "brokerId", "said_epoch": "brokerEpoch"}
_OLD: Final = {"number": "id", "said_epoch": "epoch"}
_STATE: Final = {"fenced": "fenced", "shutting_down": "inControlledShutdown"}
_FIELDS: Final[dict[str, dict[str, str]]] = {
    "TOPIC_RECORD": {"id": "topicId", "name": "name"},
    "REMOVE_TOPIC_RECORD": {"id": "topicId"},
    "PARTITION_RECORD": {**_PARTITION, "leader_epoch": "leaderEpoch", "said_epoch": "partitionEpoch"},
    "PARTITION_CHANGE_RECORD": _PARTITION,
    "CLEAR_ELR_RECORD": {"name": "topicName"},
    "REGISTER_BROKER_RECORD": {**_BROKER, **_STATE, "id": "incarnationId"},
    "UNREGISTER_BROKER_RECORD": _BROKER,
    "BROKER_REGISTRATION_CHANGE_RECORD": {**_BROKER, **_STATE},
    "FENCE_BROKER_RECORD": _OLD,
    "UNFENCE_BROKER_RECORD": _OLD,
    "ZK_MIGRATION_STATE_RECORD": {"number": "zkMigrationState"},
    BEGIN: {},
    END: {},
    ABORT: {},
}
TYPES: Final = tuple(_FIELDS)
"""Types that are looked at; of others it only matters whether they can be read."""
CODES: Final = {name: code for code, name in enumerate(TYPES)}
_FLAGS: Final = {"fenced", "shutting_down"}
_MARKERS: Final = pa.array([ControlRecordType.ABORT.name, ControlRecordType.COMMIT.name])
"""Markers of transactions among user records: a node passes over them, and their data is not known."""


def codes_of(rows: pa.Table) -> Ints:
    """Return the types of facts as numbers, by CODES."""
    return np.asarray(pc.index_in(rows["type"], pa.array(TYPES)).fill_null(-1), np.int64)


def record_facts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the facts of records, batch by batch."""
    behind: dict[str, int] = {}
    for batch in batches:
        yield from _of(pa.Table.from_batches([batch]), behind, is_base=False).to_batches()


def base_facts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the facts of table `base`, batch by batch."""
    for batch in batches:
        table = pa.Table.from_batches([batch]).rename_columns({"end_offset": "offset"})
        starts = table.filter(pc.is_null(table["type"]))
        yield from _made(starts, START, {"name": starts["error"]}, is_base=True).to_batches()
        yield from _of(table.filter(pc.is_valid(table["type"])), {}, is_base=True).to_batches()


def replay_facts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the facts of table `replay` (REPLAY_COLUMNS), batch by batch: what stops it."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        stops = table.filter(pc.is_valid(table["offset"]))
        yield from _made(stops, STOPPED, {"name": stops["error"]}, is_base=False).to_batches()


def _of(table: pa.Table, behind: dict[str, int], *, is_base: bool) -> pa.Table:
    parts = [SCHEMA.empty_table()]
    is_bad = pc.and_(pc.is_valid(table["error"]), pc.invert(pc.is_in(table["type"], _MARKERS)))
    if not is_base:
        parts += _unread(table, is_bad, behind)
    good = table.filter(pc.and_(pc.invert(is_bad), pc.is_valid(table["data"])))
    for kind in pc.unique(good["type"]).to_pylist():
        if kind in _FIELDS:
            some = good.filter(pc.equal(good["type"], kind))
            parts.append(_made(some, kind, _fields_of(some["data"], kind), is_base=is_base))
    return pa.concat_tables(parts)


def _fields_of(texts: pa.ChunkedArray, kind: str) -> dict[str, pa.ChunkedArray]:
    """Return the fields of a type, by their names here."""
    named = _FIELDS[kind]
    if not named:
        return {}
    kinds = dict(_FACT_FIELDS)
    is_flag = kind == "REGISTER_BROKER_RECORD"  # there they are true or false
    fields = pa.schema([(named[each], pa.bool_() if is_flag and each in _FLAGS else kinds[each]) for each in named])
    found = parsed(texts, fields)
    return {each: found[field].cast(kinds[each]) for each, field in named.items()}


def _made(some: pa.Table, kind: str, fields: dict[str, Any], *, is_base: bool) -> pa.Table:
    count = some.num_rows
    columns = {name: some[name] for name in (*arrow.OWNER, "offset", "epoch", "timestamp")}
    columns |= {"is_base": pa.repeat(is_base, count), "type": pa.repeat(kind, count), **fields}
    columns["timestamp"] = columns["timestamp"].cast(arrow.TIMESTAMP)  # Spark has zones of its own
    made = [columns[each.name] if each.name in columns else pa.nulls(count, each.type) for each in SCHEMA]
    return pa.table(made, schema=SCHEMA)


def _unread(table: pa.Table, is_bad: pa.ChunkedArray, behind: dict[str, int]) -> list[pa.Table]:
    """Return what could not be read: records; all records of a batch, whose position that is; and damaged bytes."""
    if not pc.any(is_bad).as_py():
        _remember(table, behind)
        return []
    is_of_batch = pc.fill_null(pc.match_substring_regex(table["error"], _NO_RECORDS), False)
    of_batch = pc.and_(is_of_batch, pc.is_valid(table["offset"]))
    has_place = pc.or_(pc.is_valid(table["epoch"]), of_batch)  # damaged bytes have no epoch
    records = table.filter(pc.and_(is_bad, has_place))
    is_damage = pc.and_(is_bad, pc.invert(has_place))
    gaps = _gaps(table, np.asarray(is_damage), behind)
    _remember(table.filter(pc.invert(is_damage)), behind)
    return [_made(records, UNREADABLE, {"name": records["error"]}, is_base=False), gaps]


def _gaps(table: pa.Table, is_damage: Flags, behind: Mapping[str, int]) -> pa.Table:
    """Return damaged bytes as gaps, whatever they claim: behind what was read before, or where their segment begins."""
    directories, segments, offsets = (table[name].to_pylist() for name in ("directory", "segment", "offset"))
    known, begins = dict(behind), []
    for directory, segment, offset, is_one in zip(directories, segments, offsets, is_damage.tolist(), strict=True):
        if is_one:
            begins.append(max(known.get(directory, 0), segment or 0))
        else:
            known[directory] = offset + 1
    bad = table.filter(pa.array(is_damage)).drop_columns("offset")
    bad = bad.append_column("offset", pa.array(begins, pa.int64()))
    return _made(bad, GAP, {"name": bad["error"]}, is_base=False)


def _remember(table: pa.Table, behind: dict[str, int]) -> None:
    """Remember how far each log could be read."""
    if table.num_rows:
        behind[table["directory"][-1].as_py()] = table["offset"][-1].as_py() + 1
