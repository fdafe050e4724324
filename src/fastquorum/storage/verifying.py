"""Every byte of a log directory, checked: what is good, and what is not as a closed log should be.

Damage is a finding, never an error. Reading changes nothing and needs no lock.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, StorageFailed
from fastquorum.kernels import BATCH_HEADER_BYTES, BatchFault, Fault, Kernels
from fastquorum.storage import names
from fastquorum.storage.findings import Finding, Severity, error_text, raise_unless_odd
from fastquorum.storage.log.checkpoint import read_checkpoint
from fastquorum.storage.log.epochs import parse_epochs
from fastquorum.storage.log.index import decode_index
from fastquorum.storage.log.inspection import check_bounds, check_replaceable, check_unmarked, has_batch, knows_more
from fastquorum.storage.log.mark import LogPosition, Mark, epochs_checksum, read_mark, was_marked
from fastquorum.storage.log.scanning import SegmentScan, find_batch, last_offset_at, nonzero_end, scan_segment
from fastquorum.storage.log.snapshots import FoundSnapshots, is_gone, log_end, supersedes
from fastquorum.storage.ports import Disk
from fastquorum.types import Epoch, Offset, OffsetAndEpoch

_ANOTHERS: Final = (
    "it is another log's, or was put back without it; put back what belongs together, or replace this replica"
)
"""Why a mark is not this log's, and what to do."""


class CheckedSegment(NamedTuple):
    """What a segment's file holds: batches, then bytes that are none, then zeros."""

    size_bytes: int
    scan: SegmentScan
    """The scan of its batches."""
    dirty_end: int
    """From here on there are only zeros."""
    has_batch_behind: bool
    """Among the bytes that are none."""

    @property
    def torn_bytes(self) -> int:
        return self.dirty_end - self.scan.end_position

    @property
    def zero_bytes(self) -> int:
        return self.size_bytes - self.dirty_end


@dataclass(slots=True)
class Verification:
    """What was seen of a directory."""

    start_offset: Offset = 0
    end_offset: Offset = 0
    """The exclusive end of the good prefix."""
    segment_count: int = 0
    batch_count: int = 0
    record_count: int = 0
    checkpoint_count: int = 0
    epochs: list[tuple[Epoch, Offset]] = field(default_factory=list)
    mark: Mark | None = None
    is_closed: bool = True
    """Every segment ends with a batch: Kafka's tools read it."""
    findings: list[Finding] = field(default_factory=list)
    snapshot: OffsetAndEpoch | None = None
    """The latest good one."""
    segments: dict[Offset, CheckedSegment] = field(default_factory=dict)
    """By base offset, up to the first that is damaged or does not go on with the log."""

    @property
    def last_epoch(self) -> Epoch:
        """The last epoch of the good prefix; 0 if there is no record."""
        return self.epochs[-1][0] if self.epochs else 0

    @property
    def end(self) -> OffsetAndEpoch:
        """Where the log will end at the next start, and the epoch of its last record, as recovery has it."""
        latest, bounds = self.snapshot, {"start_offset": self.start_offset, "end_offset": self.end_offset}
        if latest is not None and supersedes(latest, **bounds, last_epoch=self.last_epoch):
            return latest
        return log_end(latest, self.end_offset, self.last_epoch if self.epochs else None)

    @property
    def is_sound(self) -> bool:
        """Nothing that had been synced is damaged, as far as the directory itself can tell."""
        return all(finding.severity is not Severity.CORRUPT for finding in self.findings)


def check_segment(disk: Disk, kernels: Kernels, name: str, base: Offset, epoch_min: Epoch = 0) -> CheckedSegment:
    """Every byte of a segment. StorageFailed if they cannot be read."""
    file = disk.open(name, "read")
    try:
        size = file.size_bytes
        scan = scan_segment(kernels, file, 0, size, expected_offset=base, epoch_min=epoch_min)
        dirty_end = nonzero_end(file, scan.end_position, size)
        is_torn = dirty_end > scan.end_position
        behind = is_torn and find_batch(kernels, file, scan.end_position, dirty_end) is not None
        return CheckedSegment(size, scan, dirty_end, behind)
    finally:
        file.close()


def verify_log(disk: Disk, kernels: Kernels, directory: str, path: str) -> Verification:
    """Check what can be checked; `path` names the directory in findings. StorageFailed if it cannot be read."""
    return _Verifier(disk, kernels, directory, path).run()


class _Verifier:
    """One run of `verify_log`."""

    def __init__(self, disk: Disk, kernels: Kernels, directory: str, path: str) -> None:
        self.disk = disk
        self.kernels = kernels
        self.directory = directory
        self.path = path
        self.result = Verification()
        self.positions: dict[Offset, int] = {}
        """Where each segment's good prefix ends."""
        self.good_snapshots = FoundSnapshots()
        self.listing: list[str] = []
        self.is_mark_readable = True
        """It is not of a newer version, and may be read; it may be damaged, or missing."""

    def run(self) -> Verification:
        listing = self.listing = self.disk.list(self.directory)
        self._read_mark()
        mark = self.result.mark
        if mark is not None and mark.is_anew:
            text = (
                f"the log was being replaced by the snapshot that ends at {mark.at.offset}; the next start completes it"
            )
            self._find(Severity.NOTE, names.DURABLE_MARK, text, -1, mark.at.offset)
            self.result.start_offset = self.result.end_offset = mark.at.offset
            self.result.is_closed = False
        else:
            bases = [base for name in listing if (base := names.parse_segment(name)) is not None]
            kept = self._without_left(bases)
            self._check_segments(kept)
            self._check_mark()
            self._check_bounds(listing, kept)
            self._check_epochs(listing)
        self._check_files(listing)
        self._compare_with_snapshots()
        return self.result

    def _without_left(self, bases: list[Offset]) -> list[Offset]:
        """Without those that the log has moved on from."""
        start_offset = 0 if self.result.mark is None else self.result.mark.start_offset
        for base in bases:
            if base < start_offset:
                text = f"the log begins at {start_offset} now; the next start removes it"
                self._find(Severity.NOTE, names.segment_name(base), text)
        return [base for base in bases if base >= start_offset]

    def _check_files(self, listing: list[str]) -> None:
        """All but the segments."""
        for name in listing:
            try:
                check_replaceable(self.disk, self.directory, name)
            except DirectoryError as error:
                self._find(Severity.CORRUPT, name, error_text(error))
                continue
            except StorageFailed as error:
                if not is_gone(error):
                    raise
                continue
            if name.endswith(names.STALE_SUFFIXES):
                self._find(Severity.NOTE, name, "left over from an interrupted write; the next start removes it")
            elif (snapshot := names.parse_checkpoint(name)) is not None:
                self._check_checkpoint(name, snapshot)
            elif name.endswith(".index") and names.parse_index(name) is not None:
                self._check_index(name)

    def _compare_with_snapshots(self) -> None:
        """Is what precedes the log covered, and does a snapshot know more than the log?"""
        result, latest = self.result, self.good_snapshots.latest
        result.snapshot = latest
        start_offset = result.start_offset
        if start_offset > 0 and (latest is None or latest.offset < start_offset):
            text = f"the log starts at {start_offset}, and no good checkpoint covers what precedes it"
            self._find(Severity.CORRUPT, names.segment_name(start_offset), text, -1, start_offset)
        elif latest is not None and latest.offset > start_offset:
            self._compare_with_latest(latest)

    def _compare_with_latest(self, latest: OffsetAndEpoch) -> None:
        result, name = self.result, names.checkpoint_name(latest)
        start_offset, end_offset, epoch = result.start_offset, result.end_offset, result.last_epoch
        try:
            if knows_more(self.path, latest, start_offset=start_offset, end_offset=end_offset, last_epoch=epoch):
                more = f"it knows more than the log, which ends at {end_offset}"
                text = f"{more}; the next start begins the log behind it"
                self._find(Severity.NOTE, name, text, -1, latest.offset)
        except DirectoryError as error:
            self._find(Severity.CORRUPT, name, f"{error.detail}: {error.hint}", -1, latest.offset)

    def _find(self, severity: Severity, name: str, text: str, position: int = -1, offset: Offset = -1) -> None:
        self.result.findings.append(Finding(severity, f"{self.path}/{name}", position, offset, text))

    def _read_mark(self) -> None:
        try:
            self.result.mark = read_mark(self.disk, self.kernels, self.directory)
        except DirectoryError as error:
            self._find(Severity.CORRUPT, names.DURABLE_MARK, error_text(error))
            self.is_mark_readable = False

    def _check_segments(self, bases: list[Offset]) -> None:
        result = self.result
        result.start_offset = result.end_offset = bases[0] if bases else 0
        epoch = 0
        for at, base in enumerate(bases):
            name = names.segment_name(base)
            if base != result.end_offset:
                severity = self._severity_at(base, 0, bases[at:], has_good_behind=False)
                self._find(severity, name, f"begins at {base}, the log before it ends at {result.end_offset}", 0, base)
                return
            try:
                checked = check_segment(self.disk, self.kernels, names.join(self.directory, name), base, epoch)
            except DirectoryError as error:
                raise_unless_odd(error)
                self._find(Severity.CORRUPT, name, error_text(error), 0, base)
                return
            result.segments[base] = checked
            scan = checked.scan
            self.positions[base] = scan.end_position
            result.segment_count += 1
            result.batch_count += scan.batch_count
            result.record_count += scan.record_count
            result.end_offset = scan.next_offset
            known = result.epochs[-1][0] if result.epochs else -1
            result.epochs += [entry for entry in scan.epoch_starts if entry[0] != known]
            epoch = max(epoch, scan.last_epoch)
            result.is_closed = result.is_closed and scan.fault is None
            if checked.torn_bytes:
                fault = scan.fault or Fault(BatchFault.TRUNCATED, scan.end_position, -1, -1, -1)
                later, has_good_behind = bases[at + 1 :], checked.has_batch_behind
                severity = self._severity_at(base, scan.end_position, later, has_good_behind=has_good_behind)
                self._find(severity, name, f"bad batch: {fault.reason}", fault.position, fault.offset)
                return
            if scan.fault is not None:
                text = f"{checked.zero_bytes} prepared zeros behind the last batch"
                self._find(Severity.NOTE, name, text, scan.end_position)

    def _severity_at(self, base: Offset, position: int, later: list[Offset], *, has_good_behind: bool) -> Severity:
        """Recovery's judgement of bad bytes there; `later`: the segments that would be cut off with them;
        `has_good_behind`: a batch lies behind them in their own segment."""
        mark = self.result.mark
        if mark is None:
            is_refused = has_good_behind
        else:
            is_refused = (base, position) < (mark.at.segment_base, mark.at.position)
        is_lost = is_refused or has_batch(self.disk, self.kernels, self.directory, later)
        return Severity.CORRUPT if is_lost else Severity.TORN

    def _check_mark(self) -> None:
        mark = self.result.mark
        if mark is None:
            return
        if self.positions.get(mark.at.segment_base, -1) < mark.at.position or self.result.end_offset < mark.at.offset:
            text = f"the log was synced up to offset {mark.at.offset}, but ends at {self.result.end_offset}"
            self._find(
                Severity.CORRUPT, names.segment_name(mark.at.segment_base), text, mark.at.position, mark.at.offset
            )
        elif not self._has_end_at(mark.at):
            text = f"no batch ends at offset {mark.at.offset}, up to which it says that the log was synced: {_ANOTHERS}"
            self._find(Severity.CORRUPT, names.DURABLE_MARK, text, -1, mark.at.offset)
        elif epochs_checksum(self.kernels, self.result.epochs, mark.at.offset) != mark.epochs_crc:
            self._find(Severity.CORRUPT, names.DURABLE_MARK, "the epochs of synced batches have changed")

    def _has_end_at(self, at: LogPosition) -> bool:
        """Whether a batch ends there, as recovery wants it."""
        file = self.disk.open(names.join(self.directory, names.segment_name(at.segment_base)), "read")
        try:
            scan = scan_segment(self.kernels, file, 0, at.position, expected_offset=at.segment_base, epoch_min=0)
        finally:
            file.close()
        return (scan.end_position, scan.next_offset) == (at.position, at.offset)

    def _check_bounds(self, listing: list[str], bases: list[Offset]) -> None:
        """Check the log's bounds as recovery does: a log that was in use does not vanish by itself."""
        result, is_empty = self.result, self.result.end_offset == self.result.start_offset
        try:
            had_mark, has_voted = was_marked(self.disk.exists), self.disk.exists(names.QUORUM_STATE)
            check_bounds(self.path, listing, bases, result.mark, has_voted=has_voted)
            if result.mark is None and self.is_mark_readable:
                check_unmarked(self.disk, self.directory, self.path, listing, result.end_offset, is_empty=is_empty)
                self._note_mark(listing, had_mark=had_mark)
        except DirectoryError as error:
            self.result.findings.append(Finding(Severity.CORRUPT, error.path, -1, -1, f"{error.detail}: {error.hint}"))
        except CorruptionError as error:
            if not any(each.path == error.path for each in self.result.findings):
                text = "it is missing, and the durable mark says that the log begins there"
                self.result.findings.append(Finding(Severity.CORRUPT, error.path, -1, error.offset, text))

    def _note_mark(self, listing: list[str], *, had_mark: bool) -> None:
        """A log with records does without."""
        if names.DURABLE_MARK in listing:
            self._find(Severity.NOTE, names.DURABLE_MARK, "damaged: it is ignored, and renewed at the next start")
        elif had_mark:
            self._find(Severity.NOTE, names.DURABLE_MARK, "missing; it is renewed at the next start")

    def _check_epochs(self, listing: list[str]) -> None:
        name = names.EPOCH_CHECKPOINT
        if name not in listing:
            self._find(Severity.NOTE, name, "missing; it is rebuilt from the log")
            return
        try:
            entries = parse_epochs(self.disk.read_file(names.join(self.directory, name)), f"{self.path}/{name}")
        except CorruptionError:
            self._find(Severity.NOTE, name, "damaged; it is rebuilt from the log")
            return
        except DirectoryError:
            return  # `_check_files` says what it is
        if entries != self.result.epochs:
            self._find(Severity.NOTE, name, f"has {entries}, the log has {self.result.epochs}; the log wins")

    def _check_checkpoint(self, name: str, snapshot: OffsetAndEpoch) -> None:
        self.result.checkpoint_count += 1
        try:
            read_checkpoint(self.disk, self.kernels, names.join(self.directory, name))
            self.good_snapshots.add(snapshot)
        except CorruptionError as error:
            self._find(Severity.CORRUPT, name, f"bad checkpoint: {error.reason}", error.position, error.offset)
        except FastQuorumError as error:
            if not is_gone(error):
                self._find(Severity.CORRUPT, name, f"bad checkpoint: {error}")

    def _is_behind_damage(self, base: Offset) -> bool:
        """A segment that was not checked, as one before it is damaged or missing."""
        is_later = bool(self.positions) and base > max(self.positions)
        return is_later and names.segment_name(base) in self.listing

    def _check_index(self, name: str) -> None:
        """Each entry must name a batch of the log: Kafka's entry is (its last offset, its position)."""
        base = names.parse_index(name)
        assert base is not None
        if base not in self.positions:
            if self._is_behind_damage(base):
                return
            self._find(Severity.NOTE, name, "belongs to no segment; the next start removes it")
            return
        try:
            entries = decode_index(self.disk.read_file(names.join(self.directory, name)), f"{self.path}/{name}")
        except CorruptionError as error:
            self._find(Severity.NOTE, name, "damaged; it is rebuilt from the log", error.position)
            return
        file = self.disk.open(names.join(self.directory, names.segment_name(base)), "read")
        try:
            for number, (relative_offset, position) in enumerate(entries):
                is_inside = position + BATCH_HEADER_BYTES <= self.positions[base]
                if not is_inside or last_offset_at(file, position) != base + relative_offset:
                    text = f"entry {number} names no batch; it is rebuilt from the log"
                    self._find(Severity.NOTE, name, text, number * 8, base + relative_offset)
                    return
        finally:
            file.close()
