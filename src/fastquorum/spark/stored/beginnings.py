"""Logs whose beginning is gone: told once for each, before any of its rows.

A log that begins later than at 0 begins with a snapshot, which holds what was before. Where there is none, what was
before is missing. Whether the snapshot is good, tables `base`, `snapshots` and `files` say. Source: KIP-630.
"""

from collections.abc import Iterable
from typing import Final

from fastquorum.kernels.rows import RowFilter
from fastquorum.spark.stored.logs import FoundLog, LogFault

OF_BEGINNINGS: Final = frozenset({"records", "control", "batches", "epochs"})
"""Tables that read on from wherever a log begins; the others tell by themselves what they lack."""
_HINT: Final = "bring the snapshot or the segments back; option fromOffset=earliest reads what there is"


def lost_beginnings(logs: Iterable[FoundLog], wanted: RowFilter, *, is_any: bool) -> list[LogFault]:
    """Return a fault for each log that lacks wanted offsets. `is_any`: each log is wanted from where it begins."""
    return [] if is_any else [each for each in (_lost(log, wanted) for log in logs) if each is not None]


def has_snapshot(log: FoundLog) -> bool:
    """Return whether a snapshot covers what precedes the log's first record, whatever is in it."""
    return any(each.id.offset >= log.begin_offset for each in log.checkpoints)


def _lost(log: FoundLog, wanted: RowFilter) -> LogFault | None:
    first = min(log.segments, default=None)
    if first is None or has_snapshot(log) or wanted.offset_min >= min(first.base_offset, wanted.offset_max):
        return None
    text = f"the log begins at offset {first.base_offset}, and no snapshot says what was before"
    what = f"what was before offset {first.base_offset}"
    return LogFault(log.directory, first.path, text, log, _HINT, what)
