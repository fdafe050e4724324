"""Has every epoch one leader, and one beginning? From the LEADER_CHANGE records of all logs of a cluster.

A leader writes one, as the first record of its epoch, and never leads an epoch again. Source: KIP-595; Raft, section
5.2; KAFKA-10527.
"""

from typing import Any, Final

import pyarrow as pa

from fastquorum.spark.pipelines.invariants.findings import SCHEMA, FindingKind, LogFinding, LogOwner, table_of
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.texts import parsed

COLUMNS: Final = (*arrow.OWNER, "offset", "epoch", "timestamp", "type", "data", "error")
"""Columns that are read from table `control`, damage set aside in `error`."""
TYPE: Final = "LEADER_CHANGE"
_FIELDS: Final = pa.schema([("leaderId", pa.int32())])


def audit_leaders(control: pa.Table) -> pa.Table:
    """Audit the control records (COLUMNS) of one cluster's logs; return findings (SCHEMA). Leaders are few."""
    changes = control.filter(pa.array([each == TYPE for each in control["type"].to_pylist()], pa.bool_()))
    changes = changes.filter(changes["data"].is_valid())
    if changes.num_rows == 0:
        return SCHEMA.empty_table()
    leaders = parsed(changes["data"], _FIELDS)["leaderId"].to_pylist()
    begun: dict[int, dict[tuple[int, int], list[dict[str, Any]]]] = {}
    for row, leader in zip(changes.drop_columns("data").to_pylist(), leaders, strict=True):
        begun.setdefault(row["epoch"], {}).setdefault((row["offset"], leader), []).append(row)
    tables = [SCHEMA.empty_table()]
    for epoch, beginnings in sorted(begun.items()):
        (first_offset, first_leader), *others = sorted(beginnings)
        for offset, leader in others:
            rows = beginnings[offset, leader]
            is_same = leader == first_leader
            says = f"epoch {epoch} begins with controller {leader}" + (" once more" if is_same else "")
            others_in = ", ".join(sorted({each["directory"] for each in beginnings[first_offset, first_leader]}))
            before = f"epoch {epoch} began with controller {first_leader}, in {others_in}"
            finding = LogFinding(
                FindingKind.TWO_LEADERS,
                says,
                offset,
                epoch,
                rows[0]["timestamp"],
                before=before,
                before_offset=first_offset,
            )
            logs = [LogOwner(each["cluster_id"], each["node_id"], each["directory"]) for each in rows]
            tables.append(table_of([finding], *logs))
    return pa.concat_tables(tables)
