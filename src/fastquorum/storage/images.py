"""The image of a metadata log at an offset, from a directory that nobody runs: a snapshot, and what follows it."""

import itertools
from collections.abc import Iterable, Iterator

from fastquorum.controller.image import Image
from fastquorum.controller.image.batches import BatchFolder
from fastquorum.controller.image.fold import Fold, Place
from fastquorum.errors import CorruptionError, DirectoryError, OffsetOutOfRange, UsageError
from fastquorum.kernels import Kernels
from fastquorum.storage.log.checkpoint import CheckpointTimes, checkpoint_batches
from fastquorum.storage.offline import OfflineLog, StoredBatch, TornTail
from fastquorum.types import Offset, OffsetAndEpoch, VoterSet
from fastquorum.wire.records.metadata import encode_metadata_record


def fold_log(log: OfflineLog, kernels: Kernels, end_offset: Offset | None = None, *, after: Fold | None = None) -> Fold:
    """The log's records below end_offset (None: all there are), folded.

    It goes on with `after`, or begins with the latest good snapshot that ends at or below end_offset. A batch was
    appended as a whole, so that it counts as a whole or not at all: where end_offset is inside one, the fold's
    `next_offset` is where that begins. Where a transaction is open at the end, the image is as before it.

    Raises:
        OffsetOutOfRange: the log does not reach so far, or no longer holds what precedes it.
        ImageFailed: a record does not fit, or is no metadata record.
        CorruptionError: bytes below end_offset are damaged.
        DirectoryError: it holds no metadata.
    """
    if log.holds_user_records:
        raise DirectoryError("it holds user records: only a metadata log has an image", path=log.path)
    fold = _start(log, kernels, end_offset) if after is None else after
    if not _add_all(fold, kernels, log.batches(fold.next_offset), end_offset):
        assert end_offset is not None, "all there is was asked for"
        bases = log.segment_bases
        raise OffsetOutOfRange(
            offset=end_offset, start_offset=bases[0] if bases else fold.next_offset, end_offset=fold.next_offset
        )
    return fold


def fold_as_recovered(
    log: OfflineLog, kernels: Kernels, end_offset: Offset | None = None, *, after: Fold | None = None
) -> tuple[Fold, TornTail | None]:
    """Fold the log like `fold_log`, but leave out a torn tail that is in the way, as the next start would.

    Errors as there: what is damaged before the log's end stays a CorruptionError, and what is beyond it an
    OffsetOutOfRange.
    """
    try:
        return fold_log(log, kernels, end_offset, after=after), None
    except CorruptionError:
        tail = log.torn_tail()
        if tail is None:
            raise
    if end_offset is not None and end_offset > tail.end_offset:
        raise OffsetOutOfRange(offset=end_offset, start_offset=log.segment_bases[0], end_offset=tail.end_offset)
    return fold_log(log, kernels, tail.end_offset if end_offset is None else end_offset, after=after), tail


def fold_first_segment(batches: Iterator[StoredBatch], kernels: Kernels, end_offset: Offset | None = None) -> Fold:
    """The records of a log's first segment below end_offset (None: all there are), folded.

    Raises:
        OffsetOutOfRange: it is not the first one, or does not reach so far.
        ImageFailed, CorruptionError: as `fold_log`.
    """
    fold = Fold(make=kernels.untracked)
    first = next(batches, None)
    if first is not None and first.info.base_offset > 0:
        base = first.info.base_offset
        text = f"the file begins at offset {base}: name the log's directory, which has what precedes it"
        raise OffsetOutOfRange(text, offset=base, start_offset=base)
    if not _add_all(fold, kernels, itertools.chain([] if first is None else [first], batches), end_offset):
        raise OffsetOutOfRange(offset=end_offset or 0, start_offset=0, end_offset=fold.next_offset)
    return fold


def fold_snapshot(log: OfflineLog, kernels: Kernels, snapshot: OffsetAndEpoch) -> Fold:
    """What a snapshot holds. ImageFailed, CorruptionError."""
    held, folder = Fold(make=kernels.untracked), BatchFolder(kernels)
    for batch in log.checkpoint_batches(snapshot):
        if not batch.info.is_control:
            folder.take(batch.data, held)
    state = log.checkpoint_state(snapshot)
    place = Place(snapshot.offset, snapshot.epoch, state.last_contained_ms)
    return Fold(held.image, place, make=kernels.untracked)


def _start(log: OfflineLog, kernels: Kernels, end_offset: Offset | None) -> Fold:
    bases = log.segment_bases
    start_offset = bases[0] if bases else 0
    for snapshot in sorted(log.checkpoints, reverse=True):
        is_left_behind = snapshot.offset < start_offset  # what lies between it and the log is gone
        if is_left_behind or (end_offset is not None and snapshot.offset > end_offset):
            continue
        try:
            return fold_snapshot(log, kernels, snapshot)
        except CorruptionError:
            if snapshot.offset == start_offset:
                raise  # what precedes the log is nowhere else
    if start_offset > 0:
        wanted = start_offset if end_offset is None else end_offset
        raise OffsetOutOfRange(
            f"there is no snapshot at or below offset {wanted}, and the log begins at {start_offset}",
            offset=wanted,
            start_offset=start_offset,
        )
    return Fold(make=kernels.untracked)


def _add_all(fold: Fold, kernels: Kernels, batches: Iterable[StoredBatch], end_offset: Offset | None) -> bool:
    """False: there are no more, and end_offset was not reached."""
    folder = BatchFolder(kernels)
    if end_offset is not None and fold.next_offset >= end_offset:
        return True
    for batch in batches:
        if end_offset is not None and batch.info.last_offset >= end_offset:
            return True
        folder.take(batch.data, fold)
        if end_offset is not None and fold.next_offset >= end_offset:
            return True  # without a look at what is behind, which may be damaged
    return end_offset is None


def two_images(log: OfflineLog, kernels: Kernels, start: Offset, end: Offset | None) -> tuple[Image, Image]:
    """The images at two offsets, which share what did not change. Errors as `fold_on`."""
    before, fold = fold_on(log, kernels, start, end)
    return before, fold.image


def fold_on(log: OfflineLog, kernels: Kernels, start: Offset, end: Offset | None) -> tuple[Image, Fold]:
    """The image at one offset, and the fold at another. Errors as `fold_log`; UsageError if they are in the wrong
    order."""
    check_order(start, end)
    fold = fold_log(log, kernels, start)
    before = fold.image
    return before, fold_log(log, kernels, end, after=going_on(log, fold))


def going_on(log: OfflineLog, fold: Fold) -> Fold | None:
    """The same, if the log has what comes next. None: a later image is made of a later snapshot alone."""
    bases = log.segment_bases
    return fold if bases and bases[0] <= fold.next_offset else None


def check_order(start: Offset, end: Offset | None) -> None:
    """UsageError if they are in the wrong order."""
    if end is not None and end < start:
        raise UsageError(f"offset {end} is below {start}", "give the earlier one first")


def snapshot_batches(
    kernels: Kernels, image: Image, place: Place, times: CheckpointTimes, kraft_version: int, voters: VoterSet | None
) -> Iterator[bytes]:
    """The batches of a snapshot of an image, made as they are taken: the image is immutable, and may be written at
    leisure. ImageFailed if its metadata.version cannot say what it holds."""
    return checkpoint_batches(
        kernels,
        times._replace(last_contained_ms=place.timestamp_ms),
        epoch=place.epoch,
        kraft_version=kraft_version,
        voters=voters if kraft_version else None,
        values=(encode_metadata_record(record, version) for record, version in image.records()),
    )
