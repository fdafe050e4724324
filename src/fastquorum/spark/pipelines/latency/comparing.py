"""Two sets of runs: ratios of percentiles, each with what the runs can say about it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fastquorum.kernels.stages import BOUNDS_US
from fastquorum.load.hdr import value_at
from fastquorum.spark.pipelines.latency.merging import PERCENTILES, WHAT, Counts, Sparse, figures, grouped, run_count
from fastquorum.spark.pipelines.latency.reading import GROUPS, HDR
from fastquorum.spark.pipelines.latency.significance import ALPHA, Values, bootstrap_ratio, rank_p, smallest_p
from fastquorum.spark.stored import arrow

THRESHOLD: Final = 1.05
COMPARED: Final = pa.schema(
    [
        *arrow.fields(pa.string(), *GROUPS, *WHAT),
        pa.field("percentile", pa.string(), nullable=False),
        *(pa.field(f"{name}_{side}", pa.int64()) for name in ("runs", "count") for side in ("before", "after")),
        *arrow.fields(pa.float64(), "before_us", "after_us", "ratio", "low", "high", "p"),
        pa.field("verdict", pa.string(), nullable=False),
    ]
)
"""`before_us`, `after_us`: of all runs of a side, merged. `low`, `high`: of the ratio, by bootstrap over runs. `p`: of
the rank test over the runs' own percentiles."""
_COMPARED_COLUMNS: Final = ("p50_us", "p99_us", "p999_us")


class LatencyVerdict(StrEnum):
    """Verdicts on two sets of runs."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "no difference shown"
    """Either there is none, or too little of one to tell it from chance."""
    FEW = "too few runs"
    """However far apart they were, chance could have done it: p cannot come below ALPHA."""
    ONE_SIDE = "on one side only"
    NO_HISTOGRAM = "without histograms"
    """Percentiles only, as of stages in older results: they cannot be merged."""


def compared(before: pa.Table, after: pa.Table, by: Sequence[str], threshold: float = THRESHOLD) -> pa.Table:
    """Compare rows (ROWS) by these columns of GROUPS; return COMPARED. A ratio within `threshold` of 1, either way, is
    not a difference, however sure."""
    sides = [dict(grouped(side, (*by, *WHAT))) for side in (before, after)]
    keys = sorted({*sides[0], *sides[1]}, key=lambda key: [(each is not None, each or "") for each in key])
    rows: list[dict[str, Any]] = []
    for key in keys:
        parts = [side.get(key) for side in sides]
        about = dict(zip((*by, *WHAT), key, strict=True))
        if any(part is None or part["buckets"].null_count for part in parts):
            missing = any(part is None for part in parts)
            rows.append(
                about
                | {
                    "percentile": "all",
                    "verdict": (LatencyVerdict.ONE_SIDE if missing else LatencyVerdict.NO_HISTOGRAM).value,
                }
            )
            continue
        rows += [about | row for row in _figures(about["layout"] or HDR, parts, threshold)]
    return pa.Table.from_pylist(rows, COMPARED)


def _figures(layout: str, parts: Sequence[pa.Table], threshold: float) -> list[dict[str, Any]]:
    whole = Sparse.of(pa.concat_tables(parts))
    runs = [run_count(part) for part in parts]
    first = parts[0].num_rows
    sides = [_by_run(parts[0], whole.counts[:first]), _by_run(parts[1], whole.counts[first:])]
    levels = _levels(layout, whole.buckets)
    # A run that acknowledged nothing says nothing of how long that took.
    filled = [side[side.sum(axis=1) > 0] for side in sides]
    if not all(len(side) for side in filled):
        return [{"percentile": "all", "verdict": LatencyVerdict.ONE_SIDE.value}]
    merged = [figures(layout, whole.buckets, side.sum(axis=0)) for side in filled]
    each_run = [[figures(layout, whole.buckets, run) for run in side] for side in filled]
    rows = []
    for name, share in PERCENTILES:
        if name not in _COMPARED_COLUMNS:
            continue
        ratio = merged[1][name] / max(merged[0][name], 1e-9)
        of_runs = [np.array([run[name] for run in side]) for side in each_run]
        p = rank_p(*of_runs)
        interval = bootstrap_ratio(filled[0], filled[1], levels, share) or (None, None)
        rows.append(
            {
                "percentile": name.removesuffix("_us"),
                **{f"runs_{side}": number for side, number in zip(("before", "after"), runs, strict=True)},
                **{f"count_{side}": int(c.sum()) for side, c in zip(("before", "after"), filled, strict=True)},
                "before_us": merged[0][name],
                "after_us": merged[1][name],
                "ratio": ratio,
                "low": interval[0],
                "high": interval[1],
                "p": p,
                "verdict": _verdict(ratio, p, [len(side) for side in filled], threshold).value,
            }
        )
    return rows


def _by_run(part: pa.Table, counts: Counts) -> Counts:
    """Rows of one run, as of its nodes, together: a run counts once."""
    runs = list(zip(part["file"].to_pylist(), part["run"].to_pylist(), strict=True))
    numbers = {run: number for number, run in enumerate(dict.fromkeys(runs))}
    whole = np.zeros((len(numbers), counts.shape[1]), np.int64)
    np.add.at(whole, [numbers[run] for run in runs], counts)
    return whole


def _verdict(ratio: float, p: float, runs: Sequence[int], threshold: float) -> LatencyVerdict:
    if smallest_p(*runs) > ALPHA:
        return LatencyVerdict.FEW
    if p > ALPHA or 1 / threshold < ratio < threshold:
        return LatencyVerdict.SAME
    return LatencyVerdict.SLOWER if ratio > 1 else LatencyVerdict.FASTER


def _levels(layout: str, buckets: Counts) -> Values:
    if layout == HDR:
        return value_at(buckets) / 1e3
    bounds: Values = np.minimum(np.array(BOUNDS_US)[buckets], 1e12)
    return bounds
