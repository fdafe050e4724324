"""The log alone and the log lent to the native shell, fed the same: the same bytes, indexes, ends and answers."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.config import QuorumConfig
from fastquorum.kernels.codes import EVENT_SYNCED, AppendVerdict
from fastquorum.kernels.lane import LaneIdentity, LaneTimeouts, LeaderSession
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.native.flusher import NativeFlusher
from fastquorum.node.io.native.shell import Borrowing
from fastquorum.storage.format import create_log
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.storage.ports import FlushPort
from fastquorum.types import METADATA_TOPIC_ID, OffsetAndEpoch
from tests.lane.builders import CLUSTER, control_batch, crowded_batch, key
from tests.storage.fake_disk import FakeFlusher
from tests.storage.logs import checkpoint

from .native_rig import NEVER, kernels, native, until

CONFIG = QuorumConfig(segment_bytes=20_000, preallocate_bytes=3_000)


def value_batch(number: int, count: int, size_bytes: int) -> bytearray:
    """Return a batch as a client sends it: without its place."""
    values = [bytes([number % 251]) * size_bytes] * count
    return bytearray(kernels.encode_values(values, base_offset=0, leader_epoch=-1, timestamp_ms=1_000 + number))


class Side(Protocol):
    """One of the two."""

    log: Log
    epoch: int

    def begin(self) -> None:
        """An epoch."""

    def go_on(self) -> None:
        """In the log's last epoch."""

    def append(self, batch: bytearray, count: int) -> bool: ...
    def pause(self) -> None: ...
    def hold(self, hold: bool) -> None: ...
    def end(self) -> None: ...
    def settle(self) -> None: ...


def open_log(directory: Path, port: FlushPort) -> Log:
    disk = RealDisk.open_directory(str(directory), kernels, create=True)
    create_log(disk, kernels)
    return Log.open(disk, kernels, CONFIG, port)


def begin_epoch(log: Log, epoch: int) -> None:
    """What a leader's term begins with."""
    end = log.end_offset
    log.append_batch(control_batch(end, epoch), base_offset=end, next_offset=end + 1, epoch=epoch, timestamp_ms=1_000)


def begin_behind_snapshot(log: Log, snapshot: OffsetAndEpoch) -> None:
    """Begin the log anew like a follower that lacked too much."""
    log.snapshots.write_part(snapshot, 0, checkpoint(kernels, snapshot))
    log.snapshots.finish_part(snapshot)
    log.install_snapshot(snapshot)


class Alone:
    """The log, appended to as the pure lane does it."""

    def __init__(self, directory: Path) -> None:
        self.flusher = FakeFlusher()
        self.log = open_log(directory, self.flusher)
        self.epoch = 0

    def begin(self) -> None:
        self.epoch += 1
        begin_epoch(self.log, self.epoch)
        self.log.request_flush()

    def go_on(self) -> None: ...

    def append(self, batch: bytearray, count: int) -> None:
        assert self.log.make_room(len(batch), count)
        end = self.log.end_offset
        stamped = bytearray(batch)
        stamped[:8] = end.to_bytes(8, "big")
        stamped[12:16] = self.epoch.to_bytes(4, "big")
        timestamp_ms = int.from_bytes(batch[35:43], "big")
        self.log.append_batch(
            stamped, base_offset=end, next_offset=end + count, epoch=self.epoch, timestamp_ms=timestamp_ms
        )
        self.log.request_flush()

    def pause(self) -> None: ...

    def hold(self, hold: bool) -> None: ...

    def end(self) -> None: ...

    def settle(self) -> None:
        while self.flusher.pending:
            self.log.flush_done(self.flusher.run(), 0)


class Lent:
    """The log, lent to a shell whose lane has one voter."""

    def __init__(self, directory: Path) -> None:
        self.shell = native.Shell(
            LaneIdentity(key(1), CLUSTER, METADATA_TOPIC_ID),
            1 << 14,
            frame_bytes_max=1 << 20,
            records_max=1 << 20,
            bytes_max=1 << 30,
        )
        flusher = NativeFlusher()
        flusher.bind(self.shell, lambda file: file)
        self.log = open_log(directory, flusher)
        self.borrower = Borrowing(self.shell, lambda file: file)
        self.box = native.Mailbox()
        self.epoch = 0
        self.results: list[Any] = []
        self.accepted: list[int] = []

    def begin(self) -> None:
        self.epoch += 1
        begin_epoch(self.log, self.epoch)
        self.go_on()

    def go_on(self) -> None:
        self.log.lend(self.borrower)
        session = LeaderSession(
            epoch=self.epoch,
            voters=(key(1),),
            epoch_start=self.log.end_offset - 1,
            high_watermark=-1,
            timeouts=LaneTimeouts(NEVER),
        )
        self.shell.open_leader(session, now_us())

    def append(self, batch: bytearray, count: int) -> None:
        timestamp_ms = int.from_bytes(batch[35:43], "big")
        stamped = bytearray(batch)
        offset = self.shell.append_encoded(stamped, count, timestamp_ms, self.box, "append")
        if offset == AppendVerdict.FROZEN:
            self.shell.freeze()
            self.log.take_back()
            wanted = self.shell.room_wanted
            assert wanted is not None
            self.shell.room_sought()
            assert self.log.make_room(*wanted)
            self._go_on()
            self.shell.release_appends()
            offset = self.shell.append_encoded(stamped, count, timestamp_ms, self.box, "append")
        assert offset >= 0
        self.accepted.append(offset)

    def _go_on(self) -> None:
        self.log.lend(self.borrower)
        self.shell.resume(now_us())

    def pause(self) -> None:
        self.shell.freeze()
        self.log.take_back()
        assert not self.log.is_lent
        self._go_on()

    def hold(self, hold: bool) -> None:
        self.shell.hold_syncs(hold)

    def end(self) -> None:
        self.shell.close()
        self.log.take_back()
        self.shell.fail_pending(-1_001)
        self._collect()

    def _collect(self) -> bool:
        _, events, _ = self.shell.take_news()
        for kind, _, _, token, error in events:
            assert (kind, error) == (EVENT_SYNCED, 0)
            if self.log.is_lent:
                self.shell.synced(token, error, now_us())
            else:
                self.log.flush_done(token, error)
        self.results += self.box.collect()
        return not self.log.is_flushing and self.log.flushed_end == self.log.end_offset

    def settle(self) -> None:
        self.hold(False)
        until(self._collect, "everything is synced")
        until(lambda: self._collect() and len(self.results) == len(self.accepted), "everybody is told")


@contextmanager
def both() -> Iterator[tuple[Alone, Lent]]:
    with tempfile.TemporaryDirectory(prefix="fastquorum-") as directory:
        alone, lent = Alone(Path(directory) / "alone"), Lent(Path(directory) / "lent")
        try:
            yield alone, lent
        finally:
            lent.hold(False)
            lent.shell.end_threads()
        assert stored_files(Path(directory) / "alone") == stored_files(Path(directory) / "lent")


def stored_files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((directory / LOG_DIRECTORY).iterdir())}


def read_on(log: Log, bytes_max: int) -> bytes:
    """From the start to the end, as a reader goes on."""
    data, offset = b"", log.start_offset
    while offset < log.end_offset:
        read = log.read(offset, bytes_max)
        offset = kernels.scan(read).next_offset
        data += read
    return data


def described(log: Log) -> dict[str, object]:
    """All that must be the same when nothing is under way."""
    start, end = log.start_offset, log.end_offset
    log.offset_for_timestamp(0)  # a log that is lent learns of its segments when somebody looks
    return {
        "ends": (log.start_offset, log.end_offset, log.flushed_end, log.generation, log.last_epoch, log.is_flushing),
        "segments": [
            (each.base_offset, each.size_bytes, each.prepared_bytes, each.max_timestamp_ms, each.index.encode())
            for each in log._segments
        ],
        "files": [each.file.read(0, 1 << 20) for each in log._segments],
        "epochs": (log.epochs.entries(), [log.end_offset_for(epoch) for epoch in range(log.last_epoch + 2)]),
        # How much a read gives beyond one batch depends on what is in memory: only that it is the log goes for both.
        "read": [log.read(offset, 1) for offset in range(start, end + 1)],
        "all": [read_on(log, limit) for limit in (300, 1 << 20)],
        "stored": [(log.epoch_for(offset), log.read_stored(offset)) for offset in range(start, end)],
        "timestamps": [log.offset_for_timestamp(1_000 + number) for number in range(0, 60, 7)],
        "largest": [log.max_timestamp_below(offset) for offset in range(start, end + 1, 5)],
    }


def test_a_lent_log_rolls_where_the_log_alone_does_though_bytes_would_fit() -> None:
    counts = (2**30, 2**30 - 1, 1, 2**31 - 1, 5, 2**30, 2**30 - 5, 1)
    with both() as (alone, lent):
        sides: tuple[Alone, Lent] = (alone, lent)
        for side in sides:
            side.begin()
            for count in counts:
                side.append(bytearray(crowded_batch(0, 0, count)), count)
                side.settle()
            side.end()
            side.settle()
            assert [each.base_offset for each in side.log._segments] == [0, 2**31, 2**32, 3 * 2**31]
        for side in sides:
            side.log.close()


APPEND = st.tuples(st.just("append"), st.integers(1, 4), st.sampled_from([1, 60, 700, 2_500]))
STEPS = st.lists(
    st.one_of(
        APPEND,
        APPEND,
        APPEND,
        st.tuples(st.just("pause"), st.just(0), st.just(0)),
        st.tuples(st.just("hold"), st.booleans(), st.just(0)),
        st.tuples(st.just("maintain"), st.just(0), st.just(0)),
        st.tuples(st.just("look"), st.just(0), st.just(0)),
        st.tuples(st.just("session"), st.integers(0, 40), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=25, deadline=None)
@given(STEPS, st.sampled_from([None, OffsetAndEpoch(20, 3)]))
def test_a_lent_log_becomes_what_the_log_alone_becomes(
    steps: list[tuple[str, int, int]], snapshot: OffsetAndEpoch | None
) -> None:
    with both() as (alone, lent):
        sides: tuple[Alone, Lent] = (alone, lent)
        for side in sides:
            if snapshot is None:
                side.begin()
            else:
                begin_behind_snapshot(side.log, snapshot)
                side.epoch = snapshot.epoch
                side.go_on()
        for number, (step, first, second) in enumerate(steps):
            if step == "append":
                batch = value_batch(number, first, second)
                for side in sides:
                    side.append(batch, first)
            elif step == "look":
                for side in sides:
                    side.settle()
                assert described(alone.log) == described(lent.log)
            elif step == "session":
                for side in sides:
                    side.end()
                # What is committed is never truncated.
                new_end = max(lent.log.end_offset - first, lent.shell.high_watermark, lent.log.start_offset)
                for side in sides:
                    side.log.truncate_to(new_end)
                    side.begin()
            else:
                for side in sides:
                    match step:
                        case "pause":
                            side.pause()
                        case "hold":
                            side.hold(bool(first))
                        case "maintain":
                            side.log.maintain(0)
            assert (alone.log.end_offset, alone.log.generation) == (lent.log.end_offset, lent.log.generation)
        for side in sides:
            side.settle()
        assert described(alone.log) == described(lent.log)
        committed = [offset for _, offset in lent.results if offset >= 0]
        assert committed == sorted(set(committed)), "told once each, in order"
        for side in sides:
            side.end()
            side.settle()
            side.log.close()
