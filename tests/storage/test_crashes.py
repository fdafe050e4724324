"""The log against a list, with crashes: what was flushed survives, what was truncated stays dead, the rest is a
prefix."""

import random
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fastquorum.errors import FsyncFailed
from fastquorum.kernels import load
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import OffsetAndEpoch

from .fake_disk import Crashed, FakeDisk
from .logs import SMALL, Rig

Batch = tuple[int, int, tuple[bytes, ...]]
"""Base offset, epoch, values."""


class LogMachine(RuleBasedStateMachine):
    """The model is the list of batches written; `flushed` is the end that the log has claimed."""

    kernels = load("pure")

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(self.kernels)
        self.batches: list[Batch] = []
        self.start = OffsetAndEpoch(0, 0)
        """The snapshot that the log begins behind."""
        self.flushed = 0
        self.epoch = 1
        self.now_us = 0
        self.known = 0
        """What the log's mark has said to be committed, as a process found it."""

    @initialize()
    def begin(self) -> None:
        assert self.rig.log.end_offset == 0

    @property
    def end(self) -> int:
        return self.batches[-1][0] + len(self.batches[-1][2]) if self.batches else self.start.offset

    def offset_at(self, where: float) -> int:
        return self.start.offset + int(where * (self.end - self.start.offset))

    @rule(values=st.lists(st.binary(max_size=60), min_size=1, max_size=4), bump=st.sampled_from([0, 0, 0, 1, 3]))
    def append(self, values: list[bytes], bump: int) -> None:
        self.epoch += bump
        base = self.end
        self.rig.append(self.epoch, *values, timestamp_ms=base)
        self.batches.append((base, self.epoch, tuple(values)))

    @rule(count=st.integers(1, 5), bump=st.sampled_from([0, 1]))
    def append_span(self, count: int, bump: int) -> None:
        """Append several batches at once like a follower, epochs rising."""
        data = b""
        for number in range(count):
            self.epoch += bump
            values = (b"%d" % number, b"s")
            data += self.kernels.encode_values(values, base_offset=self.end, leader_epoch=self.epoch, timestamp_ms=1)
            self.batches.append((self.end, self.epoch, values))
        self.rig.log.append_scanned(data, self.kernels.scan(data))

    @rule()
    def request_flush(self) -> None:
        self.rig.log.request_flush()
        assert len(self.rig.flusher.pending) <= 1

    @precondition(lambda self: self.rig.flusher.pending)
    @rule()
    def finish_flush(self) -> None:
        result = self.rig.log.flush_done(self.rig.flusher.run(), 0)
        if result is not None:
            assert result.generation == self.rig.log.generation

    @rule()
    def maintain(self) -> None:
        self.now_us += SMALL.mark_interval_us
        self.rig.log.maintain(self.now_us)

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        target = self.offset_at(where)
        while self.batches and self.end > target:
            self.batches.pop()
        self.rig.log.truncate_to(target)
        self.flushed = min(self.flushed, self.end)
        self.known = min(self.known, self.end)

    @rule(seed=st.integers(0, 1_000))
    def crash(self, seed: int) -> None:
        self._restart(self.rig.disk.crash(random.Random(seed)))

    @rule(seed=st.integers(0, 1_000), steps=st.integers(1, 12), where=st.floats(0, 1))
    def crash_while_truncating(self, seed: int, steps: int, where: float) -> None:
        """Then some of what was to be removed may still be there, but only from the front."""
        self.rig.disk.crash_at = self.rig.disk.operations + steps
        target = self.offset_at(where)
        if target < self.known:  # which no replica does
            self.known = self.start.offset
        try:
            self.rig.log.truncate_to(target)
        except Crashed:
            self.flushed = min(self.flushed, target)
            while self.flushed < self.end and not any(self.flushed == base for base, _, _ in self.batches):
                self.flushed -= 1
        else:
            while self.batches and self.end > target:
                self.batches.pop()
            self.flushed = min(self.flushed, self.end)
        self._restart(self.rig.disk.crash(random.Random(seed)))

    @rule(steps=st.integers(1, 4))
    def is_killed_while_marking(self, steps: int) -> None:
        """What it has written, synced or not, is what the next process finds."""
        self.rig.log.note_committed(self.flushed)
        self.rig.disk.crash_at = self.rig.disk.operations + steps
        self.now_us += 1_000_000
        with suppress(Crashed):
            self.rig.log.maintain(self.now_us)
        self._restart(self.rig.disk)

    @rule(gap=st.integers(-8, 40))
    def install_snapshot(self, gap: int) -> None:
        """One of a later epoch replaces a tail, too."""
        snapshot = self._next_snapshot(gap)
        self.rig.install(snapshot)
        self._began_anew(snapshot)

    @rule(seed=st.integers(0, 1_000), steps=st.integers(1, 25), gap=st.integers(-8, 40))
    def crash_while_installing(self, seed: int, steps: int, gap: int) -> None:
        """The old log or the new one."""
        snapshot = self._next_snapshot(gap)
        self.rig.disk.crash_at = self.rig.disk.operations + steps
        is_done = False
        try:
            self.rig.install(snapshot)
            is_done = True
        except Crashed:
            pass
        disk = self.rig.disk.crash(random.Random(seed))
        if is_done or Rig(self.kernels, disk.copy()).log.last_epoch == snapshot.epoch:
            self._began_anew(snapshot)
        self._restart(disk)

    def _next_snapshot(self, gap: int) -> OffsetAndEpoch:
        self.epoch += 1
        return OffsetAndEpoch(max(self.end + gap, self.start.offset + 1), self.epoch)

    def _began_anew(self, snapshot: OffsetAndEpoch) -> None:
        self.start, self.flushed = snapshot, snapshot.offset
        self.known = snapshot.offset
        self.batches.clear()

    @rule()
    def close_and_reopen(self) -> None:
        while self.rig.flusher.pending:
            self.rig.log.flush_done(self.rig.flusher.run(), 0)
        self.rig.log.close()
        for name in self.rig.disk.list(LOG_DIRECTORY):
            if name.endswith(".log"):
                assert self.kernels.scan(self.rig.disk.read_file(f"{LOG_DIRECTORY}/{name}")).fault is None
        self.flushed = self.end
        self._restart(self.rig.disk)

    def _restart(self, disk: FakeDisk) -> None:
        disk.crash_at = -1
        self.rig = Rig(self.kernels, disk)
        end = self.rig.log.end_offset
        assert end >= self.flushed, "a flushed record is gone"
        assert self.rig.log.committed_offset >= self.known, "what a process knew to be committed is forgotten"
        self.known = self.rig.log.committed_offset
        while self.batches and self.end > end:
            self.batches.pop()
        assert self.end == end, "a record came from nowhere"
        assert self.rig.log.flushed_end == end
        self._check_content()
        self.flushed = end

    def _check_content(self) -> None:
        expected = [
            (base + at, epoch, value) for base, epoch, values in self.batches for at, value in enumerate(values)
        ]
        assert self.rig.values() == expected

    @invariant()
    def ends_agree(self) -> None:
        log = self.rig.log
        assert log.end_offset == self.end
        assert self.flushed <= log.flushed_end <= log.end_offset
        assert log.durable_mark.at.offset <= log.flushed_end
        assert log.start_offset == self.start.offset
        assert log.last_epoch == (self.batches[-1][1] if self.batches else self.start.epoch)
        self.flushed = log.flushed_end

    def teardown(self) -> None:
        self._check_content()


LogMachine.TestCase.settings = settings(
    max_examples=120, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogAgainstAList = LogMachine.TestCase


def test_a_truncated_record_never_comes_back() -> None:
    """Truncate, crash at once, reopen: whatever subset of unsynced sectors survived (etcd-io/etcd#22442)."""
    kernels = load("pure")
    for seed in range(60):
        rig = Rig(kernels)
        for number in range(14):
            rig.append(1, b"old %d" % number)
        if seed % 2:
            rig.flush()
            rig.log.maintain(0)
        rig.log.truncate_to(seed % 14)
        rig.append(2, b"new")
        survivor = rig.reopen(rig.disk.crash(random.Random(seed)))
        for offset, epoch, value in survivor.values():
            assert offset < seed % 14 or (epoch, value) == (2, b"new")


def test_what_a_process_finds_of_a_killed_one_survives_a_power_failure() -> None:
    """A mark may be there whose name is not synced yet: whoever reads it goes by it."""
    kernels = load("pure")
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.flush()
    rig.log.note_committed(1)
    rig.disk.crash_at = rig.disk.operations + 2
    with pytest.raises(Crashed):
        rig.log.maintain(0)
    rig.disk.crash_at = -1
    found = rig.reopen()
    assert found.log.committed_offset == 1
    for seed in range(10):
        assert found.reopen(found.disk.crash(random.Random(seed))).log.committed_offset == 1


def test_a_sync_that_fails_on_the_way_never_raises_the_flushed_end() -> None:
    kernels = load("pure")
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.log.request_flush()
    for segment in rig.log._segments:
        segment.file.fail_sync = True  # type: ignore[attr-defined]
    try:
        rig.log.truncate_to(0)
    except FsyncFailed:
        assert rig.log.failed
    assert rig.log.flushed_end == 0
