"""A placement's tables as bytes, a row for each: what takes long is computed once, wherever it is, and a million moves
pass through Spark as one value, not as a million rows."""

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.spark.pipelines.placement.told import BROKERS, LOSSES, MOVES

PARTS: Final[Mapping[str, pa.Schema]] = MappingProxyType({"brokers": BROKERS, "losses": LOSSES, "moves": MOVES})
"""The tables."""
SUMMARY: Final = "summary"
_CLUSTER: Final = pa.field("cluster_id", pa.string())
PACKED: Final = pa.schema(
    [_CLUSTER, pa.field("part", pa.string(), nullable=False), pa.field("data", pa.binary(), nullable=False)]
)
"""`data` of a part: a stream of Arrow's; of the summary: JSON."""
ROWS_MAX: Final = 1 << 16
"""Of a batch."""


class Placement(NamedTuple):
    """Of one cluster."""

    brokers: pa.Table
    """A row for each broker, by id."""
    losses: pa.Table
    """A row for each broker, then for each rack."""
    moves: pa.Table
    """A row for each partition that is to change."""
    summary: dict[str, Any]
    """For JSON."""


def packed(cluster_id: str | None, found: Placement) -> pa.Table:
    """PACKED."""
    parts = [(name, _bytes(getattr(found, name))) for name in PARTS]
    parts.append((SUMMARY, json.dumps(found.summary).encode()))
    return pa.Table.from_pylist(
        [{"cluster_id": cluster_id, "part": name, "data": data} for name, data in parts], PACKED
    )


def unpacked(table: pa.Table) -> list[tuple[str | None, Placement]]:
    """Each cluster's, by its id."""
    by_cluster: dict[str | None, dict[str, Any]] = {}
    for cluster_id, part, data in _rows(table):
        one = by_cluster.setdefault(cluster_id, {})
        one[part] = json.loads(data.to_pybytes()) if part == SUMMARY else _table(data, PARTS[part])
    ordered = sorted(by_cluster.items(), key=lambda item: (item[0] is not None, item[0] or ""))
    return [(cluster_id, Placement(**parts)) for cluster_id, parts in ordered]


def part_schema(part: str) -> pa.Schema:
    """Of `part_rows`."""
    return pa.schema([_CLUSTER, *(PARTS[part] if part in PARTS else [pa.field(SUMMARY, pa.string(), nullable=False)])])


def part_rows(table: pa.Table, part: str) -> Iterator[pa.RecordBatch]:
    """A part, or the summary, of each cluster, with the cluster's id in front."""
    schema = part_schema(part)
    for cluster_id, name, data in _rows(table):
        if name != part:
            continue
        whole = pa.table({SUMMARY: [data.to_pybytes().decode()]}) if part == SUMMARY else _table(data, PARTS[part])
        ids = pa.repeat(pa.scalar(cluster_id, pa.string()), whole.num_rows)
        yield from pa.table([ids, *whole.columns], schema=schema).to_batches(max_chunksize=ROWS_MAX)


def all_moves(found: Iterable[tuple[str | None, Placement]]) -> pa.Table:
    """The moves of all clusters, with their ids in front."""
    schema = part_schema("moves")
    tables = [schema.empty_table()]
    for cluster_id, each in found:
        ids = pa.repeat(pa.scalar(cluster_id, pa.string()), each.moves.num_rows)
        tables.append(pa.table([ids, *each.moves.columns], schema=schema))
    return pa.concat_tables(tables)


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=ROWS_MAX)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _rows(table: pa.Table) -> Iterator[tuple[str | None, str, Any]]:
    """Of each: cluster, part, and the data as a buffer that is not copied."""
    for batch in table.to_batches():
        ids, parts = batch["cluster_id"].to_pylist(), batch["part"].to_pylist()
        yield from zip(ids, parts, (each.as_buffer() for each in batch["data"]), strict=True)


def _table(data: Any, schema: pa.Schema) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all().cast(schema)
