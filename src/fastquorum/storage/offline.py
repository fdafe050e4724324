"""A log directory that nobody runs, ours or Apache Kafka's: its batches, whether it is sound, closing it after a crash.

Reading changes nothing and needs no lock; a directory in use may be read too, up to where its batches
end for the moment. Only `trim_log` writes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import BatchFault, BatchInfo, Fault, Kernels
from fastquorum.storage import names
from fastquorum.storage.findings import Severity, up_to_refusal
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.checkpoint import CheckpointState, read_checkpoint
from fastquorum.storage.log.epochs import write_epochs
from fastquorum.storage.log.mark import LogPosition, write_mark
from fastquorum.storage.log.reading import whole_batches
from fastquorum.storage.log.recovery import Recovered, accept_any, recover
from fastquorum.storage.log.scanning import nonzero_end, scan_segment
from fastquorum.storage.log.segment import write_index
from fastquorum.storage.ports import Disk
from fastquorum.storage.properties import parse_properties
from fastquorum.storage.verifying import Verification, verify_log
from fastquorum.storage.verifying_data import check_data_directory
from fastquorum.storage.verifying_state import check_quorum_state
from fastquorum.types import Offset, OffsetAndEpoch

_LOOK_BYTES: Final = 1 << 20
"""How much of a bad batch is read again, to see whether a process is still writing it."""


class StoredBatch(NamedTuple):
    """One batch as it lies in a file."""

    segment_base: Offset
    info: BatchInfo
    """`position` is the file's; the CRC was checked."""
    data: bytes


class TornTail(NamedTuple):
    """What an interrupted write left where the log ends: the next start cuts it off."""

    path: str
    position: int
    """In the file; bytes from here on count for nothing."""
    end_offset: Offset
    """The log's exclusive end without the tail."""

    def __str__(self) -> str:
        return (
            f"{self.path}: what an interrupted write left at byte {self.position} is left out, and the log ends at "
            f"offset {self.end_offset}; `fastquorum log trim`, or the node's next start, cuts it off"
        )


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
        """Check every byte of the log that can be checked. Damage is reported, not raised; StorageFailed is."""
        return verify_log(self._disk, self._kernels, self._directory, self.path)

    def verify_directory(self) -> Verification:
        """The same, and of what else the data directory has whether a node would start with it."""
        seen = self.verify()
        has_first_records = partial(self._has_first_records, seen.start_offset)
        of_data = check_data_directory(self._disk, self._kernels, self._directory, has_first_records)
        of_state = check_quorum_state(self._disk, self._kernels, self._directory, seen)
        for each in (*up_to_refusal(of_data), *up_to_refusal(of_state)):
            if each not in seen.findings:
                seen.findings.append(each)
        return seen

    def _has_first_records(self, start_offset: Offset) -> bool:
        """Will no leader look for those of `bootstrap.checkpoint` any more, as the log has some, or never has any?"""
        if start_offset > 0 or self.holds_user_records:
            return True
        try:
            return any(not batch.info.is_control for batch in self.batches())
        except CorruptionError:
            return False

    def torn_tail(self) -> TornTail | None:
        """Return the torn tail, judging each byte as recovery does; None: a clean end, or damage. StorageFailed."""
        seen = self.verify()
        for each in seen.findings:
            if each.severity is Severity.TORN and seen.is_sound:
                return TornTail(each.path, each.position, seen.end_offset)
        return None

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


def trim_log(
    disk: Disk,
    kernels: Kernels,
    directory: str = names.LOG_DIRECTORY,
    accept: Callable[[OffsetAndEpoch], None] = accept_any,
    *,
    is_marked: bool = True,
) -> Verification:
    """Close a log that a crash left open: cut torn and zero tails off, so that Kafka's tools read it; verify it.

    The caller holds the directory's lock. `accept` and `is_marked` as for `recover`. CorruptionError, with nothing
    changed, if synced bytes are damaged.
    """
    recovered = recover(disk, kernels, directory, prepare_bytes=0, accept=accept, is_marked=is_marked)
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
        start_offset, committed = recovered.segments[0].base_offset, recovered.mark.committed
        write_mark(disk, kernels, directory, end, epochs, start_offset, committed)
    if not recovered.epochs_saved:
        write_epochs(disk, directory, epochs)
