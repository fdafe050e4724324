"""What a pipeline tells of a cluster, as bytes, a row for each of its parts: what takes long is computed once, wherever
it is, and a million rows pass through Spark as one value.

What is told is a named tuple: Arrow tables, and a summary for JSON behind them. What is in them, this does not know.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

from fastquorum.errors import UsageError

SUMMARY: Final = "summary"
"""The part that is JSON."""
_CLUSTER: Final = pa.field("cluster_id", pa.string())
PACKED: Final = pa.schema(
    [_CLUSTER, pa.field("part", pa.string(), nullable=False), pa.field("data", pa.binary(), nullable=False)]
)
"""`data` of a part: a stream of Arrow's; of the summary: JSON."""
ROWS_MAX: Final = 1 << 16
"""Of a batch."""
Told = TypeVar("Told", bound=tuple[Any, ...])


class Packing(NamedTuple, Generic[Told]):
    """How one pipeline's parts are packed, and taken out again."""

    make: Callable[..., Told]
    """What is told, of the tables by their names and of `summary`."""
    schemas: Mapping[str, pa.Schema]
    """Of the tables, by name."""

    @property
    def parts(self) -> tuple[str, ...]:
        """All that can be asked for."""
        return (*self.schemas, SUMMARY)

    def nothing(self, summary: dict[str, Any]) -> Told:
        """Of a cluster of which nothing but this can be told."""
        return self.make(**{name: schema.empty_table() for name, schema in self.schemas.items()}, summary=summary)

    def packed(self, cluster_id: str | None, told: Told) -> pa.Table:
        """PACKED."""
        parts = [(name, _bytes(getattr(told, name))) for name in self.schemas]
        parts.append((SUMMARY, json.dumps(getattr(told, SUMMARY)).encode()))
        rows = [{"cluster_id": cluster_id, "part": name, "data": data} for name, data in parts]
        return pa.Table.from_pylist(rows, PACKED)

    def unpacked(self, packed: pa.Table) -> list[tuple[str | None, Told]]:
        """What is told of each cluster, by its id."""
        by_cluster: dict[str | None, dict[str, Any]] = {}
        for cluster_id, part, data in _rows(packed):
            one = by_cluster.setdefault(cluster_id, {})
            one[part] = json.loads(data.to_pybytes()) if part == SUMMARY else _table(data, self.schemas[part])
        ordered = sorted(by_cluster.items(), key=lambda item: (item[0] is not None, item[0] or ""))
        return [(cluster_id, self.make(**parts)) for cluster_id, parts in ordered]

    def schema(self, part: str) -> pa.Schema:
        """Of `rows`. UsageError: there is no such part."""
        if part not in self.parts:
            raise UsageError(f"there is no part {part!r}", f"the parts are {', '.join(self.parts)}")
        return pa.schema([_CLUSTER, *self.schemas.get(part, [pa.field(SUMMARY, pa.string(), nullable=False)])])

    def rows(self, packed: pa.Table, part: str) -> Iterator[pa.RecordBatch]:
        """A part, or the summary, of each cluster, with the cluster's id in front."""
        for cluster_id, name, data in _rows(packed):
            if name == part:
                whole = _text(data.to_pybytes().decode()) if part == SUMMARY else _table(data, self.schemas[part])
                yield from self._of(cluster_id, part, whole).to_batches(max_chunksize=ROWS_MAX)

    def tables(self, found: Iterable[tuple[str | None, Told]]) -> dict[str, pa.Table]:
        """Every part of all clusters, by name, as of `rows`."""
        tables = {part: [self.schema(part).empty_table()] for part in self.parts}
        for cluster_id, told in found:
            for part in self.parts:
                said = getattr(told, part)
                tables[part].append(self._of(cluster_id, part, _text(json.dumps(said)) if part == SUMMARY else said))
        return {part: pa.concat_tables(each) for part, each in tables.items()}

    def _of(self, cluster_id: str | None, part: str, whole: pa.Table) -> pa.Table:
        ids = pa.repeat(pa.scalar(cluster_id, pa.string()), whole.num_rows)
        return pa.table([ids, *whole.columns], schema=self.schema(part))


def _text(summary: str) -> pa.Table:
    return pa.table({SUMMARY: [summary]})


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=ROWS_MAX)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _rows(packed: pa.Table) -> Iterator[tuple[str | None, str, Any]]:
    """Of each: cluster, part, and the data as a buffer that is not copied."""
    for batch in packed.to_batches():
        ids, parts = batch["cluster_id"].to_pylist(), batch["part"].to_pylist()
        yield from zip(ids, parts, (each.as_buffer() for each in batch["data"]), strict=True)


def _table(data: Any, schema: pa.Schema) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all().cast(schema)
