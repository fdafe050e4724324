"""Histograms of many runs as one, and its percentiles."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.kernels.stages import BUCKETS, StageHistogram
from fastquorum.load.hdr import Histogram
from fastquorum.spark.pipelines.latency.reading import GROUPS, HDR
from fastquorum.spark.stored import arrow

PERCENTILES: Final = (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p999_us", 0.999))
WHAT: Final = ("what", "role", "layout")
"""Histograms that differ in one of these are never added."""
NO_BUCKETS: Final = "an older result, without the buckets of its stages: count and mean are exact, percentiles unknown"
MERGED: Final = pa.schema(
    [
        *arrow.fields(pa.string(), *GROUPS, *WHAT),
        *arrow.fields(pa.int64(), "runs", "count", nullable=False),
        *arrow.fields(pa.float64(), "mean_us", *dict(PERCENTILES), "max_us"),
        pa.field("note", pa.string()),
    ]
)
"""Groups that were not asked for are null. To three digits of hdr, within 2 % of stage histograms."""
Counts = npt.NDArray[np.int64]


class Sparse(NamedTuple):
    """Histograms of one layout, side by side."""

    buckets: Counts
    """Buckets that any of the histograms fills, ascending; shape (buckets,)."""
    counts: Counts
    """Shape (histograms, buckets)."""

    @classmethod
    def of(cls, rows: pa.Table) -> "Sparse":
        """Collect the histograms of rows with buckets."""
        lists = rows["buckets"].combine_chunks(), rows["counts"].combine_chunks()
        flat, counts = (np.asarray(_array(each).flatten(), np.int64) for each in lists)
        owners = np.repeat(np.arange(rows.num_rows), np.asarray(_array(lists[0]).value_lengths(), np.int64))
        buckets, places = np.unique(flat, return_inverse=True)
        table = np.zeros((rows.num_rows, len(buckets)), np.int64)
        np.add.at(table, (owners, places.reshape(-1)), counts)
        return cls(buckets, table)


def merged(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """Merge rows (ROWS) by these columns of GROUPS: one row (MERGED) for each group, without rows of errors."""
    groups = []
    for key, part in grouped(rows, (*by, *WHAT)):
        whole = part.filter(part["buckets"].is_valid())
        is_whole = whole.num_rows == part.num_rows
        row: dict[str, Any] = dict(zip((*by, *WHAT), key, strict=True))
        count = sum(part["count"].to_pylist())
        row |= {"runs": run_count(part), "count": count, "note": None if is_whole else NO_BUCKETS}
        row["mean_us"] = sum(part["sum_us"].to_pylist()) / count if count else None
        if is_whole and count:
            sparse = Sparse.of(whole)
            row |= figures(row["layout"], sparse.buckets, sparse.counts.sum(axis=0))
        groups.append(row)
    return pa.Table.from_pylist(groups, MERGED)


def figures(layout: str, buckets: Counts, counts: Counts) -> dict[str, float]:
    """Percentiles and maximum of one histogram, in microseconds."""
    if layout == HDR:
        histogram = Histogram()
        histogram.counts[buckets] = counts
        named = {name: histogram.at_percentile(share * 100) / 1e3 for name, share in PERCENTILES}
        return named | {"max_us": histogram.max / 1e3}
    dense = np.zeros(BUCKETS, np.int64)
    dense[buckets] = counts
    stage = StageHistogram(int(counts.sum()), 0.0, tuple(dense.tolist()))
    return {name: stage.quantile_us(share) for name, share in PERCENTILES} | {"max_us": stage.quantile_us(1.0)}


def grouped(rows: pa.Table, by: Sequence[str]) -> list[tuple[tuple[str | None, ...], pa.Table]]:
    """Return the rows of each group, ordered by key; without rows of errors, and of runs that another file has."""
    rows = rows.filter(pc.and_(rows["error"].is_null(), rows["double_of"].is_null()))
    keys = list(zip(*(rows[name].to_pylist() for name in by), strict=True))
    places: dict[tuple[str | None, ...], list[int]] = {}
    for at, key in enumerate(keys):
        places.setdefault(key, []).append(at)
    ordered = sorted(places.items(), key=lambda item: [(each is not None, each or "") for each in item[0]])
    return [(key, rows.take(pa.array(at, pa.int64()))) for key, at in ordered]


def run_count(rows: pa.Table) -> int:
    """A run is a file, or a step of one."""
    return len(set(zip(rows["file"].to_pylist(), rows["run"].to_pylist(), strict=True)))


def _array(column: Any) -> Any:
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
