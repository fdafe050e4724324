"""What a pipeline tells of a cluster, as bytes, a row for each of its parts: what takes long is computed once, wherever
it is, and a million rows pass through Spark as one value.

What is told is a named tuple: Arrow tables, and a summary for JSON behind them. What is in them, this does not know.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

SUMMARY: Final = "summary"
"""The part that is JSON."""
_CLUSTER: Final = pa.field("cluster_id", pa.string())
PACKED: Final = pa.schema(
    [_CLUSTER, pa.field("part", pa.string(), nullable=False), pa.field("data", pa.binary(), nullable=False)]
)
"""`data` of a part: a stream of Arrow's; of the summary: JSON."""
ROWS_MAX: Final = 1 << 16
"""Most rows of a batch."""
Result = TypeVar("Result", bound=tuple[Any, ...])


class Packing(NamedTuple, Generic[Result]):
    """How one pipeline's parts are packed, and taken out again."""

    make: Callable[..., Result]
    """Makes a result from the tables by their names and from `summary`."""
    schemas: Mapping[str, pa.Schema]
    """Schemas of the tables, by name."""

    @property
    def parts(self) -> tuple[str, ...]:
        return (*self.schemas, SUMMARY)

    def nothing(self, summary: dict[str, Any]) -> Result:
        """Make the result of a cluster of which only the summary is known."""
        return self.make(**{name: schema.empty_table() for name, schema in self.schemas.items()}, summary=summary)

    def packed(self, cluster_id: str | None, result: Result) -> pa.Table:
        """Pack a result (PACKED)."""
        parts = [(name, _bytes(getattr(result, name))) for name in self.schemas]
        parts.append((SUMMARY, json.dumps(getattr(result, SUMMARY)).encode()))
        rows = [{"cluster_id": cluster_id, "part": name, "data": data} for name, data in parts]
        return pa.Table.from_pylist(rows, PACKED)

    def unpacked(self, packed: pa.Table) -> list[tuple[str | None, Result]]:
        """Return the result of each cluster, with the cluster's id."""
        by_cluster: dict[str | None, dict[str, Any]] = {}
        for cluster_id, part, data in _rows(packed):
            one = by_cluster.setdefault(cluster_id, {})
            one[part] = json.loads(data.to_pybytes()) if part == SUMMARY else _table(data, self.schemas[part])
        ordered = sorted(by_cluster.items(), key=lambda item: (item[0] is not None, item[0] or ""))
        return [(cluster_id, self.make(**parts)) for cluster_id, parts in ordered]

    def schema(self, part: str) -> pa.Schema:
        """Return the schema of a part of `tables`."""
        return pa.schema([_CLUSTER, *self.schemas.get(part, [pa.field(SUMMARY, pa.string(), nullable=False)])])

    def tables(self, found: Iterable[tuple[str | None, Result]]) -> dict[str, pa.Table]:
        """Return every part, the summary too, of all clusters, by name, with the cluster's id in front."""
        tables = {part: [self.schema(part).empty_table()] for part in self.parts}
        for cluster_id, result in found:
            for part in self.parts:
                value = getattr(result, part)
                whole = pa.table({SUMMARY: [json.dumps(value)]}) if part == SUMMARY else value
                ids = pa.repeat(pa.scalar(cluster_id, pa.string()), whole.num_rows)
                tables[part].append(pa.table([ids, *whole.columns], schema=self.schema(part)))
        return {part: pa.concat_tables(each) for part, each in tables.items()}


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=ROWS_MAX)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _rows(packed: pa.Table) -> Iterator[tuple[str | None, str, Any]]:
    """Yield cluster, part, and the data as a buffer that is not copied."""
    for batch in packed.to_batches():
        ids, parts = batch["cluster_id"].to_pylist(), batch["part"].to_pylist()
        yield from zip(ids, parts, (each.as_buffer() for each in batch["data"]), strict=True)


def _table(data: Any, schema: pa.Schema) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all().cast(schema)
