"""Looking at a log directory, whatever a crash has left of it: what is good, and what has to go. Changes nothing.

What a bad batch means, and a snapshot that knows more than the log, is said in `storage.log.recovery`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from fastquorum.closing import end_all
from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import BatchFault, Buffer, Fault, Kernels, Scan
from fastquorum.kernels.producers import Producers
from fastquorum.storage import names
from fastquorum.storage.log.epochs import last_start
from fastquorum.storage.log.mark import LogPosition, Mark, epochs_checksum, read_mark, was_marked
from fastquorum.storage.log.scanning import find_batch, nonzero_end, scan_segment
from fastquorum.storage.log.segment import Segment
from fastquorum.storage.log.snapshots import FoundSnapshots, find_snapshots, log_end, supersedes
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
    """The producers' states after all batches."""
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


def _lost_end(where: str, end_offset: Offset, reason: str) -> DirectoryError:
    advice = f"put its segments back from a copy, or, {REPLACE}; {NOWHERE_ELSE}"
    return DirectoryError(f"the log ends at offset {end_offset}, and {reason}", advice, where)


def check_emptied(where: str, *, had_mark: bool) -> None:
    """DirectoryError for a log without a batch and without a good mark, if it had one."""
    if had_mark:
        raise DirectoryError(
            "the log holds no record, and the durable mark, which says how many it had, is missing or damaged",
            f"put both back from a copy, or, {REPLACE}; {NOWHERE_ELSE}",
            f"{where}/{names.DURABLE_MARK}",
        )


def check_replaceable(disk: Disk, directory: str, name: str) -> None:
    """Raise unless `name`, if recovery rebuilds or removes it without reading it, is a file: anything else there must
    stop recovery before it has changed anything. Other names are not looked at. StorageFailed, DirectoryError."""
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
