"""What happened and when, in few narrow columns: all that has to be shuffled of a log to find what is unusual in it.

Made of table `records`, in parallel; with the names of topics from table `base`, and the snapshots from table
`checkpoints`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.texts import parsed

COLUMNS: Final = (*arrow.OWNER, "offset", "epoch", "timestamp", "is_control", "type", "data")
"""Columns that are read from table `records`, damage set aside."""
BASE_COLUMNS: Final = (*arrow.OWNER, "type", "data")
BASE_TYPES: Final = ("TOPIC_RECORD",)
"""Columns and types that are read from table `base`."""
CHECKPOINT_COLUMNS: Final = (*arrow.OWNER, "offset", "epoch", "last_contained_timestamp")
"""Columns that are read from table `checkpoints`."""
SCHEMA: Final = pa.schema(
    [
        *arrow.OWNER_FIELDS,
        pa.field("offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("time_ms", pa.int64()),
        pa.field("is_control", pa.bool_()),
        pa.field("type", pa.string(), nullable=False),
        *arrow.fields(pa.string(), "id", "name"),
        *arrow.fields(pa.int32(), "number", "leader", "isr"),
        pa.field("fenced", pa.int8()),
    ]
)
"""`id`: the topic's, or the broker's incarnation. `number`: the partition, broker, or the quorum's leader. `isr`: how
many they are. What a record does not say is null. Rows without an offset only name topics."""
CHECKPOINT: Final = "checkpoint"
"""In place of a type: a snapshot, which ends at `offset`."""
NO_OP: Final = "NO_OP_RECORD"
LEADER_CHANGE: Final = "LEADER_CHANGE"
PARTITION: Final = "PARTITION_RECORD"
PARTITION_CHANGE: Final = "PARTITION_CHANGE_RECORD"
REGISTER: Final = "REGISTER_BROKER_RECORD"
BROKER_CHANGE: Final = "BROKER_REGISTRATION_CHANGE_RECORD"
FENCE: Final = "FENCE_BROKER_RECORD"
UNFENCE: Final = "UNFENCE_BROKER_RECORD"
_NODES: Final = pa.list_(pa.int32())
_OF_PARTITIONS: Final = (
    ("topicId", pa.string()),
    ("partitionId", pa.int32()),
    ("leader", pa.int32()),
    ("isr", _NODES),
)
_FIELDS: Final = {
    LEADER_CHANGE: pa.schema([("leaderId", pa.int32())]),
    "TOPIC_RECORD": pa.schema([("topicId", pa.string()), ("name", pa.string())]),
    PARTITION: pa.schema(_OF_PARTITIONS),
    PARTITION_CHANGE: pa.schema(_OF_PARTITIONS),
    REGISTER: pa.schema([("brokerId", pa.int32()), ("incarnationId", pa.string()), ("fenced", pa.bool_())]),
    BROKER_CHANGE: pa.schema([("brokerId", pa.int32()), ("fenced", pa.int8())]),
    FENCE: pa.schema([("id", pa.int32())]),
    UNFENCE: pa.schema([("id", pa.int32())]),
}
_NAMES: Final = {
    "leaderId": "number",
    "partitionId": "number",
    "brokerId": "number",
    "topicId": "id",
    "incarnationId": "id",
}


def record_signals(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the signals of records, batch by batch."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        table = table.filter(pc.and_(pc.is_valid(table["offset"]), pc.is_valid(table["type"])))
        for kind in pc.unique(table["type"]).to_pylist():
            some = table.filter(pc.equal(table["type"], kind))
            yield from _made(some, kind).to_batches()


def base_signals(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the names of topics that were there before the log."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        yield from _made(table.filter(pc.equal(table["type"], BASE_TYPES[0])), BASE_TYPES[0]).to_batches()


def checkpoint_signals(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield snapshots; the one at offset 0, which holds nothing, does not count."""
    for batch in batches:
        table = pa.Table.from_batches([batch]).rename_columns({"last_contained_timestamp": "timestamp"})
        yield from _made(table.filter(pc.greater(table["offset"], 0)), CHECKPOINT).to_batches()


def _made(some: pa.Table, kind: str) -> pa.Table:
    count = some.num_rows
    columns: dict[str, Any] = {name: some[name] for name in arrow.OWNER}
    for name in ("offset", "epoch", "is_control"):
        if name in some.schema.names:
            columns[name] = some[name]
    if "timestamp" in some.schema.names:
        micros = some["timestamp"].cast(arrow.TIMESTAMP).cast(pa.int64())
        columns["time_ms"] = pc.divide(micros, 1000)
    columns["type"] = pa.repeat(kind, count)
    if kind in _FIELDS:
        columns |= _columns_of(some["data"], kind)
    made = [
        columns[each.name].cast(each.type) if each.name in columns else pa.nulls(count, each.type) for each in SCHEMA
    ]
    return pa.table(made, schema=SCHEMA)


def _columns_of(texts: pa.ChunkedArray, kind: str) -> dict[str, Any]:
    """Return the columns of a type's records. A record that cannot be read has none."""
    fields = _FIELDS[kind]
    found = parsed(pc.fill_null(texts, "{}"), fields)
    names = {**_NAMES, "id": "number"} if kind in (FENCE, UNFENCE) else _NAMES
    columns = {names.get(name, name): found[name] for name in fields.names}
    if "isr" in columns:
        columns["isr"] = pc.list_value_length(columns["isr"])
    if kind in (FENCE, UNFENCE):
        columns["fenced"] = pa.repeat(1 if kind == FENCE else -1, len(texts))
    if kind == REGISTER:
        columns["fenced"] = pc.if_else(pc.fill_null(columns["fenced"], True), 1, -1)
    return columns
