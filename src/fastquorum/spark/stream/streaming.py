"""`spark.readStream.format("fastquorum")`: logs followed up to what is committed, as a stream reader of PySpark.

Exactly once, with a sink that is: a micro-batch is a range of offsets, which Spark's checkpoint holds before it is
read, and what is committed below an offset never changes, whoever leads. The reader has no state but connections.
Spark's API: `pyspark.sql.datasource`, `pyspark.sql.streaming.datasource`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from fastquorum.errors import RetriableError
from fastquorum.spark.scan import TableScan
from fastquorum.spark.stream.following import FollowedLogs, FollowedQuorum, Offsets, check_stream, initial, limited
from fastquorum.spark.stream.following_directories import FollowedDirectories

if TYPE_CHECKING:
    import pyarrow as pa

_PYTHONS: Final = ".python.PythonMicroBatchStream"
"""What Spark calls a source like this one. A query's other sources have offsets of their own kind."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read. Travels to executors without its connections."""

    def __init__(self, scan: TableScan) -> None:
        """Nothing is checked, connected or opened yet: of an error here PySpark would tell something else."""
        self._scan = scan
        self._open: FollowedLogs | None = None
        self._target: Offsets | None = None
        """Where a query ends that reads what is available now."""
        self._known: Offsets = {}
        """What was committed at the last look."""
        self._taken_in: frozenset[str] = frozenset()
        """The logs of the last micro-batch."""

    def __getstate__(self) -> dict[str, Any]:
        return {"_scan": self._scan, "_open": None, "_target": None, "_known": {}, "_taken_in": frozenset()}

    @property
    def _followed(self) -> FollowedLogs:
        """UsageError if this cannot be streamed."""
        if self._open is None:
            check_stream(self._scan)
            kind = FollowedQuorum if self._scan.options.bootstrap else FollowedDirectories
            self._open = kind(self._scan)
        return self._open

    # --- on the driver ------------------------------------------------------------------------------------------------

    def initialOffset(self) -> Offsets:
        return initial(self._followed, self._scan.options)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._scan.options.offsets_max
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, int] | None = None, limit: ReadLimit | None = None) -> Offsets:
        """Return how far the next micro-batch goes: up to what is committed, within the limit."""
        begin = self.initialOffset() if start is None else start
        end = self._known = self._followed.ends(begin)
        if self._target is not None:
            target = self._target
            end = {name: max(begin.get(name, 0), min(at, target[name])) for name, at in end.items() if name in target}
            end |= {name: at for name, at in begin.items() if name not in end}
        self._taken_in = frozenset(end)
        return limited(self._from(begin, end), end, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def _from(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, int]:
        """Return where each log is read from; a new one from where it begins."""
        if all(name in begin for name in end):
            return begin
        return {**self._followed.begins(), **begin}

    def reportLatestOffset(self) -> Offsets | None:
        """Return what is committed now, whatever the limits: a query's progress has it as `latestOffset`. None while it
        is not known. A log that has come since, and begins later than at 0, is left out before the micro-batch that
        takes it in: nothing could tell how much of it there is to read."""
        try:
            ends = self._followed.ends(self._known)
            begins = {} if self._taken_in.issuperset(ends) else self._followed.begins()
        except RetriableError:
            return None
        return {name: at for name, at in sorted(ends.items()) if name in self._taken_in or not begins.get(name, 0)}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._followed.ends({})

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self._taken_in = frozenset(end)
        return [InputPartition(task) for task in self._followed.tasks(start, end)]

    def stop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    # --- on an executor -----------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return self._followed.read(partition.value)


def lag(progress: Any) -> Offsets | None:
    """Return how many committed offsets a streaming query has not read yet, by log, as of its last micro-batch.

    Args:
        progress: a StreamingQuery, a StreamingQueryProgress (a listener's `event.progress`), or one as a dictionary.
    Returns:
        None: it has made no progress yet, or nobody could say what is committed. A log that has come since, and
        begins later than at 0, is counted from the next micro-batch on.
    """
    last = getattr(progress, "lastProgress", progress)
    if last is None:
        return None
    shown = cast("dict[str, Any]", last if isinstance(last, dict) else json.loads(last.json))
    found: Offsets = {}
    for source in shown["sources"]:
        if _PYTHONS not in source["description"]:
            continue
        latest, end = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        if latest is None or end is None:
            return None
        found |= {name: at - end.get(name, 0) for name, at in latest.items()}
    return found


def _offsets(value: Any) -> Offsets | None:
    """Return offsets as PySpark has them: JSON, or the value itself."""
    return cast("Offsets | None", json.loads(value) if isinstance(value, str) else value)
