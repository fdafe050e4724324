"""Writes a replica's snapshots in a thread of their own, one at a time. Implements `node.ports.SnapshotWriter`.

The thread owns the file that it writes, and nothing else; the replica's thread is told what became of it. A node that
ends has it break off: what is left is swept away at the next start.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fastquorum.errors import FastQuorumError, FatalError
from fastquorum.kernels import Kernels
from fastquorum.storage.log.checkpoint import CheckpointState
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.storage.ports import Disk
from fastquorum.types import OffsetAndEpoch

BREAK_OFF_S: Final = 2.0
Result = CheckpointState | FastQuorumError


class _BrokenOff(Exception):
    """The node ends."""


class SnapshotThread:
    """Writes one node's snapshots. The replica's thread calls `begin`; `close` is called once that has ended, or soon
    will."""

    def __init__(self, disk: Disk, kernels: Kernels, post: Callable[[Callable[[], None]], None]) -> None:
        """`post` has the replica's thread do something."""
        self._disk = disk
        self._kernels = kernels
        self._post = post
        self._thread: threading.Thread | None = None
        self._is_closing = threading.Event()

    def begin(self, snapshot: OffsetAndEpoch, batches: Iterable[bytes], done: Callable[[Result], None]) -> None:
        assert self._thread is None or not self._thread.is_alive(), "one snapshot at a time"
        name = f"fastquorum-snapshot-{snapshot.offset}"
        self._thread = threading.Thread(target=self._run, args=(snapshot, batches, done), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Return once nothing is written any more. FatalError if the disk does not answer: the directory must stay
        locked then."""
        self._is_closing.set()
        if self._thread is not None:
            self._thread.join(BREAK_OFF_S)
            if self._thread.is_alive():
                raise FatalError("a snapshot cannot be broken off, as the disk does not answer")

    def _run(self, snapshot: OffsetAndEpoch, batches: Iterable[bytes], done: Callable[[Result], None]) -> None:
        result: Result
        try:
            result = write_snapshot(self._disk, self._kernels, LOG_DIRECTORY, snapshot, self._unless_closing(batches))
        except _BrokenOff:
            return
        except FastQuorumError as error:
            result = error
        except BaseException as error:
            # A bug of ours: whoever waits for the snapshot must hear of it before it is shown.
            failure = FatalError(f"internal error while snapshot {snapshot} was written: {error!r}")
            self._post(lambda: done(failure))
            raise
        self._post(lambda: done(result))

    def _unless_closing(self, batches: Iterable[bytes]) -> Iterator[bytes]:
        for batch in batches:
            if self._is_closing.is_set():
                raise _BrokenOff
            yield batch
