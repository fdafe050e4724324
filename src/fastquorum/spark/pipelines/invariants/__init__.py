"""`audit-invariants`: does a metadata log keep the promises that a quorum and its controller make?

Each part is a function of its own over a table of the data source, of one log or one cluster: `audit_offsets` of
`batches` and `checkpoints`, `audit_majority` of what `audit_replicas` reads, `audit_log` of the facts of `records`,
`base` and `replay`, `audit_leaders` of `control`, `audit_snapshots` of `snapshots`; `merged` makes one of what several
replicas share. Kafka's own behaviour is what is legal. Needs pyarrow and numpy, and no JVM.
"""

from fastquorum.spark.pipelines.invariants.facts import (
    BASE_COLUMNS,
    REPLAY_COLUMNS,
    TYPES,
    base_facts,
    base_facts_of,
    facts_of,
    record_facts,
    replay_facts,
)
from fastquorum.spark.pipelines.invariants.facts import COLUMNS as RECORD_COLUMNS
from fastquorum.spark.pipelines.invariants.facts import SCHEMA as FACTS
from fastquorum.spark.pipelines.invariants.findings import (
    NOTES,
    PROMISES,
    SCHEMA,
    Finding,
    Kind,
    accuses,
    as_report,
    empty_clusters,
    merged,
)
from fastquorum.spark.pipelines.invariants.leaders import COLUMNS as CONTROL_COLUMNS
from fastquorum.spark.pipelines.invariants.leaders import TYPE as LEADER_TYPE
from fastquorum.spark.pipelines.invariants.leaders import audit_leaders
from fastquorum.spark.pipelines.invariants.majority import audit_majority
from fastquorum.spark.pipelines.invariants.offsets import CHECKPOINT_COLUMNS, STATE_COLUMNS, audit_offsets
from fastquorum.spark.pipelines.invariants.replaying import audit_log
from fastquorum.spark.pipelines.invariants.snapshots import COLUMNS as SNAPSHOT_COLUMNS
from fastquorum.spark.pipelines.invariants.snapshots import audit_snapshots
from fastquorum.spark.pipelines.invariants.whole import BATCH_COLUMNS, audit_by

__all__ = [
    "BASE_COLUMNS",
    "BATCH_COLUMNS",
    "CHECKPOINT_COLUMNS",
    "CONTROL_COLUMNS",
    "FACTS",
    "LEADER_TYPE",
    "NOTES",
    "PROMISES",
    "RECORD_COLUMNS",
    "REPLAY_COLUMNS",
    "SCHEMA",
    "SNAPSHOT_COLUMNS",
    "STATE_COLUMNS",
    "TYPES",
    "Finding",
    "Kind",
    "accuses",
    "as_report",
    "audit_by",
    "audit_leaders",
    "audit_log",
    "audit_majority",
    "audit_offsets",
    "audit_snapshots",
    "base_facts",
    "base_facts_of",
    "empty_clusters",
    "facts_of",
    "merged",
    "record_facts",
    "replay_facts",
]
