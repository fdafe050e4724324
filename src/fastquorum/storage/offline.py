"""A log directory that nobody runs, ours or Apache Kafka's: its batches, whether it is sound, closing it after a crash.

Reading changes nothing and needs no lock; a directory in use may be read too, up to where its batches
end for the moment. Only `trim_log` writes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError
from fastquorum.kernels import BATCH_HEADER_BYTES, BatchFault, BatchInfo, Fault, Kernels
from fastquorum.storage import names
from fastquorum.storage.checkpoint import CheckpointState, read_checkpoint
from fastquorum.storage.epochs import parse_epochs, write_epochs
from fastquorum.storage.identity import LogKind
from fastquorum.storage.index import decode_index
from fastquorum.storage.mark import LogPosition, Mark, epochs_checksum, read_mark, write_mark
from fastquorum.storage.ports import Disk
from fastquorum.storage.properties import parse_properties
from fastquorum.storage.reading import whole_batches
from fastquorum.storage.recovery import Recovered, recover
from fastquorum.storage.scanning import find_batch, last_offset_at, nonzero_end, scan_segment
from fastquorum.storage.segment import write_index
from fastquorum.storage.snapshots import FoundSnapshots, supersedes
from fastquorum.types import Epoch, Offset, OffsetAndEpoch

_LOOK_BYTES: Final = 1 << 20
"""Of what is no good batch, to see whether somebody is still writing it."""


class StoredBatch(NamedTuple):
    """One batch as it lies in a file."""

    segment_base: Offset
    info: BatchInfo
    """`position` is the file's; the CRC was checked."""
    data: bytes


class Severity(StrEnum):
    """What a finding means for the directory."""

    NOTE = "note"
    """Harmless: a crash leaves it, or it is derived data that is rebuilt."""
    TORN = "torn"
    """The tail of an interrupted write; the next start cuts it off."""
    CORRUPT = "corrupt"
    """Bytes that were whole once are damaged or missing."""


class Finding(NamedTuple):
    """One thing that is not as a closed log should be."""

    severity: Severity
    path: str
    position: int
    """-1 where it is about the whole file."""
    offset: Offset
    """-1 if none is known."""
    text: str


@dataclass(slots=True)
class Verification:
    """What `OfflineLog.verify` saw."""

    start_offset: Offset = 0
    end_offset: Offset = 0
    """Of the good prefix."""
    segment_count: int = 0
    batch_count: int = 0
    record_count: int = 0
    checkpoint_count: int = 0
    epochs: list[tuple[Epoch, Offset]] = field(default_factory=list)
    mark: Mark | None = None
    is_closed: bool = True
    """Every segment ends with a batch: Kafka's tools read it."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def last_epoch(self) -> Epoch:
        """Of the good prefix; 0 if there is no record."""
        return self.epochs[-1][0] if self.epochs else 0

    @property
    def is_sound(self) -> bool:
        """Nothing that had been synced is damaged, as far as the directory itself can tell."""
        return all(finding.severity is not Severity.CORRUPT for finding in self.findings)


class OfflineLog:
    """A log directory, read-only."""

    def __init__(self, disk: Disk, kernels: Kernels, directory: str = names.LOG_DIRECTORY) -> None:
        """DirectoryError if there is no such directory."""
        self._disk = disk
        self._kernels = kernels
        self._directory = directory
        if not disk.exists(directory):
            raise DirectoryError("there is no log here", "expected a data directory or its log directory", self.path)

    @property
    def path(self) -> str:
        return f"{self._disk.root}/{self._directory}" if self._directory else self._disk.root

    @property
    def segment_bases(self) -> list[Offset]:
        bases = (names.parse_segment(name) for name in self._disk.list(self._directory))
        return [base for base in bases if base is not None]

    @property
    def holds_user_records(self) -> bool:
        """It was formatted for them. Of a log directory without its data directory, and of Kafka's, nothing says so."""
        if not self._disk.exists(names.OWN_PROPERTIES):
            return False
        kind = parse_properties(self._disk.read_file(names.OWN_PROPERTIES)).get("log.kind")
        return kind == LogKind.USER

    @property
    def checkpoints(self) -> list[OffsetAndEpoch]:
        """The finished snapshots, good or damaged, ascending; (0, 0), which holds no record, is none."""
        ids = (names.parse_checkpoint(name) for name in self._disk.list(self._directory))
        return sorted(each for each in ids if each is not None and each.offset > 0)

    def checkpoint_batches(self, snapshot: OffsetAndEpoch) -> Iterator[StoredBatch]:
        """Every batch of a snapshot. CorruptionError."""
        return segment_batches(self._disk, self._kernels, self._name(names.checkpoint_name(snapshot)))

    def checkpoint_state(self, snapshot: OffsetAndEpoch) -> CheckpointState:
        """What a snapshot says of itself. CorruptionError."""
        return read_checkpoint(self._disk, self._kernels, self._name(names.checkpoint_name(snapshot)))

    def batches(self, start_offset: Offset = 0) -> Iterator[StoredBatch]:
        """Every batch from the one that holds `start_offset` on, in order; a zero tail ends a segment.

        CorruptionError at the first bytes that are neither a good batch that continues the log nor zeros.
        """
        bases = self.segment_bases
        expected = -1
        for at, base in enumerate(bases):
            if at + 1 < len(bases) and bases[at + 1] <= start_offset:
                continue
            path = self._path(names.segment_name(base))
            if expected >= 0 and base != expected:
                raise CorruptionError(BatchFault.OFFSET, 0, base, path=path)
            expected = base
            for batch in segment_batches(self._disk, self._kernels, self._name(names.segment_name(base)), base):
                if batch.info.base_offset != expected:
                    raise CorruptionError(BatchFault.OFFSET, batch.info.position, batch.info.base_offset, path=path)
                expected = batch.info.last_offset + 1
                if batch.info.last_offset >= start_offset:
                    yield batch

    def verify(self) -> Verification:
        """Check every byte of the directory that can be checked. Damage is reported, not raised; StorageFailed is."""
        return _Verifier(self._disk, self._kernels, self._directory, self.path).run()

    def _name(self, name: str) -> str:
        return names.join(self._directory, name)

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"


def segment_batches(disk: Disk, kernels: Kernels, name: str, segment_base: Offset = 0) -> Iterator[StoredBatch]:
    """The batches of one segment or checkpoint file, up to its end or its zero tail. CorruptionError otherwise.

    A node may be writing where they end: what stands there is looked at until it no longer changes.
    """
    file = disk.open(name, "read")
    try:
        end, position = file.size_bytes, 0
        seen: tuple[int, bytes] | None = None
        while True:
            for info, data in whole_batches(kernels, file, end, position):
                if not info.crc_valid:
                    break
                yield StoredBatch(segment_base, info, data)
                position = info.position + info.size_bytes
            dirty_end = nonzero_end(file, position, end)
            if dirty_end == position:
                return
            left = dirty_end, file.read(position, _LOOK_BYTES)
            if left == seen:
                scan = scan_segment(kernels, file, position, end, expected_offset=-1, epoch_min=0)
                raise _corruption(scan.fault, scan.end_position, f"{disk.root}/{name}")
            seen = left
    finally:
        file.close()


def _corruption(fault: Fault | None, position: int, path: str) -> CorruptionError:
    fault = fault or Fault(BatchFault.TRUNCATED, position, -1, -1, -1)
    return CorruptionError(*fault._replace(position=position), path=path)


def trim_log(disk: Disk, kernels: Kernels, directory: str = names.LOG_DIRECTORY) -> Verification:
    """Close a log that a crash left open: cut torn and zero tails off, so that Kafka's tools read it; verify it.

    The caller holds the directory's lock. CorruptionError, with nothing changed, if synced bytes are damaged.
    """
    recovered = recover(disk, kernels, directory, prepare_bytes=0)
    for segment in recovered.segments:
        if segment.prepared_bytes != segment.size_bytes:
            segment.trim()
        segment.file.close()
        write_index(disk, directory, segment)
    _write_what_waited(disk, kernels, directory, recovered)
    return OfflineLog(disk, kernels, directory).verify()


def _write_what_waited(disk: Disk, kernels: Kernels, directory: str, recovered: Recovered) -> None:
    """Recovery does without room for mark and epochs; a closed directory does not. StorageFailed."""
    last, epochs = recovered.segments[-1], recovered.epochs.entries()
    end = LogPosition(recovered.end_offset, last.base_offset, last.size_bytes)
    if recovered.mark.at != end:
        write_mark(disk, kernels, directory, end, epochs, recovered.segments[0].base_offset)
    if not recovered.epochs_saved:
        write_epochs(disk, directory, epochs)


class _Verifier:
    """One run of `verify`."""

    def __init__(self, disk: Disk, kernels: Kernels, directory: str, path: str) -> None:
        self.disk = disk
        self.kernels = kernels
        self.directory = directory
        self.path = path
        self.result = Verification()
        self.positions: dict[Offset, int] = {}
        """Where each segment's good prefix ends."""
        self.good_snapshots = FoundSnapshots()

    def run(self) -> Verification:
        listing = self.disk.list(self.directory)
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
            self._check_segments(self._without_left(bases))
            self._check_mark()
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
            if name.endswith(names.STALE_SUFFIXES):
                self._find(Severity.NOTE, name, "left over from an interrupted write; the next start removes it")
            elif (snapshot := names.parse_checkpoint(name)) is not None:
                self._check_checkpoint(name, snapshot)
            elif name.endswith(".index") and names.parse_index(name) is not None:
                self._check_index(name)

    def _compare_with_snapshots(self) -> None:
        """Is what precedes the log covered, and does a snapshot know more than the log?"""
        result, latest = self.result, self.good_snapshots.latest
        start_offset, end_offset = result.start_offset, result.end_offset
        if start_offset > 0 and (latest is None or latest.offset < start_offset):
            text = f"the log starts at {start_offset}, and no good checkpoint covers what precedes it"
            self._find(Severity.CORRUPT, names.segment_name(start_offset), text, -1, start_offset)
        elif latest is not None and latest.offset > start_offset:
            epoch = result.last_epoch
            if supersedes(latest, start_offset=start_offset, end_offset=end_offset, last_epoch=epoch):
                text = (
                    f"it knows more than the log, which ends at {end_offset}; the next start begins the log behind it"
                )
                self._find(Severity.NOTE, names.checkpoint_name(latest), text, -1, latest.offset)

    def _find(self, severity: Severity, name: str, text: str, position: int = -1, offset: Offset = -1) -> None:
        self.result.findings.append(Finding(severity, f"{self.path}/{name}", position, offset, text))

    def _read_mark(self) -> None:
        try:
            self.result.mark = read_mark(self.disk, self.kernels, self.directory)
        except DirectoryError as error:
            self._find(Severity.CORRUPT, names.DURABLE_MARK, str(error))
            return
        if self.result.mark is None and self.disk.exists(names.join(self.directory, names.DURABLE_MARK)):
            self._find(Severity.NOTE, names.DURABLE_MARK, "damaged: it is ignored, and renewed at the next start")

    def _check_segments(self, bases: list[Offset]) -> None:
        result = self.result
        result.start_offset = result.end_offset = bases[0] if bases else 0
        epoch = 0
        for at, base in enumerate(bases):
            name = names.segment_name(base)
            if base != result.end_offset:
                severity = self._severity_at(base, 0, has_good_behind=True)
                self._find(severity, name, f"begins at {base}, the log before it ends at {result.end_offset}", 0, base)
                return
            file = self.disk.open(names.join(self.directory, name), "read")
            try:
                size = file.size_bytes
                scan = scan_segment(self.kernels, file, 0, size, expected_offset=result.end_offset, epoch_min=epoch)
                dirty_end = nonzero_end(file, scan.end_position, size)
                torn = dirty_end > scan.end_position
                behind = torn and find_batch(self.kernels, file, scan.end_position, dirty_end) is not None
            finally:
                file.close()
            self.positions[base] = scan.end_position
            result.segment_count += 1
            result.batch_count += scan.batch_count
            result.record_count += scan.record_count
            result.end_offset = scan.next_offset
            known = result.epochs[-1][0] if result.epochs else -1
            result.epochs += [entry for entry in scan.epoch_starts if entry[0] != known]
            epoch = max(epoch, scan.last_epoch)
            result.is_closed = result.is_closed and scan.fault is None
            if torn:
                fault = scan.fault or Fault(BatchFault.TRUNCATED, scan.end_position, -1, -1, -1)
                severity = self._severity_at(base, scan.end_position, behind or at + 1 < len(bases))
                self._find(severity, name, f"bad batch: {fault.reason}", fault.position, fault.offset)
                return
            if scan.fault is not None:
                text = f"{size - scan.end_position} prepared zeros behind the last batch"
                self._find(Severity.NOTE, name, text, scan.end_position)

    def _severity_at(self, base: Offset, position: int, has_good_behind: bool) -> Severity:
        """Recovery's judgement of bad bytes there."""
        mark = self.result.mark
        if mark is None:
            return Severity.CORRUPT if has_good_behind else Severity.TORN
        is_below = (base, position) < (mark.at.segment_base, mark.at.position)
        return Severity.CORRUPT if is_below else Severity.TORN

    def _check_mark(self) -> None:
        mark = self.result.mark
        if mark is None:
            return
        if self.positions.get(mark.at.segment_base, -1) < mark.at.position or self.result.end_offset < mark.at.offset:
            text = f"the log was synced up to offset {mark.at.offset}, but ends at {self.result.end_offset}"
            self._find(
                Severity.CORRUPT, names.segment_name(mark.at.segment_base), text, mark.at.position, mark.at.offset
            )
        elif epochs_checksum(self.kernels, self.result.epochs, mark.at.offset) != mark.epochs_crc:
            self._find(Severity.CORRUPT, names.DURABLE_MARK, "the epochs of synced batches have changed")

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
            self._find(Severity.CORRUPT, name, f"bad checkpoint: {error}")

    def _check_index(self, name: str) -> None:
        """Each entry must name a batch of the log: Kafka's entry is (its last offset, its position)."""
        base = names.parse_index(name)
        assert base is not None
        if base not in self.positions:
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
