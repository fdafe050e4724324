"""A log folded: the image at an offset or a time, two of them for a diff, and what becomes of a log that does not fold.

A single directory does not say what of its end was committed, so the image of all there is may hold records that never
were: `asOfOffset` with the high watermark leaves them out, and `committedEnds` where every log has another.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import FastQuorumError, ImageFailed, OffsetOutOfRange, UsageError
from fastquorum.kernels import Kernels, load
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.store_disk import disk_of
from fastquorum.spark.tables import table as tables
from fastquorum.spark.tables.table import Task, owner_columns, refuse_others, whole_logs
from fastquorum.storage.identity import LogKind
from fastquorum.storage.images import fold_log, fold_on
from fastquorum.storage.offline import OfflineLog
from fastquorum.types import Offset

_TAKES: Final = frozenset({"asOfOffset", "asOfTimestamp", "diffFrom", "committedEnds"})
_Read = Callable[[FoundLog, ReadOptions, pa.Schema], Iterator[pa.RecordBatch]]


class Folded(NamedTuple):
    """What an image's tables are made of."""

    before: Image | None
    """At `diffFrom`, if a diff is asked for."""
    image: Image
    place: Place


def metadata_tasks(
    logs: Sequence[FoundLog], options: ReadOptions, *, table: str, has_topics: bool = True
) -> list[Task]:
    """Return tasks for the logs of metadata. UsageError if there is none, or an option has no meaning for the table."""
    refuse_others(table, options, _TAKES | {"topic"} if has_topics else _TAKES)
    return whole_logs(metadata_logs(logs, options, table), options.split_bytes)


def metadata_logs(logs: Sequence[FoundLog], options: ReadOptions, table: str) -> list[FoundLog]:
    """Return the logs of metadata. UsageError if there is none."""
    metadata = [log for log in logs if log.kind is LogKind.METADATA]
    if not metadata:
        place = logs[0].directory if logs else options.path
        raise UsageError(f"{place} holds user records", f"table {table!r} is made of metadata logs")
    return metadata


def offline(log: FoundLog) -> tuple[OfflineLog, Kernels]:
    kernels = load("native")
    disk, directory = disk_of(log)
    return OfflineLog(disk, kernels, directory), kernels


def folded(log: FoundLog, options: ReadOptions) -> Folded:
    """Fold a log as the options say. OffsetOutOfRange, ImageFailed, CorruptionError, DirectoryError, UsageError."""
    stored, kernels = offline(log)
    end = _committed(end_offset(stored, options), log, options)
    if options.diff_from is None:
        before, fold = None, fold_log(stored, kernels, end)
    else:
        before, fold = fold_on(stored, kernels, options.diff_from, end)
    _check_time(stored, fold, options)
    return Folded(before, fold.image, fold.place)


def end_offset(stored: OfflineLog, options: ReadOptions) -> Offset | None:
    """Return the lower end of `asOfOffset` and `asOfTimestamp`, exclusive; None: all records count."""
    ends = [options.as_of_offset]
    if options.as_of_timestamp_ms is not None:
        ends.append(_end_at(stored, options.as_of_timestamp_ms))
    return min((each for each in ends if each is not None), default=None)


def _committed(end: Offset | None, log: FoundLog, options: ReadOptions) -> Offset | None:
    """Return the lower of `end` and what is committed. OffsetOutOfRange: an offset beyond that is asked for."""
    committed = options.committed_ends.get(log.directory)
    if committed is None:
        return end
    for wanted in (options.as_of_offset, options.diff_from):
        if wanted is not None and wanted > committed:
            raise OffsetOutOfRange(
                f"offset {wanted} is not committed: what is ends at offset {committed}",
                offset=wanted,
                end_offset=committed,
            )
    return committed if end is None else min(end, committed)


def guarded_batches(
    logs: Sequence[FoundLog], options: ReadOptions, schema: pa.Schema, read: _Read
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of each log. Where one cannot be read any further, handle the error as the mode says: raise it,
    yield a row with it, or warn. Earlier batches stand."""
    for log in logs:
        try:
            yield from read(log, options, schema)
        except FastQuorumError as error:
            yield from error_batches(error, log, options, schema)


def error_batches(
    error: FastQuorumError, log: FoundLog, options: ReadOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Handle an error of one log as the mode says: raise it, yield a row with it, or warn."""
    for row in tables.error_rows(_named(error, log), options):
        yield arrow.batch_of(schema, [{**owner_columns(log), **row}])


def _end_at(stored: OfflineLog, timestamp_ms: int) -> Offset | None:
    """Return where the first batch that is later begins: what precedes it is a prefix, though clocks may differ."""
    for batch in stored.batches():
        if batch.info.max_timestamp_ms > timestamp_ms:
            return batch.info.base_offset
    return None


def _check_time(stored: OfflineLog, fold: Fold, options: ReadOptions) -> None:
    """A log that begins with a snapshot does not know what was before. OffsetOutOfRange."""
    wanted = options.as_of_timestamp_ms
    place = fold.place
    if wanted is None or place.timestamp_ms <= wanted or options.as_of_offset == place.end_offset:
        return
    bases = stored.segment_bases
    raise OffsetOutOfRange(
        f"it begins at offset {place.end_offset}, with a snapshot as of {place.timestamp_ms} ms: nothing is known of "
        f"{wanted} ms",
        offset=place.end_offset,
        start_offset=bases[0] if bases else place.end_offset,
    )


def _named(error: FastQuorumError, log: FoundLog) -> FastQuorumError:
    """With the log that it is about: the others name a path already."""
    if isinstance(error, OffsetOutOfRange):
        return dataclasses.replace(error, detail=f"{log.directory}: {error}")
    if isinstance(error, ImageFailed):
        return dataclasses.replace(error, detail=f"{error.detail} ({log.directory})")
    return error
