"""Builders: a log over a fake disk, and batches whose bytes say where they belong."""

from collections.abc import Callable, Iterator, Sequence

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.storage.log.checkpoint import CheckpointTimes, encode_checkpoint
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name
from fastquorum.types import Offset, OffsetAndEpoch, VoterSet
from tests.lane.builders import crowded_batch

from .fake_disk import FakeDisk, FakeFlusher

SMALL = QuorumConfig(segment_bytes=600, preallocate_bytes=256)
"""Some six small batches a segment."""


def every_flip(disk: FakeDisk, step: Callable[[str], int] = lambda name: 1) -> Iterator[tuple[str, int, FakeDisk]]:
    """One bit of every byte of the directory flipped, or of every `step(name)`th: the file, the byte, the bad copy."""
    for name, data in disk.contents().items():
        for at in range(0, len(data), step(name)):
            bad = disk.copy()
            flipped = bytearray(data)
            flipped[at] ^= 1 << (at % 8)
            bad.write_file(name, bytes(flipped))
            yield name, at, bad


def checkpoint_path(snapshot: OffsetAndEpoch) -> str:
    return f"{LOG_DIRECTORY}/{checkpoint_name(snapshot)}"


def checkpoint(
    kernels: Kernels, snapshot: OffsetAndEpoch, *, values: Sequence[bytes] = (b"state",), voters: VoterSet | None = None
) -> bytes:
    """The file of a snapshot with this id."""
    times = CheckpointTimes(1, 2, 3, last_contained_ms=4)
    return encode_checkpoint(
        kernels, times, epoch=snapshot.epoch, kraft_version=int(voters is not None), voters=voters, values=values
    )


class Rig:
    """A log with what is below it."""

    def __init__(self, kernels: Kernels, disk: FakeDisk | None = None, config: QuorumConfig = SMALL) -> None:
        if disk is None:
            disk = FakeDisk()
            disk.make_directory(LOG_DIRECTORY)
        self.kernels = kernels
        self.config = config
        self.disk = disk
        self.flusher = FakeFlusher()
        self.log = Log.open(disk, kernels, config, self.flusher)

    def append(self, epoch: int, *values: bytes, timestamp_ms: int = 1_000) -> bytes:
        """One batch; its bytes."""
        base = self.log.end_offset
        batch = self.kernels.encode_values(values, base_offset=base, leader_epoch=epoch, timestamp_ms=timestamp_ms)
        self.log.append_batch(
            batch, base_offset=base, next_offset=base + len(values), epoch=epoch, timestamp_ms=timestamp_ms
        )
        return batch

    def append_crowded(self, epoch: int, count: int) -> None:
        """A batch that says it has so many records."""
        base = self.log.end_offset
        batch = crowded_batch(base, epoch, count)
        self.log.append_batch(batch, base_offset=base, next_offset=base + count, epoch=epoch, timestamp_ms=1_000)

    def bases(self) -> list[Offset]:
        """Where its segments begin."""
        return [segment.base_offset for segment in self.log._segments]

    def flush(self) -> None:
        """Sync all that is written."""
        self.log.request_flush()
        while self.flusher.pending:
            self.log.flush_done(self.flusher.run(), 0)

    def fetch(self, snapshot: OffsetAndEpoch, data: bytes, piece_bytes: int = 100) -> None:
        """Write a snapshot in pieces, as they come from a leader; it is not finished yet."""
        for position in range(0, max(len(data), 1), piece_bytes):
            self.log.snapshots.write_part(snapshot, position, data[position : position + piece_bytes])

    def install(self, snapshot: OffsetAndEpoch, data: bytes | None = None) -> None:
        """Fetch, finish, begin anew."""
        self.fetch(snapshot, checkpoint(self.kernels, snapshot) if data is None else data)
        self.log.snapshots.finish_part(snapshot)
        self.log.install_snapshot(snapshot)

    def reopen(self, disk: FakeDisk | None = None) -> "Rig":
        return Rig(self.kernels, disk or self.disk, self.config)

    def values(self) -> list[tuple[int, int, bytes]]:
        """(offset, epoch, value) of every record, read back."""
        return read_values(self.log, self.kernels)


def read_values(log: Log, kernels: Kernels) -> list[tuple[int, int, bytes]]:
    found: list[tuple[int, int, bytes]] = []
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, 200)
        for info in kernels.batch_headers(data):
            for record in kernels.decode_records(data, info.position):
                assert record.value is not None
                found.append((record.offset, info.leader_epoch, record.value))
        offset = found[-1][0] + 1
    return found
