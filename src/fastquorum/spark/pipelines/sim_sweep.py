"""`sim-sweep`: many seeds of the simulator, and of those that fail the least that still does.

The very code of `fastquorum sim sweep`: what is here makes tables of its reports. Needs pyarrow, and no JVM.
"""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum import sim
from fastquorum.sim.runs import KernelChoice
from fastquorum.spark.stored import arrow

_COUNTS: Final = (
    "voters",
    "observers",
    "brokers",
    "events",
    "virtual_us",
    "elections",
    "committed_records",
    "acknowledged",
    "unknown",
    "barriers",
    "restarts",
)
_SUMMED: Final = tuple(name for name in _COUNTS if name not in ("voters", "observers", "brokers"))
SCHEMA: Final = pa.schema(
    [
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("ok", pa.bool_(), nullable=False),
        pa.field("trace_hash", pa.string(), nullable=False),
        *arrow.fields(pa.int64(), *_COUNTS, nullable=False),
        pa.field("faults", pa.string(), nullable=False),
        *arrow.fields(pa.string(), "invariant", "detail"),
        pa.field("node_id", pa.int32()),
        pa.field("trace_tail", pa.list_(pa.string())),
        *arrow.fields(pa.string(), "repro", "shrunk_repro"),
        pa.field("shrunk_events", pa.int64()),
        pa.field("shrunk_detail", pa.string()),
        pa.field("shrunk_trace_tail", pa.list_(pa.string())),
    ]
)
"""One row for each seed: its `sim.Report`. `faults` is JSON, counts by kind. What a good seed has not is null. `repro`:
the command that shows it again; `shrunk_...`: of the least that breaks the same promise."""


def simulated(
    seeds: Iterable[int], *, kernels: KernelChoice = "mixed", controller: bool = False, shrinks: bool = True
) -> pa.Table:
    """SCHEMA, in the order of the seeds. UsageError as of `sim.run`."""
    rows = [
        _row(report, sim.shrink(report, kernels=kernels) if shrinks and not report.ok else None)
        for report in sim.sweep(seeds, kernels=kernels, controller=controller)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _row(report: sim.Report, shrunk: sim.Report | None) -> dict[str, Any]:
    fields = dataclasses.asdict(report)
    row = {name: fields[name] for name in SCHEMA.names if name in fields}
    row["faults"] = json.dumps(report.faults, sort_keys=True)
    if report.ok:
        return row | dict.fromkeys(("invariant", "detail", "node_id", "trace_tail"))
    row["repro"] = report.repro
    if shrunk is not None:
        row |= {
            "shrunk_repro": shrunk.repro,
            "shrunk_events": shrunk.events,
            "shrunk_detail": shrunk.detail,
            "shrunk_trace_tail": list(shrunk.trace_tail),
        }
    return row


def as_report(rows: pa.Table) -> dict[str, Any]:
    """For programs: `seeds`, `failed` (by seed), `invariants` broken and how often, and sums over all seeds."""
    failed = sorted(rows.filter(pc.invert(rows["ok"])).to_pylist(), key=lambda row: row["seed"])
    faults: dict[str, int] = {}
    for text in rows["faults"].to_pylist():
        for kind, count in json.loads(text).items():
            faults[kind] = faults.get(kind, 0) + count
    broken: dict[str, int] = {}
    for row in failed:
        broken[row["invariant"]] = broken.get(row["invariant"], 0) + 1
    return {
        "seeds": rows.num_rows,
        "first_seed": pc.min(rows["seed"]).as_py(),
        "last_seed": pc.max(rows["seed"]).as_py(),
        "ok": rows.num_rows - len(failed),
        "failed": [row | {"faults": json.loads(row["faults"])} for row in failed],
        "invariants": dict(sorted(broken.items())),
        "totals": {name: pc.sum(rows[name]).as_py() or 0 for name in _SUMMED},
        "faults": dict(sorted(faults.items())),
    }
