"""A placement's tables as one, so that what takes long is computed once, wherever it is computed."""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.placement.told import BROKERS, LOSSES, MOVES

PARTS: Final[Mapping[str, pa.Schema]] = MappingProxyType({"brokers": BROKERS, "losses": LOSSES, "moves": MOVES})
"""The tables."""
SUMMARY: Final = "summary"
PACKED: Final = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("part", pa.string(), nullable=False),
        *(pa.field(name, pa.struct([each.with_nullable(True) for each in part])) for name, part in PARTS.items()),
        pa.field(SUMMARY, pa.string()),
    ]
)
"""Each row is one of the part that it names; the summary is JSON."""


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
    tables = []
    for name, part in (("brokers", found.brokers), ("losses", found.losses), ("moves", found.moves)):
        kind = PACKED.field(name).type
        columns = [each.combine_chunks().cast(field.type) for each, field in zip(part.columns, kind, strict=True)]
        whole = pa.StructArray.from_arrays(columns, fields=list(kind))
        tables.append(_rows(cluster_id, name, whole, part.num_rows))
    tables.append(_rows(cluster_id, SUMMARY, pa.array([json.dumps(found.summary)]), 1))
    return pa.concat_tables(tables)


def unpacked(table: pa.Table) -> list[tuple[str | None, Placement]]:
    """Each cluster's, by its id."""
    found = []
    ids = sorted(set(table["cluster_id"].to_pylist()), key=lambda each: (each is not None, each or ""))
    for cluster_id in ids:
        is_its = table["cluster_id"].is_null() if cluster_id is None else pc.equal(table["cluster_id"], cluster_id)
        rows = table.filter(is_its)
        parts = {name: _part(rows, name, schema) for name, schema in PARTS.items()}
        (summary,) = rows.filter(pc.equal(rows["part"], SUMMARY))[SUMMARY].to_pylist()
        found.append((cluster_id, Placement(**parts, summary=json.loads(summary))))
    return found


def all_moves(found: Iterable[tuple[str | None, Placement]]) -> pa.Table:
    """The moves of all clusters, with their ids in front."""
    schema = pa.schema([PACKED.field("cluster_id"), *PARTS["moves"]])
    tables = [schema.empty_table()]
    for cluster_id, each in found:
        ids = pa.repeat(pa.scalar(cluster_id, pa.string()), each.moves.num_rows)
        tables.append(pa.table([ids, *each.moves.columns], schema=schema))
    return pa.concat_tables(tables)


def _rows(cluster_id: str | None, part: str, values: pa.Array, count: int) -> pa.Table:
    told = {
        "cluster_id": pa.repeat(pa.scalar(cluster_id, pa.string()), count),
        "part": pa.repeat(pa.scalar(part), count),
        part: values,
    }
    return pa.table([told.get(field.name, pa.nulls(count, field.type)) for field in PACKED], schema=PACKED)


def _part(rows: pa.Table, name: str, schema: pa.Schema) -> pa.Table:
    column = rows.filter(pc.equal(rows["part"], name))[name].combine_chunks()
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.table([whole.field(number) for number in range(len(schema))], schema=schema)
