"""All of it in one process: what `jobs.audit_invariants` has Spark do, for a path of a few logs."""

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.invariants import facts, findings, leaders, offsets, snapshots
from fastquorum.spark.pipelines.invariants.replaying import audit_log
from fastquorum.spark.scan import read_table


def audit(path: str) -> pa.Table:
    """The findings of all clusters at `path`, of `findings.SCHEMA`. Errors as of `scan.read_table`."""
    batches = _read(path, "batches", offsets.COLUMNS)
    told = pa.concat_tables(
        [
            _read(path, "checkpoints", offsets.CHECKPOINT_COLUMNS),
            _read(path, "quorum_state", offsets.STATE_COLUMNS),
        ],
        promote_options="default",
    )
    control = _read(path, "control", leaders.COLUMNS, types=leaders.TYPE)
    said = pa.concat_tables(
        [
            facts.base_facts_of(_read(path, "base", facts.BASE_COLUMNS, types=",".join(facts.TYPES))),
            facts.facts_of(_read(path, "records", facts.COLUMNS, types=",".join(facts.TYPES))),
        ]
    )
    found = pa.concat_tables(
        [
            *(offsets.audit_offsets(_of_same(batches, each), each) for each in _parts(told, "directory")),
            *(audit_log(each) for each in _parts(said, "directory")),
            *(leaders.audit_leaders(each) for each in _parts(control, "cluster_id")),
            snapshots.audit_snapshots(_read(path, "snapshots", snapshots.COLUMNS)),
            findings.SCHEMA.empty_table(),
        ]
    )
    return pa.concat_tables([found.slice(0, 0), *(findings.merged(each) for each in _parts(found, "cluster_id"))])


def _read(path: str, table: str, columns: tuple[str, ...], **options: str) -> pa.Table:
    return read_table(path, table, columns=",".join(columns), mode="quarantine", fromOffset="earliest", **options)


def _parts(table: pa.Table, name: str) -> list[pa.Table]:
    """What each value of a column has, in the order of the values; null is one, too."""
    column = table[name].fill_null("")
    return [table.filter(pc.equal(column, each)) for each in sorted(pc.unique(column).to_pylist())]


def _of_same(table: pa.Table, log: pa.Table) -> pa.Table:
    """Rows of the same directory."""
    return table.filter(pc.equal(table["directory"], log["directory"][0]))
