"""`latency`: percentiles of commits and their stages over many runs, merged exactly; and what became slower.

From results of `fastquorum load`, HdrHistogram logs and traces. Histograms of one layout are added, count by count, so
that a percentile of many runs is what one histogram of them all would have said: never an average of percentiles.
Needs pyarrow and numpy, and no JVM.
"""

from fastquorum.spark.pipelines.latency.comparing import COMPARED, THRESHOLD, compared
from fastquorum.spark.pipelines.latency.files import files_at, find_files
from fastquorum.spark.pipelines.latency.merging import MERGED, merged
from fastquorum.spark.pipelines.latency.reading import GROUPS, ROWS, rows_of, without_doubles
from fastquorum.spark.pipelines.latency.report import as_report, left_out

__all__ = [
    "COMPARED",
    "GROUPS",
    "MERGED",
    "ROWS",
    "THRESHOLD",
    "as_report",
    "compared",
    "files_at",
    "find_files",
    "left_out",
    "merged",
    "rows_of",
    "without_doubles",
]
