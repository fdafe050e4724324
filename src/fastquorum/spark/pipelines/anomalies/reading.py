"""The signals of a path, read in one process: what `jobs.anomalies` has Spark do, for a few logs."""

import pyarrow as pa

from fastquorum.spark.pipelines.anomalies import signals
from fastquorum.spark.scan import read_table


def read(path: str) -> pa.Table:
    """Of all logs at `path`, of `signals.SCHEMA`. Errors as of `scan.read_table`."""
    return signals.signals_of(
        _read(path, "records", signals.COLUMNS),
        _read(path, "base", signals.BASE_COLUMNS, types=",".join(signals.BASE_TYPES)),
        _read(path, "checkpoints", signals.CHECKPOINT_COLUMNS),
    )


def _read(path: str, table: str, columns: tuple[str, ...], **options: str) -> pa.Table:
    return read_table(path, table, columns=",".join(columns), mode="quarantine", fromOffset="earliest", **options)
