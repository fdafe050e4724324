"""All of it in one process: what `jobs.audit_invariants` has Spark do, for the clusters of one read."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines import audit_replicas as replicas
from fastquorum.spark.pipelines.invariants import facts, findings, leaders, majority, offsets, snapshots
from fastquorum.spark.pipelines.invariants.replaying import audit_log

Read = Callable[..., pa.Table]
"""Reads a table: its name, columns, what becomes of its batches and their schema as `mapped`, and options."""


def audit_by(read: Read) -> pa.Table:
    """Return the findings of all clusters that `read` reads, of `findings.SCHEMA`. Errors as of `read`."""
    # Marks before batches: a node that runs goes on meanwhile.
    present = read("quorum_state", tuple(dict.fromkeys((*offsets.STATE_COLUMNS, *replicas.PRESENT_COLUMNS))))
    checkpoints = read("checkpoints", replicas.SNAPSHOT_COLUMNS)
    states = pa.concat_tables(
        [present.select(offsets.STATE_COLUMNS), checkpoints.select(offsets.CHECKPOINT_COLUMNS)],
        promote_options="default",
    )
    known = replicas.joined(
        read("voters", replicas.VOTER_COLUMNS), present.select(replicas.PRESENT_COLUMNS), checkpoints
    )
    batches = read("batches", offsets.COLUMNS)
    control = read("control", leaders.COLUMNS, types=leaders.TYPE)
    types = ",".join(facts.TYPES)
    log_facts = pa.concat_tables(
        [
            read("base", facts.BASE_COLUMNS, mapped=(facts.base_facts, facts.SCHEMA), types=types),
            read("records", facts.COLUMNS, mapped=(facts.record_facts, facts.SCHEMA)),  # of all types: can it be read?
            read("replay", facts.REPLAY_COLUMNS, mapped=(facts.replay_facts, facts.SCHEMA)),
        ]
    )
    found = pa.concat_tables(
        [
            *(offsets.audit_offsets(_of_same(batches, each), each) for each in _parts(states, "directory")),
            *(
                majority.audit_majority(_of_same(batches, each, "cluster_id"), each)
                for each in _parts(known, "cluster_id")
            ),
            *(audit_log(each) for each in _parts(log_facts, "directory")),
            *(leaders.audit_leaders(each) for each in _parts(control, "cluster_id")),
            snapshots.audit_snapshots(read("snapshots", snapshots.COLUMNS)),
            findings.SCHEMA.empty_table(),
        ]
    )
    return pa.concat_tables([found.slice(0, 0), *(findings.merged(each) for each in _parts(found, "cluster_id"))])


def _parts(table: pa.Table, name: str) -> list[pa.Table]:
    """Return the rows of each value of a column, in the order of the values; null is one, too."""
    column = table[name].fill_null("")
    return [table.filter(pc.equal(column, each)) for each in sorted(pc.unique(column).to_pylist())]


def _of_same(table: pa.Table, log: pa.Table, name: str = "directory") -> pa.Table:
    """Rows of the same directory, or of what else a column names; null is one, too."""
    return table.filter(pc.equal(table[name].fill_null(""), pc.fill_null(log[name][0], "")))
