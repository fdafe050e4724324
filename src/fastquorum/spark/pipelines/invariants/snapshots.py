"""Is each snapshot what the log comes to at its offset? Of table `snapshots`, which compares them. Source: KIP-630."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.invariants.findings import SCHEMA, FindingKind, LogFinding, LogOwner, table_of
from fastquorum.spark.stored import arrow

COLUMNS: Final = (
    *arrow.OWNER,
    "offset",
    "epoch",
    "timestamp",
    "verdict",
    "kind",
    "name",
    "in_log",
    "in_snapshot",
    "error",
)
"""Columns that are read from table `snapshots`."""


def audit_snapshots(snapshots: pa.Table) -> pa.Table:
    """Audit snapshots (COLUMNS) of any number of logs (SCHEMA). Those not compared for one reason are one note."""
    tables = [SCHEMA.empty_table()]
    unchecked: dict[tuple[LogOwner, str], list[dict[str, Any]]] = {}
    for row in snapshots.filter(pc.not_equal(snapshots["verdict"], "same")).to_pylist():
        owner = LogOwner(row["cluster_id"], row["node_id"], row["directory"])
        where = row["offset"], row["epoch"], row["timestamp"]
        if row["verdict"] == "differs":
            says = f"the snapshot has {row['kind']} {row['name']} as {row['in_snapshot'] or 'not there'}"
            before = f"the log comes to {row['in_log'] or 'none of it'}"
            found = LogFinding(FindingKind.SNAPSHOT_DIFFERS, says, *where, before=before, before_offset=row["offset"])
        elif row["verdict"] == "damaged":
            found = LogFinding(FindingKind.BIT_FLIP, f"the snapshot is damaged: {row['error']}", *where)
        elif row["verdict"] == "not-replayable":
            found = LogFinding(FindingKind.NOT_REPLAYABLE, f"the snapshot cannot be loaded: {row['error']}", *where)
        else:
            unchecked.setdefault((owner, row["error"]), []).append(row)
            continue
        tables.append(table_of([found], owner))
    for (owner, error), rows in unchecked.items():
        says = f"{len(rows)} snapshots, up to offset {rows[-1]['offset']}, could not be compared: {error}"
        tables.append(table_of([LogFinding(FindingKind.UNCHECKED, says, rows[0]["offset"])], owner))
    return pa.concat_tables(tables)
