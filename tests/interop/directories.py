"""Data directories for Kafka to judge: written through storage.Log, or left by a node."""

import gzip
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.storage.format import create_log
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import LOG_DIRECTORY

CLUSTER = Path(__file__).parents[1] / "golden" / "kafka-4.3.0" / "cluster"
SMALL = QuorumConfig(segment_bytes=100_000, preallocate_bytes=16 * 1024)


def golden_values(kernels: Kernels) -> Iterator[list[bytes]]:
    """The record values of Kafka's own metadata log, batch by batch, control batches left out."""
    data = (CLUSTER / "c1" / LOG_DIRECTORY / "00000000000000000000.log").read_bytes()
    for info in kernels.batch_headers(data):
        if not info.is_control:
            yield [value for value in kernels.decode_values(data, info.position) if value is not None]


def golden_dump() -> str:
    """What Kafka's tool printed about that log."""
    with gzip.open(CLUSTER / "dump-c1.txt.gz", "rt", encoding="utf-8") as text:
        return text.read()


class Writer:
    """A log on real files."""

    def __init__(self, directory: Path, kernels: Kernels, config: QuorumConfig = SMALL) -> None:
        self.kernels = kernels
        disk = RealDisk.open_directory(str(directory), kernels, create=True)
        create_log(disk, kernels)
        self._flusher = kernels.Flusher()
        self._log = Log.open(disk, kernels, config, self._flusher)

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    def append(self, batch: bytes, record_count: int, epoch: int, timestamp_ms: int) -> None:
        base = self.end_offset
        self._log.append_batch(
            batch, base_offset=base, next_offset=base + record_count, epoch=epoch, timestamp_ms=timestamp_ms
        )
        self._log.request_flush()

    def append_values(self, values: Sequence[bytes], epoch: int, timestamp_ms: int, attributes: int = 0) -> None:
        batch = self.kernels.encode_values(
            values, base_offset=self.end_offset, leader_epoch=epoch, timestamp_ms=timestamp_ms, attributes=attributes
        )
        self.append(batch, len(values), epoch, timestamp_ms)

    def close(self) -> None:
        deadline = time.monotonic() + 30
        while self._log.is_flushing:
            for token, code in self._flusher.completions():
                self._log.flush_done(token, code)
            assert time.monotonic() < deadline, "the flusher does not answer"
        self._log.close()
        self._flusher.close()


def segments(directory: Path) -> list[str]:
    """Names of the segments, relative to the data directory, as both tools are told them."""
    return [f"{LOG_DIRECTORY}/{path.name}" for path in sorted((directory / LOG_DIRECTORY).glob("*.log"))]


def fastquorum(*arguments: str | Path, cwd: Path | None = None) -> str:
    """Run our command; what it prints."""
    command = [sys.executable, "-m", "fastquorum.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
