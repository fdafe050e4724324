"""What a log directory holds after a crash, and making it whole again. Architecture decision 4.

Two halves. `inspect` (`storage.log.inspection`) only reads: it checks every byte and either says what must be done or
raises, with nothing changed. `recover` then does it, in an order in which a crash at any point leaves a directory that
the next recovery brings to the same log. Every byte is read once: what others need of the batches is put aside on the
way.

The durable mark decides what a bad batch means. Below it: CorruptionError, for those bytes had been synced; another
replica may count on them, so they are never truncated away here. At or above it: the torn tail of an interrupted
write, truncated whatever follows in its segment. Where a later segment has a batch it is none: each is synced before
the next one is written, and the mark is an older one that was put back.

Without a mark (Apache Kafka made the directory, or the file was lost or damaged) nothing is known to be synced and
nothing to be unsynced. A bad batch is taken for a torn tail only if no good batch lies anywhere behind it, else for
corruption. A log of ours without a batch and without its mark is refused: it had one, and nothing else says how many
records are lost; so is one that ends below where an epoch began that is written down.

What is kept above the mark is written again and synced before it counts as flushed: after a failed sync the page
cache may show bytes that the disk does not have.

A finished snapshot may know more than the log: it was fetched, but the log had not begun anew yet, or not wholly. That
is then completed, but never on the word of a damaged snapshot, nor in place of looking at the log: only a mark that
says so (`mark.ANEW`) declares segments void, and it is written before the first of them is removed. A log that begins
above 0 needs a good snapshot that covers what precedes it; one that begins at 0 needs none, and damaged ones are left
aside.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fastquorum.errors import StorageFailed
from fastquorum.kernels import EpochCache, Fault, Kernels
from fastquorum.storage import names
from fastquorum.storage.log.epochs import format_epochs, write_epochs
from fastquorum.storage.log.inspection import FoundSegment, Inspection, SeenBatches, inspect
from fastquorum.storage.log.mark import ANEW, LogPosition, Mark, write_mark
from fastquorum.storage.log.scanning import WINDOW_BYTES
from fastquorum.storage.log.segment import Segment, create_segment, remove_index
from fastquorum.storage.log.snapshots import FoundSnapshots, remove_below
from fastquorum.storage.ports import Disk
from fastquorum.types import Offset, OffsetAndEpoch


@dataclass(slots=True)
class Recovered:
    """A log ready to be written: every byte of it is synced, and the mark says so."""

    segments: list[Segment]
    end_offset: Offset
    epochs: EpochCache
    epochs_saved: bool
    """Kafka's file of them says the same."""
    mark: Mark
    torn: Fault | None
    snapshots: FoundSnapshots
    seen: SeenBatches


def accept_any(end: OffsetAndEpoch) -> None:
    """Whatever the log is."""


def recover(
    disk: Disk,
    kernels: Kernels,
    directory: str,
    *,
    prepare_bytes: int,
    accept: Callable[[OffsetAndEpoch], None] = accept_any,
    is_marked: bool = True,
) -> Recovered:
    """Bring a directory to a log that is wholly good, synced and ready to be written. `accept` is told where it will
    end, before anything is changed, and may raise; `is_marked` as for `inspect`.

    The new mark comes last but for the epochs: until it is there, the next recovery finds the same to do. Where the
    file system has no room for either the old ones stand.
    """
    inspection = inspect(disk, kernels, directory, is_marked=is_marked)
    try:
        accept(inspection.end)
        for found in inspection.kept:  # one that may only be read is told before anything is changed
            disk.open(names.join(directory, names.segment_name(found.segment.base_offset)), "open").close()
        disk.sync_directory(directory)  # names that a former process made, and died before it had synced them
    except BaseException:
        inspection.close()
        raise
    if inspection.begins_at is not None:
        _begin_anew(disk, kernels, directory, inspection, inspection.begins_at)
    _remove_leftovers(disk, directory, inspection)
    segments = [_mend(disk, directory, inspection.mark, found) for found in inspection.kept]
    for segment in segments[:-1]:
        if segment.prepared_bytes != segment.size_bytes:
            segment.trim()
    if not segments:
        segments.append(create_segment(disk, kernels, directory, inspection.end_offset, prepare_bytes))
        inspection.kept.append(FoundSegment(segments[0]))
    active = segments[-1]
    if active.prepared_bytes < active.size_bytes + prepare_bytes // 2:
        active.prepare(active.size_bytes + prepare_bytes)
        active.file.sync()
    mark = _renew_mark(disk, kernels, directory, inspection)
    epochs = kernels.EpochCache(inspection.epoch_starts)
    epochs_saved = _renew_epochs(disk, directory, epochs)
    snapshots = inspection.snapshots
    removed = remove_below(disk, directory, segments[0].base_offset, snapshots.usable)
    snapshots.usable = [each for each in snapshots.usable if each not in removed]
    end_offset, torn, seen = inspection.end_offset, inspection.torn, inspection.seen
    return Recovered(segments, end_offset, epochs, epochs_saved, mark, torn, snapshots, seen)


def discard_log(disk: Disk, kernels: Kernels, directory: str, begins_at: Offset) -> Mark:
    """Remove all segments in favour of a finished snapshot that ends at `begins_at`. To be followed by a new segment
    with that base and, when it is durable, by a mark that says so.

    The mark comes first: from there on the segments count for nothing, whichever of them a crash leaves. The sync of
    the new one's name makes the removals durable, too.
    """
    mark = write_mark(disk, kernels, directory, LogPosition(begins_at, begins_at, ANEW), [], committed=begins_at)
    for name in disk.list(directory):
        if names.parse_segment(name) is not None or names.parse_index(name) is not None:
            disk.remove(names.join(directory, name))
    return mark


def _begin_anew(
    disk: Disk, kernels: Kernels, directory: str, inspection: Inspection, begins_at: OffsetAndEpoch
) -> None:
    inspection.close()
    inspection.mark = discard_log(disk, kernels, directory, begins_at.offset)
    inspection.kept, inspection.cut, inspection.epoch_starts = [], [], []
    inspection.end_offset, inspection.torn = begins_at.offset, None
    inspection.seen = SeenBatches(kernels.Producers(begins_at.offset))


def _remove_leftovers(disk: Disk, directory: str, inspection: Inspection) -> None:
    """Remove segments left below the start (from the first, so that a crash leaves no gap), cut ones (from the last),
    each behind its index; stale index files; temporary files."""
    for base in [*inspection.left, *reversed(inspection.cut)]:
        remove_index(disk, directory, base)
        disk.remove(names.join(directory, names.segment_name(base)))
        disk.sync_directory(directory)
    closed = [found.segment.base_offset for found in inspection.kept[:-1]]
    stale = [
        name
        for name in disk.list(directory)
        if name.endswith(names.STALE_SUFFIXES)
        or (names.parse_index(name) is not None and names.parse_index(name) not in closed)
    ]
    for name in stale:
        disk.remove(names.join(directory, name))
    if stale:
        disk.sync_directory(directory)


def _mend(disk: Disk, directory: str, mark: Mark | None, found: FoundSegment) -> Segment:
    """Reopen for writing; zero what is torn, write again what is not known to be synced, sync."""
    segment = found.segment
    segment.file.close()
    segment.file = disk.open(names.join(directory, names.segment_name(segment.base_offset)), "open")
    position = _synced_bytes(segment, mark)
    is_changed = position < segment.size_bytes or found.dirty_end > segment.size_bytes
    while position < segment.size_bytes:
        window = segment.file.read(position, min(WINDOW_BYTES, segment.size_bytes - position))
        segment.file.write(position, window)
        position += len(window)
    if found.dirty_end > segment.size_bytes:
        segment.file.zero_fill(segment.size_bytes, found.dirty_end)
    if is_changed:
        segment.file.sync()
    return segment


def _synced_bytes(segment: Segment, mark: Mark | None) -> int:
    """How much of the segment lies below the mark."""
    if mark is None or segment.base_offset > mark.at.segment_base:
        return 0
    return mark.at.position if segment.base_offset == mark.at.segment_base else segment.size_bytes


def _renew_mark(disk: Disk, kernels: Kernels, directory: str, inspection: Inspection) -> Mark:
    """The mark that is on the disk then. An old one is a lower bound still."""
    mark, start_offset = inspection.mark, inspection.kept[0].segment.base_offset
    if mark is not None and (mark.at, mark.start_offset) == (inspection.written_end, start_offset):
        return mark
    committed = 0 if mark is None else mark.committed
    end, epochs = inspection.written_end, inspection.epoch_starts
    try:
        return write_mark(disk, kernels, directory, end, epochs, start_offset, committed)
    except StorageFailed as failed:
        if mark is None or mark.is_anew or not failed.lacks_room:
            raise
        return mark


def _renew_epochs(disk: Disk, directory: str, epochs: EpochCache) -> bool:
    """False: Kafka's file of them says something else, and has to be written when there is room."""
    name = names.join(directory, names.EPOCH_CHECKPOINT)
    entries = epochs.entries()
    try:
        if not disk.exists(name) or disk.read_file(name) != format_epochs(entries):
            write_epochs(disk, directory, entries)
    except StorageFailed as failed:
        if not failed.lacks_room:
            raise
        return False
    return True
