"""Files kept beside the segments, off the commit path: the durable mark and Kafka's file of epochs.

Owns what of both stands on the disk, and when the mark is due again. Must not know what is synced: the log says it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from fastquorum.config import QuorumConfig
from fastquorum.errors import StorageFailed
from fastquorum.kernels import EpochCache, Kernels
from fastquorum.storage.log.epochs import write_epochs
from fastquorum.storage.log.mark import LogPosition, Mark, write_mark
from fastquorum.storage.ports import Disk
from fastquorum.types import Micros


@contextmanager
def if_possible() -> Iterator[None]:
    """Suppress StorageFailed where the write, whole or not at all, can wait for a descriptor or for room."""
    try:
        yield
    except StorageFailed as failed:
        if not failed.can_wait:
            raise


class Marking:
    """Writes only what has changed."""

    def __init__(
        self,
        disk: Disk,
        kernels: Kernels,
        config: QuorumConfig,
        directory: str,
        epochs: EpochCache,
        epochs_saved: bool,
        mark: Mark,
    ) -> None:
        """`mark` is what its file says; so are `epochs`, if they are saved."""
        self._disk = disk
        self._kernels = kernels
        self._directory = directory
        self._interval_us = config.mark_interval_us
        self._due_us: Micros = -1
        self._epochs = epochs
        self._epochs_saved = epochs.entries() if epochs_saved else None
        self.mark = mark
        """The one on the disk."""
        self.start_offset = mark.start_offset
        """What the next one says of where the log begins."""
        self.committed = mark.committed
        """All below it is known to be committed; the next one says so, as far as all is synced."""

    def save(self, flushed: LogPosition) -> None:
        """All is synced up to `flushed`; and the epochs."""
        self.save_mark(flushed)
        self.save_epochs()

    def save_when_due(self, flushed: LogPosition, now_us: Micros) -> None:
        if now_us >= self._due_us:
            self._due_us = now_us + self._interval_us
            self.save_if_possible(flushed)

    def save_if_possible(self, flushed: LogPosition) -> None:
        """It can wait: the mark is a lower bound."""
        with if_possible():
            self.save(flushed)

    def save_epochs_if_possible(self) -> None:
        """They can wait: recovery finds them in the log."""
        with if_possible():
            self.save_epochs()

    def save_mark(self, flushed: LogPosition) -> None:
        committed = min(self.committed, flushed.offset)
        if (self.mark.at, self.mark.start_offset, self.mark.committed) != (flushed, self.start_offset, committed):
            place, epochs = (self._disk, self._kernels, self._directory), self._epochs.entries()
            self.mark = write_mark(*place, flushed, epochs, self.start_offset, committed)

    def save_epochs(self) -> None:
        entries = self._epochs.entries()
        if entries != self._epochs_saved:
            write_epochs(self._disk, self._directory, entries)
            self._epochs_saved = entries
