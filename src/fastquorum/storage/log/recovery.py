"""What a log directory holds after a crash, and making it whole again. Architecture decision 4.

Two halves. `inspect` only reads: it checks every byte and either says what must be done or raises, with nothing
changed. `recover` then does it, in an order in which a crash at any point leaves a directory that the next recovery
brings to the same log. Every byte is read once: what others need of the batches is put aside on the way.

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

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from fastquorum.closing import end_all
from fastquorum.errors import CorruptionError, DirectoryError, StorageFailed
from fastquorum.kernels import BatchFault, Buffer, EpochCache, Fault, Kernels, Scan
from fastquorum.kernels.producers import Producers
from fastquorum.storage import names
from fastquorum.storage.log.epochs import format_epochs, last_start, write_epochs
from fastquorum.storage.log.mark import ANEW, LogPosition, Mark, epochs_checksum, read_mark, was_marked, write_mark
from fastquorum.storage.log.scanning import WINDOW_BYTES, find_batch, nonzero_end, scan_segment
from fastquorum.storage.log.segment import Segment, create_segment, remove_index
from fastquorum.storage.log.snapshots import FoundSnapshots, find_snapshots, log_end, remove_below, supersedes
from fastquorum.storage.ports import Disk
from fastquorum.storage.replacing import NOWHERE_ELSE, REPLACE
from fastquorum.types import Epoch, Offset, OffsetAndEpoch

_BACK: Final = f"put it back from a copy, or, {REPLACE}; {NOWHERE_ELSE}"


@dataclass(slots=True)
class FoundSegment:
    """A segment that is kept; its file is open for reading only, as yet."""

    segment: Segment
    dirty_end: int = 0
    """Where the last byte that is not zero ends; beyond `segment.size_bytes` if the tail is torn."""


@dataclass(slots=True)
class SeenBatches:
    """What the good batches hold that others than the log ask for after a recovery."""

    producers: Producers
    """Of all batches."""
    control: list[bytes] = field(default_factory=list)
    """The control batches, whole, in order."""

    def take(self, kernels: Kernels, batches: Buffer, scan: Scan) -> None:
        """Batches that were checked, and continue those before."""
        self.producers.read(batches, scan.first_offset, scan.next_offset)
        if scan.control_count:
            for info in kernels.batch_headers(batches, verify_crc=False):
                if info.is_control:
                    self.control.append(bytes(batches[info.position : info.position + info.size_bytes]))


@dataclass(slots=True)
class Inspection:
    """What `inspect` found: the log as it will be, and what has to go."""

    mark: Mark | None
    snapshots: FoundSnapshots
    seen: SeenBatches
    begins_at: OffsetAndEpoch | None = None
    """The snapshot that takes the place of all segments: an install that was interrupted."""
    kept: list[FoundSegment] = field(default_factory=list)
    cut: list[Offset] = field(default_factory=list)
    """Segments behind the torn tail, ascending."""
    left: list[Offset] = field(default_factory=list)
    """Segments below the log's start, ascending: their removal was interrupted."""
    epoch_starts: list[tuple[Epoch, Offset]] = field(default_factory=list)
    end_offset: Offset = 0
    last_epoch: Epoch = 0
    torn: Fault | None = None
    """Why the log ends where it does, if not cleanly."""

    @property
    def written_end(self) -> LogPosition:
        last = self.kept[-1].segment
        return LogPosition(self.end_offset, last.base_offset, last.size_bytes)

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log will end, and the epoch of its last record."""
        last_epoch = self.last_epoch if self.epoch_starts else None
        return self.begins_at or log_end(self.snapshots.latest, self.end_offset, last_epoch)

    def close(self) -> None:
        end_all(found.segment.file.close for found in self.kept)


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


# --- looking ----------------------------------------------------------------------------------------------------------


def inspect(disk: Disk, kernels: Kernels, directory: str, *, is_marked: bool = True) -> Inspection:
    """Check the whole log; changes nothing. CorruptionError, DirectoryError. The kept segments' files are open.
    `is_marked`: False where a mark is of an earlier time, if there is one, as Apache Kafka has written since."""
    where = f"{disk.root}/{directory}"
    check_there(disk, directory)
    listing = disk.list(directory)
    for name in listing:
        check_replaceable(disk, directory, name)
    bases = [base for name in listing if (base := names.parse_segment(name)) is not None]
    mark = read_mark(disk, kernels, directory) if is_marked else None
    left = [base for base in bases if mark is not None and base < mark.start_offset]
    del bases[: len(left)]
    seen = SeenBatches(kernels.Producers(bases[0] if bases else 0))
    inspection = Inspection(mark, find_snapshots(disk, kernels, directory), seen, left=left)
    if mark is not None and mark.is_anew:
        inspection.begins_at = _covering_snapshot(where, inspection.snapshots, mark.at.offset)
        return inspection
    check_bounds(where, listing, bases, mark, has_voted=disk.exists(names.QUORUM_STATE))
    if bases and bases[0] > 0:
        _covering_snapshot(where, inspection.snapshots, bases[0])
    inspection.end_offset = bases[0] if bases else 0
    try:
        for at, base in enumerate(bases):
            name = names.join(directory, names.segment_name(base))
            fault = None
            if base != inspection.end_offset:
                fault, later = Fault(BatchFault.OFFSET, 0, base, -1, -1), bases[at:]
            else:
                _look_into(kernels, inspection, Segment(kernels, base, disk.open(name, "read")))
                fault, later = inspection.torn, bases[at + 1 :]
            if fault is not None:
                _cut(disk, kernels, directory, inspection, fault, later)
                break
        if mark is None:
            is_empty = inspection.end_offset == (bases[0] if bases else 0)
            check_unmarked(disk, directory, where, listing, inspection.end_offset, is_empty=is_empty)
        _compare_with_snapshot(where, inspection)
    except BaseException:
        inspection.close()
        raise
    return inspection


def check_there(disk: Disk, directory: str) -> None:
    """DirectoryError if the log's directory is not there, which a format makes first of all."""
    if not disk.exists(directory):
        raise DirectoryError("the log directory is missing", _BACK, f"{disk.root}/{directory}")


def check_bounds(
    where: str, listing: Collection[str], bases: Collection[Offset], mark: Mark | None, *, has_voted: bool
) -> None:
    """The mark's segments must be there, and one at least. `bases`: those that the mark has not left behind. A log is
    made before a vote is kept: `has_voted` without one is a log that is gone. CorruptionError, DirectoryError."""
    if mark is not None:
        first = [mark.start_offset] if mark.start_offset else []  # an older version did not say where it begins
        for needed in [*first, mark.at.segment_base]:
            if needed not in bases:
                path = f"{where}/{names.segment_name(needed)}"
                raise CorruptionError("missing_segment", 0, needed, path=path, detail=_BACK)
    if not bases and (names.PARTITION_METADATA in listing or has_voted):
        raise DirectoryError(
            "the log directory was in use, but its segments are gone",
            f"put them back from a copy, or, {REPLACE}; {NOWHERE_ELSE}",
            where,
        )


def check_unmarked(
    disk: Disk, directory: str, where: str, listing: Collection[str], end_offset: Offset, *, is_empty: bool
) -> None:
    """DirectoryError for a log without a good mark, if it had one and has no batch, or something tells of a segment
    behind its end: an index, which is written when its segment is, or an epoch that began there. One that began at its
    end proves nothing: an epoch may be written down before its first record is synced; nor does one of Kafka's beside
    a log that has records."""
    had_mark = was_marked(disk.exists)
    if is_empty:
        check_emptied(where, had_mark=had_mark)
    begins = last_start(disk, directory)
    if begins > end_offset and (is_empty or had_mark):
        raise _lost_end(where, end_offset, f"{names.EPOCH_CHECKPOINT} has an epoch that began at offset {begins}")
    for name in listing:
        base = names.parse_index(name)
        if had_mark and base is not None and base >= end_offset and names.segment_name(base) not in listing:
            raise _lost_end(where, end_offset, f"{name} is of a segment that is missing")


def _lost_end(where: str, end_offset: Offset, told: str) -> DirectoryError:
    advice = f"put its segments back from a copy, or, {REPLACE}; {NOWHERE_ELSE}"
    return DirectoryError(f"the log ends at offset {end_offset}, and {told}", advice, where)


def check_emptied(where: str, *, had_mark: bool) -> None:
    """DirectoryError for a log without a batch and without a good mark, if it had one."""
    if had_mark:
        raise DirectoryError(
            "the log holds no record, and the durable mark, which says how many it had, is missing or damaged",
            f"put both back from a copy, or, {REPLACE}; {NOWHERE_ELSE}",
            f"{where}/{names.DURABLE_MARK}",
        )


def check_replaceable(disk: Disk, directory: str, name: str) -> None:
    """What is rebuilt from the log, or removed, without being read is a file: something else in its place stops
    recovery before it has changed anything, not in the middle. Of other names nothing is asked. StorageFailed,
    DirectoryError."""
    is_rebuilt = name == names.EPOCH_CHECKPOINT or names.parse_index(name) is not None
    if is_rebuilt or name.endswith(names.STALE_SUFFIXES):
        disk.open(names.join(directory, name), "read").close()


def _covering_snapshot(where: str, snapshots: FoundSnapshots, start_offset: Offset) -> OffsetAndEpoch:
    covering = snapshots.covering(start_offset)
    if covering is None:
        raise DirectoryError(
            f"the log starts at offset {start_offset}, but no checkpoint covers what precedes it",
            "records are missing: put the earlier segments or a checkpoint back, or replace this replica",
            where,
        )
    return covering


def _compare_with_snapshot(where: str, inspection: Inspection) -> None:
    """Everything known to be synced was found good. Has a snapshot more to say than the log?"""
    latest = inspection.snapshots.latest
    start_offset = inspection.kept[0].segment.base_offset if inspection.kept else 0
    end_offset, last_epoch = inspection.end_offset, inspection.last_epoch
    if latest is not None and knows_more(
        where, latest, start_offset=start_offset, end_offset=end_offset, last_epoch=last_epoch
    ):
        inspection.begins_at = latest


def knows_more(
    where: str, latest: OffsetAndEpoch, *, start_offset: Offset, end_offset: Offset, last_epoch: Epoch
) -> bool:
    """Does the latest snapshot know more than a log beside it? DirectoryError: the two cannot be of one replica."""
    if supersedes(latest, start_offset=start_offset, end_offset=end_offset, last_epoch=last_epoch):
        return True
    if latest.offset > end_offset:
        raise DirectoryError(
            f"checkpoint {names.checkpoint_name(latest)} ends behind the log (offset {end_offset}), but is of an older "
            f"epoch than the log's last, {last_epoch}",
            "files of two replicas are mixed here: put back what belongs together, or replace this replica",
            where,
        )
    return False


def _look_into(kernels: Kernels, inspection: Inspection, segment: Segment) -> None:
    """Check one segment that continues the log, and add it. Sets `inspection.torn` if it does not end cleanly."""
    found = FoundSegment(segment)
    inspection.kept.append(found)
    file_bytes = segment.prepared_bytes = segment.file.size_bytes
    mark = inspection.mark
    if mark is not None and segment.base_offset == mark.at.segment_base:
        _scan_into(kernels, inspection, segment, min(mark.at.position, file_bytes))
        is_reached = inspection.end_offset == mark.at.offset and segment.size_bytes == mark.at.position
        if inspection.torn is not None or not is_reached:
            raise _corruption(inspection, segment)
        if epochs_checksum(kernels, inspection.epoch_starts, mark.at.offset) != mark.epochs_crc:
            raise CorruptionError(BatchFault.EPOCH, path=segment.file.path, detail=_BACK)
    _scan_into(kernels, inspection, segment, file_bytes)
    found.dirty_end = nonzero_end(segment.file, segment.size_bytes, file_bytes)
    if found.dirty_end == segment.size_bytes:
        inspection.torn = None  # nothing but prepared zeros
    elif mark is not None and segment.base_offset < mark.at.segment_base:
        raise _corruption(inspection, segment)


def _scan_into(kernels: Kernels, inspection: Inspection, segment: Segment, end: int) -> None:
    """Scan on from where the segment's good prefix ends so far."""
    scan = scan_segment(
        kernels,
        segment.file,
        segment.size_bytes,
        end,
        expected_offset=inspection.end_offset,
        epoch_min=inspection.last_epoch,
        index=segment.index,
        visit=partial(inspection.seen.take, kernels),
    )
    segment.size_bytes = scan.end_position
    segment.max_timestamp_ms = max(segment.max_timestamp_ms, scan.max_timestamp_ms)
    known = inspection.epoch_starts[-1][0] if inspection.epoch_starts else -1
    inspection.epoch_starts.extend(entry for entry in scan.epoch_starts if entry[0] != known)
    inspection.end_offset = scan.next_offset
    inspection.last_epoch = max(inspection.last_epoch, scan.last_epoch)
    inspection.torn = scan.fault


def _corruption(inspection: Inspection, segment: Segment) -> CorruptionError:
    fault = inspection.torn or Fault(BatchFault.TRUNCATED, segment.size_bytes, inspection.end_offset, -1, -1)
    return CorruptionError(*fault, path=segment.file.path, detail=_BACK)


def _cut(
    disk: Disk, kernels: Kernels, directory: str, inspection: Inspection, fault: Fault, later: list[Offset]
) -> None:
    """The log ends here: everything behind goes, if it may."""
    path, detail = inspection.kept[-1].segment.file.path, _BACK
    if inspection.torn is None:
        inspection.torn = fault
        path = f"{disk.root}/{directory}/{names.segment_name(later[0])}"
        detail = f"the segment before it is missing, from offset {inspection.end_offset} on: {_BACK}"
    mark, last = inspection.mark, inspection.kept[-1]
    if mark is not None:
        is_refused = bool(later) and later[0] <= mark.at.segment_base
    else:
        is_refused = find_batch(kernels, last.segment.file, last.segment.size_bytes, last.dirty_end) is not None
    # A segment is synced before the next one is written: what was lost before a batch of that is no torn tail.
    if is_refused or has_batch(disk, kernels, directory, later):
        raise CorruptionError(*fault, path=path, detail=detail)
    inspection.cut = later


def has_batch(disk: Disk, kernels: Kernels, directory: str, bases: Iterable[Offset]) -> bool:
    """Is there a good batch anywhere in these segments?"""
    for base in bases:
        file = disk.open(names.join(directory, names.segment_name(base)), "read")
        try:
            if find_batch(kernels, file, 0, file.size_bytes) is not None:
                return True
        finally:
            file.close()
    return False


# --- mending ----------------------------------------------------------------------------------------------------------


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
