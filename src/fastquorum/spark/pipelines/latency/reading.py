"""From a file's text to rows: one for each histogram of each run, with what the run was.

A result has the latency of all its appends as an HdrHistogram, and of each node's stages a coarser one; a histogram log
has the former by the second; a trace has every batch, from which histograms are made here.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.load.hdr import Histogram
from fastquorum.load.result import FORMAT, SWEEP_FORMAT
from fastquorum.load.runs import steps_of
from fastquorum.spark.pipelines.latency.tracing import trace_durations
from fastquorum.spark.stored import arrow

COMMIT: Final = "commit"
"""From the intended send time of an append to its acknowledgement."""
LEADER: Final = "leader"
FOLLOWER: Final = "follower"
HDR: Final = "hdr"
STAGE: Final = "stage"
GROUPS: Final = (
    "driver",
    "api",
    "workload",
    "load",
    "record_bytes",
    "records_per_append",
    "version",
    "commit",
    "cpu",
    "directory",
    "file",
)
"""What runs can be grouped by; null where a file does not say it."""
ROWS: Final = pa.schema(
    [
        *arrow.fields(pa.string(), *GROUPS),
        pa.field("run", pa.int32()),
        *arrow.fields(pa.string(), "started", "what", "role", "layout"),
        pa.field("count", pa.int64()),
        pa.field("sum_us", pa.float64()),
        pa.field("buckets", pa.list_(pa.int32())),
        pa.field("counts", pa.list_(pa.int64())),
        *arrow.fields(pa.string(), "double_of", "error"),
    ]
)
"""`run`: its number in a sweep. `what`: "commit" or a stage's name. `layout`: of the buckets, hdr or stage; where there
are none, as in older results, a count and a sum are all. `double_of`: a file that tells of the same run. `error`: the
file holds no latencies, and why."""
Row = dict[str, Any]
_START: Final = re.compile(r"#\[StartTime: (\d+(?:\.\d+)?)")
_OURS: Final = re.compile(r"#\[fastquorum load: (\w+), (\w+);")
_HISTOGRAM: Final = 3
"""Its column in a log: start, length, maximum, histogram."""


def rows_of(path: str, text: str) -> pa.Table:
    """ROWS of one file. Whatever is wrong with it is a row with `error`."""
    where = {"file": path, "directory": path.rpartition("/")[0]}
    try:
        rows = list(_of_json(json.loads(text)) if text.lstrip().startswith("{") else _of_log(text))
        return pa.Table.from_pylist([where | row for row in rows], ROWS)
    except (ValueError, TypeError, OverflowError) as error:  # also of a number that no column has room for
        return pa.Table.from_pylist([where | {"error": f"{path}: {error}"}], ROWS)


def without_doubles(rows: pa.Table) -> pa.Table:
    """Return the rows, with `double_of` where another file has told of the same run: a result beside its own histogram
    log, or copied, counts once. A run is the same if it began in the same second, and its commits took as long, one and
    all. All rows of runs that began in the same second have to be there."""
    columns = ("file", "run", "started", "version", "buckets", "counts")
    can_tell = pc.and_(
        pc.equal(rows["what"], COMMIT), pc.and_(rows["started"].is_valid(), pc.greater(rows["count"], 0))
    )
    commits = rows.filter(can_tell).select(columns).to_pylist()
    # Results first: they know more of a run than its histogram log.
    commits.sort(key=lambda row: (row["version"] is None, row["file"], row["run"]))
    seen: dict[tuple[str, bytes], str] = {}
    doubles: dict[tuple[str, int], str] = {}
    for row in commits:
        digest = hashlib.blake2b(repr((row["buckets"], row["counts"])).encode(), digest_size=16).digest()
        first = seen.setdefault((row["started"], digest), row["file"])
        if first != row["file"]:
            doubles[row["file"], row["run"]] = first
    runs = zip(rows["file"].to_pylist(), rows["run"].to_pylist(), strict=True)
    double_of = pa.array([doubles.get(run) for run in runs], pa.string())
    return rows.set_column(ROWS.get_field_index("double_of"), "double_of", double_of)


# --- results ----------------------------------------------------------------------------------------------------------


def _of_json(value: Any) -> Iterator[Row]:
    if isinstance(value, dict) and value.get("format") in (FORMAT, SWEEP_FORMAT):
        for number, step in enumerate(steps_of(value)):
            yield from _of_run(step, number, value)
    elif isinstance(value, dict) and "traceEvents" in value:
        for (what, role), durations_ns in trace_durations(value["traceEvents"]).items():
            histogram = Histogram()
            histogram.record(durations_ns)
            yield {"what": what, "role": role, **_hdr(histogram), "sum_us": float(durations_ns.sum()) / 1e3}
    else:
        raise ValueError("neither a result of `fastquorum load` nor a trace")


def _of_run(step: Mapping[str, Any], number: int, whole: Mapping[str, Any]) -> Iterator[Row]:
    try:
        plan, machine = step["plan"], step.get("machine") or whole["machine"]
        about = {
            "driver": plan["driver"],
            "api": plan["api"] if plan["driver"] == "embedded" else None,
            "workload": plan["workload"],
            "load": f"{plan['closed']} in flight" if plan["closed"] else f"{plan['records_per_s']:.0f}/s",
            "record_bytes": str(plan["record_bytes"]),
            "records_per_append": str(plan["records_per_append"]),
            "version": step["version"],
            "commit": machine.get("commit"),
            "cpu": machine.get("cpu"),
            "run": number,
            "started": step["started"],
        }
        yield about | {"what": COMMIT, **_hdr(Histogram.decode(step["histogram"]))}
        for _, stages in sorted(step.get("stages", {}).items()):
            role = LEADER if stages.get("append_told", {}).get("count") else FOLLOWER
            for name, figures in stages.items():
                if figures["count"]:
                    yield about | {"what": name, "role": role, **_stage(figures)}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a result that lacks {error}") from error


def _hdr(histogram: Histogram) -> Row:
    filled = np.flatnonzero(histogram.counts)
    total = histogram.total
    return {
        "layout": HDR,
        "count": total,
        "sum_us": histogram.mean * total / 1e3,
        "buckets": filled.tolist(),
        "counts": histogram.counts[filled].tolist(),
    }


def _stage(figures: Mapping[str, Any]) -> Row:
    pairs: Sequence[tuple[int, int]] | None = figures.get("buckets")
    return {
        "layout": STAGE,
        "count": figures["count"],
        "sum_us": figures["sum_us"],
        "buckets": None if pairs is None else [bucket for bucket, _ in pairs],
        "counts": None if pairs is None else [count for _, count in pairs],
    }


# --- histogram logs ---------------------------------------------------------------------------------------------------


def _of_log(text: str) -> Iterator[Row]:
    """All intervals together. ValueError if it is no HdrHistogram log, or of a layout that is not ours."""
    whole, intervals = Histogram(), 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line[0] in '#"':
            continue
        fields = line.split(",")
        if fields[0].startswith("Tag="):
            fields = fields[1:]
        if len(fields) != _HISTOGRAM + 1:
            raise ValueError(f"line {number} is not of an HdrHistogram log")
        try:
            whole.add(Histogram.decode(fields[_HISTOGRAM].strip()))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        intervals += 1
    if not intervals:
        raise ValueError("it holds no histogram")
    source, began = _OURS.search(text), _START.search(text)
    about: Row = {"run": 0, "started": None if began is None else _iso(float(began[1]))}
    if source is not None:
        about |= {"driver": source[1], "workload": source[2]}
    yield about | {"what": COMMIT, **_hdr(whole)}


def _iso(seconds: float) -> str:
    """Return a time as results have it."""
    return str(np.datetime64(int(seconds), "s")) + "+00:00"
