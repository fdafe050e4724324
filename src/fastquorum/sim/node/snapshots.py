"""A simulated thread that writes snapshots. Implements `node.ports.SnapshotWriter`; belongs to one incarnation."""

from collections.abc import Callable, Iterable
from typing import Final

from fastquorum.errors import FastQuorumError
from fastquorum.sim.node.threads import ReplicaThread
from fastquorum.sim.node.view import ProcessView
from fastquorum.sim.prng import Prng
from fastquorum.storage.log.checkpoint import CheckpointState
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import OffsetAndEpoch

WRITE_US: Final = 5_000
WRITE_US_MAX: Final = 2_000_000


class SimSnapshots:
    """The snapshot writer of one incarnation. The content is fixed when a snapshot begins; it is written at some later
    moment, unless the process has ended by then."""

    def __init__(self, process: ProcessView, thread: ReplicaThread, prng: Prng) -> None:
        self._process = process
        self._thread = thread
        self._prng = prng

    def begin(
        self,
        snapshot: OffsetAndEpoch,
        batches: Iterable[bytes],
        done: Callable[[CheckpointState | FastQuorumError], None],
    ) -> None:
        self._process.note(f"begins snapshot {snapshot.offset}")
        wait_us = self._prng.heavy_tail(WRITE_US, WRITE_US_MAX)
        self._process.later(wait_us, lambda: self._process.as_caller(lambda: self._write(snapshot, batches, done)))

    def _write(
        self,
        snapshot: OffsetAndEpoch,
        batches: Iterable[bytes],
        done: Callable[[CheckpointState | FastQuorumError], None],
    ) -> None:
        process = self._process
        result: CheckpointState | FastQuorumError
        try:
            result = write_snapshot(process.disk, process.build.kernels, LOG_DIRECTORY, snapshot, batches)
        except FastQuorumError as error:
            result = error

        def report() -> None:
            done(result)
            process.replica.on_tick(process.now_us)

        self._thread.post(report)
