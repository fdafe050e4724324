"""Is what was committed on a majority of the voters still, and has each node one directory? From the headers of all
logs of a cluster, as `pipelines.audit_replicas` compares them.

A leader commits what a majority has on its disks, where it stays. Source: Raft, sections 5.3 and 5.4.
"""

import pyarrow as pa

from fastquorum.spark.pipelines.audit_replicas import audit, copies_in
from fastquorum.spark.pipelines.invariants.findings import SCHEMA, Finding, Kind, Whose, table_of


def audit_majority(batches: pa.Table, told: pa.Table) -> pa.Table:
    """Of the logs of one cluster; `batches` and `told` as of `audit_replicas.audit_cluster`; of SCHEMA."""
    audited = audit(batches, told)
    tables = [SCHEMA.empty_table()]
    shortage = audited.shortage
    if shortage is not None:
        offset = min(each.end_offset for each in shortage.lacking)
        logs = [Whose(each.cluster_id, each.node_id, each.directory) for each in shortage.lacking]
        tables.append(table_of([Finding(Kind.NOT_ON_MAJORITY, shortage.says, min(offset, shortage.end))], *logs))
    rows = [
        {"cluster_id": each.cluster_id, "node_id": each.node_id, "directory": each.directory}
        for each in audited.replicas
    ]
    for note in copies_in(sorted(rows, key=lambda row: str(row["directory"]))):
        logs = [Whose(note.cluster_id, note.node_id, each) for each in note.directories]
        tables.append(table_of([Finding(Kind.COPIES, note.text, None)], *logs))
    return pa.concat_tables(tables)
