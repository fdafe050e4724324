"""Builders: a log over a fake disk, and batches whose bytes say where they belong."""

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.storage.log import Log
from fastquorum.storage.names import LOG_DIRECTORY

from .fake_disk import FakeDisk, FakeFlusher

SMALL = QuorumConfig(segment_bytes=600, preallocate_bytes=256)
"""Some six small batches a segment."""


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

    def flush(self) -> None:
        """Sync all that is written."""
        self.log.request_flush()
        while self.flusher.pending:
            self.log.flush_done(self.flusher.run(), 0)

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
