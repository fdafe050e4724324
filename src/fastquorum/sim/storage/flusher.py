"""The thread that syncs: it takes time, may fail, and reports late. Implements `storage.ports.FlushPort`.

The bytes that a sync makes durable are those written before it began. `failed` is set the moment a sync fails; the
report follows.
"""

import errno
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fastquorum.errors import FsyncFailed
from fastquorum.kernels import SegmentFile
from fastquorum.sim.clock import Scheduler
from fastquorum.sim.prng import Prng
from fastquorum.sim.storage.disk import SimDisk, SimFile
from fastquorum.types import Micros

REPORT_US = 50
"""How long a report typically takes from the flusher to the replica's thread; it may take a hundred times as long.
That of a failure takes longer still: until it comes, only the latch keeps the replica silent."""


class _Sync(NamedTuple):
    token: int
    files: tuple[tuple[SimFile, int], ...]
    """The files, each with the number of the last change that the sync covers."""


class SimFlusher:
    """The flusher of one incarnation; `report` delivers (token, errno) to it."""

    def __init__(self, scheduler: Scheduler, disk: SimDisk, prng: Prng, report: Callable[[int, int], None]) -> None:
        self.failed = False
        self.has_stalled = False
        """Whether the sync under way has been found to last too long."""
        self._scheduler = scheduler
        self._disk = disk
        self._prng = prng
        self._report = report
        self._sync: _Sync | None = None
        self._ended = False
        self.begun_us: Micros = -1
        """When the sync began whose report is awaited; -1 none is."""

    def is_stalled(self, stall_us_max: Micros) -> bool:
        """Return whether the present sync has lasted too long (the watchdog); True once for each."""
        if self.has_stalled or self.begun_us < 0 or self._scheduler.now_us - self.begun_us <= stall_us_max:
            return False
        self.has_stalled = True
        return True

    def take_report(self) -> bool:
        """Take the report of the sync's end; return whether it had stalled."""
        had_stalled, self.has_stalled = self.has_stalled, False
        self.begun_us = -1
        return had_stalled

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        if self.failed or self._ended:
            return
        assert self._sync is None, "the log has one sync under way at a time"
        held = []
        for file in files:
            assert isinstance(file, SimFile)
            held.append((file, file.inode.changes))
        self._sync = sync = _Sync(token, tuple(held))
        self.begun_us = self._scheduler.now_us
        faults = self._disk.faults
        ends_us = self._scheduler.now_us + self._prng.heavy_tail(faults.sync_us, faults.sync_us_max)
        self._scheduler.at(max(ends_us, faults.hung_until_us), lambda: self._finish(sync))

    def may_finish_now(self) -> None:
        """End the sync, maybe, while the replica's thread is elsewhere; its report is still to come."""
        if self._sync is not None and self._disk.faults.hung_until_us <= self._scheduler.now_us:
            self._finish(self._sync)

    def end(self) -> None:
        """End with the process."""
        self._ended = True
        self._sync = None

    def _finish(self, sync: _Sync) -> None:
        if self._sync is not sync:
            return
        if self._disk.faults.hung_until_us > self._scheduler.now_us:
            self._scheduler.at(self._disk.faults.hung_until_us, lambda: self._finish(sync))
            return
        self._sync = None
        code = 0
        faults = self._disk.faults
        if faults.failing_flushes > 0:
            faults.failing_flushes -= 1
            faults.failing_syncs += 1
        for file, changes in sync.files:
            try:
                self._disk.refuse_sync("sync", file.name, file.inode)
            except FsyncFailed:
                file.latch()
                self.failed = True
                code = errno.EIO
                break
            file.inode.sync(changes)
        typical_us = 20 * REPORT_US if code else REPORT_US
        delay_us = self._prng.heavy_tail(typical_us, 100 * typical_us)
        self._scheduler.after(delay_us, lambda: self._report(sync.token, code))
