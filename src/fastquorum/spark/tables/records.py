"""`records` and `control`: every record of every log, with metadata as JSON and user records as key, value and headers.

The JSON has the fields in wire order; Spark's parse_json makes a VARIANT of it. With option `typed` there is a struct
for each type instead of it (`stored.typed`): a column each however many are asked for, so that a query means the same
when it asks for one type more. Of records whose type or version nobody here knows there is the value as it is, and
`error` names them.
"""

import functools
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import CorruptionError
from fastquorum.kernels import Kernels, load
from fastquorum.kernels.rows import Packed, RowFault, RowFilter, Rows, Want
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.reading import Damage, Mode, rows_of
from fastquorum.spark.stored.splits import Piece, checkpoint_piece, log_pieces, packed
from fastquorum.spark.stored.typed import RecordType, record_types, struct_column
from fastquorum.spark.tables.base import base_of
from fastquorum.spark.tables.table import BOUNDS, Task, bounds_of, owner_columns, refuse_others
from fastquorum.storage.identity import LogKind
from fastquorum.wire.records.row_layouts import ROW_TYPE_NAMES, record_layouts

SCHEMA: Final = pa.schema(
    [
        *arrow.OWNER_FIELDS,
        *arrow.fields(pa.int64(), "segment", "offset"),
        pa.field("epoch", pa.int32()),
        pa.field("timestamp", arrow.TIMESTAMP),
        pa.field("is_control", pa.bool_()),
        pa.field("type", pa.string()),
        pa.field("version", pa.int16()),
        pa.field("data", pa.string()),
        *arrow.fields(pa.binary(), "key", "value"),
        pa.field("headers", arrow.HEADERS),
        pa.field("error", pa.string()),
    ]
)
CONTROL_TYPES: Final = frozenset(number for number in ROW_TYPE_NAMES if number < 0)
_WANTS: Final = {
    "data": Want.TEXTS,
    "value": Want.VALUES,
    "key": Want.KEYS,
    "headers": Want.HEADERS,
    "error": Want.TEXTS,
}
_TOPIC_RECORD: Final = "TOPIC_RECORD"
_CONFIG_RECORD: Final = "CONFIG_RECORD"
_BY_NAME: Final = {_TOPIC_RECORD: '{{"name":{name},', _CONFIG_RECORD: '{{"resourceType":2,"resourceName":{name},'}
"""How a record begins that names a topic. Source: Kafka `ConfigResource.Type`."""
_NO_VERSION: Final = -1


class _Seen(NamedTuple):
    """Some rows of a piece, with their texts in Arrow."""

    piece: Piece
    rows: Rows
    types: pa.Array
    texts: pa.Array | None


_Column = Callable[[_Seen], pa.Array]


class RecordsTable:
    """Table `records` or `control`, of segments. `only`: its record types. `typed`: types that have a struct, in place
    of `data`."""

    def __init__(
        self, name: str, only: frozenset[int] | None = None, typed: Mapping[str, RecordType] | None = None
    ) -> None:
        self.name = name
        self.schema = SCHEMA if typed is None else _typed_schema(typed)
        self._only = only
        self._typed = typed or {}

    def tasks(self, logs: Sequence[FoundLog], options: ReadOptions) -> list[Task]:
        refuse_others(self.name, options, BOUNDS | {"types", "topic"})
        wanted = self._filter(options)
        ids = () if options.topic is None else tuple(sorted(topic_ids(logs, options.topic)))
        pieces = [
            piece
            for log in logs
            for piece in log_pieces(log, wanted.offset_min, wanted.offset_max, options.split_bytes)
        ]
        return [Task(tuple(task), ids=ids) for task in packed(pieces, options.split_bytes)]

    def read(self, task: Task, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        kernels = load("native")
        for piece in task.pieces:
            yield from self._read(piece, task, options, columns, kernels)

    def _filter(self, options: ReadOptions) -> RowFilter:
        wanted = bounds_of(options)
        if self._only is not None:
            wanted = wanted._replace(types=self._only if wanted.types is None else wanted.types & self._only)
        return wanted

    def _read(
        self, piece: Piece, task: Task, options: ReadOptions, columns: Sequence[str], kernels: Kernels
    ) -> Iterator[pa.RecordBatch]:
        want = Want(0)
        for column in columns:
            want |= Want.TEXTS if column in self._typed else _WANTS.get(column, Want(0))
        if options.topic is not None or options.mode is Mode.DROP:  # what is malformed shows where it is read
            want |= Want.TEXTS
        is_metadata = piece.kind is LogKind.METADATA
        reader = kernels.RowReader(record_layouts(), want, self._filter(options), is_metadata=is_metadata)
        schema = arrow.pruned(self.schema, columns)
        for found in rows_of(piece, kernels, reader, options.mode):
            if isinstance(found, Damage):
                yield _damaged(schema, found)
                continue
            texts = None if found.texts is None else arrow.strings(found.texts)
            seen = _Seen(piece, found, arrow.type_names(found.types), texts)
            batch = pa.RecordBatch.from_arrays([self._column(name, seen) for name in columns], schema=schema)
            kept = _kept(seen, options, task)
            yield batch if kept is None else batch.filter(kept)

    def _column(self, name: str, seen: _Seen) -> pa.Array:
        if name in self._typed:
            return struct_column(self._typed[name], seen.rows, _texts(seen))
        return _COLUMNS[name](seen)


def _typed_schema(typed: Mapping[str, RecordType]) -> pa.Schema:
    at = SCHEMA.get_field_index("data")
    structs = [pa.field(name, each.struct) for name, each in typed.items()]
    return pa.schema([*list(SCHEMA)[:at], *structs, *list(SCHEMA)[at + 1 :]])


def topic_ids(logs: Sequence[FoundLog], name: str) -> set[str]:
    """Return every id of a topic of this name in any of these logs, or in the snapshot that one begins with."""
    kernels = load("native")
    ids: set[str] = set()
    number = next(key for key, each in ROW_TYPE_NAMES.items() if each == _TOPIC_RECORD)
    for log in logs:
        if log.kind is not LogKind.METADATA:
            continue
        base = base_of(log, kernels)
        if base.error is not None:
            text = f"{log.directory}: {base.error}: ids of topic {name!r} may be missing, and records that say no more"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        before = [] if base.checkpoint is None else [checkpoint_piece(log, base.checkpoint)]
        reader = kernels.RowReader(record_layouts(), Want.TEXTS, RowFilter(types=frozenset({number})))
        for piece in [*before, *log_pieces(log)]:
            for rows in rows_of(piece, kernels, reader, Mode.QUARANTINE):
                if isinstance(rows, Rows) and rows.texts is not None:
                    topics = [json.loads(each.as_py()) for each in arrow.strings(rows.texts) if each.is_valid]
                    ids |= {each["topicId"] for each in topics if each["name"] == name}
    return ids


def _kept(seen: _Seen, options: ReadOptions, task: Task) -> pa.Array | None:
    """Return which rows are kept; None: all."""
    kept: pa.Array | None = None
    if options.topic is not None:
        kept = _of_topic(seen, options.topic, task.ids)
    faults = seen.rows.faults == RowFault.MALFORMED
    if not faults.any() or options.mode is Mode.QUARANTINE:
        return kept
    offset = int(seen.rows.offsets[faults.argmax()])
    error = CorruptionError("record", offset=offset, path=seen.piece.path)
    if options.mode is Mode.FAIL:
        raise error
    warnings.warn(f"{error}: {int(faults.sum())} records are left out", RuntimeWarning, stacklevel=2)
    good = pa.array(~faults)
    return good if kept is None else pc.and_(kept, good)


def _of_topic(seen: _Seen, topic: str, ids: Sequence[str]) -> pa.Array:
    """Rows that name it, by its name or an id of it."""
    assert seen.texts is not None
    texts = pc.fill_null(seen.texts, "")
    quoted = json.dumps(topic, ensure_ascii=False)
    kept = pa.repeat(False, len(texts))
    for kind, begins in _BY_NAME.items():
        is_one = pc.and_(pc.equal(seen.types, kind), pc.starts_with(texts, begins.format(name=quoted)))
        kept = pc.or_(kept, pc.fill_null(is_one, False))
    for each in ids:
        kept = pc.or_(kept, pc.match_substring(texts, f'"{each}"'))
    return kept


def _damaged(schema: pa.Schema, damage: Damage) -> pa.RecordBatch:
    row = {
        **owner_columns(damage.piece),
        "segment": damage.piece.base_offset,
        "offset": damage.offset if damage.offset >= 0 else None,
        "value": damage.data,
        "error": damage.error,
    }
    return arrow.batch_of(schema, [row])


def _errors(seen: _Seen) -> pa.Array:
    rows = seen.rows
    if not rows.faults.any():
        return arrow.same(None, pa.string(), len(rows.offsets))
    errors: list[str | None] = [None] * len(rows.offsets)
    for at in np.flatnonzero(rows.faults).tolist():
        number, version = int(rows.types[at]), int(rows.versions[at])
        name = ROW_TYPE_NAMES.get(number, f"type {number}")
        match RowFault(int(rows.faults[at])):
            case RowFault.UNKNOWN_TYPE:
                errors[at] = f"{name} is unknown"
            case RowFault.UNKNOWN_VERSION:
                errors[at] = f"version {version} of {name} is unknown"
            case _:
                errors[at] = "malformed"
    return pa.array(errors, pa.string())


def _packed(column: Packed | None) -> Packed:
    assert column is not None, "it was not wanted"
    return column


def _texts(seen: _Seen) -> pa.Array:
    assert seen.texts is not None
    return seen.texts


_COLUMNS: Final[dict[str, _Column]] = {
    "cluster_id": lambda seen: arrow.same(seen.piece.cluster_id, pa.string(), len(seen.rows.offsets)),
    "node_id": lambda seen: arrow.same(seen.piece.node_id, pa.int32(), len(seen.rows.offsets)),
    "directory": lambda seen: arrow.same(seen.piece.directory, pa.string(), len(seen.rows.offsets)),
    "segment": lambda seen: arrow.same(seen.piece.base_offset, pa.int64(), len(seen.rows.offsets)),
    "offset": lambda seen: arrow.numbers(seen.rows.offsets, pa.int64()),
    "epoch": lambda seen: arrow.numbers(seen.rows.epochs, pa.int32()),
    "timestamp": lambda seen: arrow.timestamps(seen.rows.timestamps_ms),
    "is_control": lambda seen: pa.array(np.isin(seen.rows.types, list(CONTROL_TYPES))),
    "type": lambda seen: seen.types,
    "version": lambda seen: arrow.numbers(seen.rows.versions, pa.int16(), null=_NO_VERSION),
    "data": _texts,
    "key": lambda seen: arrow.binaries(_packed(seen.rows.keys)),
    "value": lambda seen: arrow.binaries(_packed(seen.rows.values)),
    "headers": lambda seen: arrow.headers(seen.rows),
    "error": _errors,
}
RECORDS: Final = RecordsTable("records")
CONTROL: Final = RecordsTable("control", CONTROL_TYPES)


@functools.cache
def typed_table(table: RecordsTable, types: tuple[str, ...] | None) -> RecordsTable:
    """Return a table with a struct for each of these types (None: all types), in the order given."""
    known = {
        name: each for name, each in record_types().items() if table is not CONTROL or each.number in CONTROL_TYPES
    }
    only = CONTROL_TYPES if table is CONTROL else None
    return RecordsTable(table.name, only, {name: known[name] for name in types or known if name in known})
