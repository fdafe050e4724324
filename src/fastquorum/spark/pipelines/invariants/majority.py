"""Is what was committed on a majority of the voters still, has each node one directory, and has that a vote? From the
headers of all logs of a cluster, as `pipelines.audit_replicas` compares them.

A leader commits what a majority has on its disks, where it stays. Source: Raft, sections 5.3 and 5.4.
"""

import pyarrow as pa

from fastquorum.spark.pipelines.audit_replicas import NO_VOTE, audit, copies_in
from fastquorum.spark.pipelines.invariants.findings import SCHEMA, FindingKind, LogFinding, LogOwner, table_of


def audit_majority(batches: pa.Table, directory_rows: pa.Table) -> pa.Table:
    """Audit the logs of one cluster; return findings (SCHEMA). Arguments: as of `audit_replicas.audit_cluster`."""
    audited = audit(batches, directory_rows)
    tables = [SCHEMA.empty_table()]
    shortage = audited.shortage
    if shortage is not None:
        offset = min(each.end_offset for each in shortage.lacking)
        logs = [LogOwner(each.cluster_id, each.node_id, each.directory) for each in shortage.lacking]
        tables.append(
            table_of([LogFinding(FindingKind.NOT_ON_MAJORITY, shortage.says, min(offset, shortage.end))], *logs)
        )
    replicas = sorted(audited.replicas, key=lambda each: each.directory)
    for each in replicas:
        if each.no_vote is not None:
            note = LogFinding(FindingKind.NO_VOTE, NO_VOTE.format(each.directory, each.no_vote), None)
            tables.append(table_of([note], LogOwner(each.cluster_id, each.node_id, each.directory)))
    for copies in copies_in((each.cluster_id, each.node_id, each.directory, each.no_vote) for each in replicas):
        logs = [LogOwner(copies.cluster_id, copies.node_id, each) for each in copies.directories]
        tables.append(table_of([LogFinding(FindingKind.COPIES, copies.text, None)], *logs))
    return pa.concat_tables(tables)
