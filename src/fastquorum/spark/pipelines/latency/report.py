"""The whole as plain values, for JSON and for pages: stable keys."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from fastquorum.spark.pipelines.latency.comparing import LatencyVerdict
from fastquorum.spark.pipelines.latency.reading import GROUPS
from fastquorum.spark.pipelines.latency.significance import ALPHA


def as_report(
    merged: pa.Table,
    by: Sequence[str],
    *,
    compared: pa.Table | None = None,
    errors: Iterable[str] = (),
    doubles: Iterable[str] = (),
) -> dict[str, Any]:
    """`latencies`; `comparison`, null unless two sets were compared; `slower` and `faster`: what of it is significant;
    `errors`: of files that hold no latencies; `doubles`: files whose runs another one had told of."""
    rows = None if compared is None else [_short(row, by) for row in compared.to_pylist()]
    tests = [row for row in rows or () if row["p"] is not None]
    return {
        "by": list(by),
        "latencies": [_short(row, by) for row in merged.to_pylist()],
        "comparison": rows,
        "slower": [row for row in tests if row["verdict"] == LatencyVerdict.SLOWER],
        "faster": [row for row in tests if row["verdict"] == LatencyVerdict.FASTER],
        "tests": len(tests),
        "expected_by_chance": round(ALPHA * sum(row["verdict"] != LatencyVerdict.FEW for row in tests), 2),
        "errors": sorted(errors),
        "doubles": list(doubles),
    }


def _short(row: dict[str, Any], by: Sequence[str]) -> dict[str, Any]:
    """With one key for the group."""
    group = {name: row[name] for name in by}
    return {"group": group} | {name: value for name, value in row.items() if name not in GROUPS}


def left_out(*sides: pa.Table) -> tuple[list[str], list[str]]:
    """Return two lists from ROWS: errors of files without latencies, and files whose runs another file has too."""
    errors: set[str] = set()
    doubles: set[str] = set()
    for side in sides:
        for row in side.select(["file", "error", "double_of"]).to_pylist():
            if row["error"]:
                errors.add(row["error"])
            elif row["double_of"]:
                doubles.add(row["file"])
    return sorted(errors), sorted(doubles)
