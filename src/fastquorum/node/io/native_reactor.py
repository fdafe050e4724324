"""The loop beside the native threads: what they hand up comes here, in its order, as news."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastquorum.kernels import shell as native
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.arrivals import URGENT_SLICES, Arrival, Arrivals
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.injected import InjectedNativeTransport
from fastquorum.node.io.native_flusher import NativeFlusher
from fastquorum.node.io.native_shell import NativeShell
from fastquorum.node.io.native_transport import NativeTransport
from fastquorum.node.io.reactor import READ, Reactor
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.types import Micros
from fastquorum.wire import ApiKey

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox, Shell

_FETCH: Final = ApiKey.FETCH.to_bytes(2, "big")


class NativeReactor(Reactor):
    """See the module. `attach` before `start`."""

    _transport: NativeTransport
    _flusher: NativeFlusher

    def attach(self, shell: Shell, mailbox: Mailbox) -> None:
        """The native shell, and where the replica's thread is told of appends."""
        self._shell = shell
        self._mail_fd = mailbox.fileno()
        self._news_fd = shell.fileno()
        self._note = self._transport.note_request if isinstance(self._transport, InjectedNativeTransport) else None

    def start(self, replica: Replica) -> None:
        self._arrivals = Arrivals(replica.connections.is_voters, replica.connections.is_consumers)
        self._done: list[tuple[Connection, int]] = []
        """Frames that were dealt with since the shell was told so, and their sizes in bytes."""
        self._left: list[Arrival] = []
        """What the replica's end has kept from being looked at."""
        super().start(replica)

    def _watch_sources(self) -> None:
        self._transport.epoll.register(self._news_fd, READ)
        self._transport.epoll.register(self._mail_fd, READ)

    def _on_source(self, replica: Replica, fd: int, mask: int, now: Micros) -> None:
        if fd == self._news_fd:
            with self._lock:
                driver = _driver(replica)
                driver.collect()
                driver.collect_failure()
        replica.work(now)

    def _is_behind(self, replica: Replica) -> bool:
        return bool(_driver(replica).events or self._arrivals)

    def _catch_up(self, replica: Replica) -> None:
        if self._shell.take_given_up():
            _come_back(replica, now_us())
        # Any call of the driver may have collected news, timers' included.
        driver = _driver(replica)
        for _ in range(URGENT_SLICES):
            self._arrivals.add(driver.take_events())
            if self._over:  # what has arrived stays where `_close` finds it
                return
            urgent = self._arrivals.take_urgent()
            if not urgent:
                break
            self._look_at(replica, urgent)
        if not self._over:
            self._look_at(replica, self._arrivals.take_others())
        if not self._over:
            self._done += driver.take_handed_up()
            self._report_done(replica)

    def _report_done(self, replica: Replica) -> None:
        """Those that were set aside are not dealt with: of each connection the last."""
        left = {connection: len(frames) for connection, frames in replica.connections.frames_set_aside.items()}
        kept: list[tuple[Connection, int]] = []
        if left:
            done: list[tuple[Connection, int]] = []
            for each in reversed(self._done):
                left[each[0]] = left.get(each[0], 0) - 1
                (done if left[each[0]] < 0 else kept).append(each)
            self._done = done[::-1]
        if self._done:
            self._shell.frames_done(self._done)
        self._done = kept[::-1]

    def _look_at(self, replica: Replica, arrivals: list[Arrival]) -> None:
        """Frames that are next to each other are looked at together: what they bring about is written together."""
        frames: list[tuple[Connection, bytes]] = []
        for kind, connection, frame, token, error in arrivals:
            if kind == native.EVENT_FRAME:
                self._done.append((connection, len(frame)))
                if self._is_wanted(connection, frame):
                    frames.append((connection, frame))
                continue
            if frames:
                replica.on_frames(frames, now_us())
                frames = []
            if self._over:  # a sync's end is for whoever closes the log
                self._left.append((kind, connection, frame, token, error))
            else:
                self._on_event(replica, kind, connection, token, error)
        if frames:
            replica.on_frames(frames, now_us())

    def _is_wanted(self, connection: Connection, frame: bytes) -> bool:
        """Its connection is still there, and it can be answered."""
        if not self._transport.knows(connection) or self._is_in_vain(connection, frame):
            return False
        if self._note is not None and self._transport.is_accepted(connection):
            self._note(connection, frame)
        return True

    def _close(self) -> None:
        assert self._replica is not None
        left = [*self._left, *self._arrivals.take_all(), *_driver(self._replica).events]
        self._flusher.uncounted += [each[3:] for each in left if each[0] == native.EVENT_SYNCED]
        super()._close()

    def _on_event(self, replica: Replica, kind: int, connection: int, token: int, error: int) -> None:
        """Anything but a frame."""
        now = now_us()
        match kind:
            case native.EVENT_CONNECTED:
                self._transport.errors.connected(connection)
                replica.on_connected(connection, now)
                replica.work(now)
            case native.EVENT_LOST:
                self._transport.ended(connection, error)
                self._lose(replica, connection, now)
            case native.EVENT_DRAINED:
                replica.on_drained(connection, now)
            case native.EVENT_SYNCED:
                replica.on_flush(token, error, now)
                self._disk_is_back(replica, now)

    def _is_in_vain(self, connection: Connection, frame: bytes) -> bool:
        """A Fetch whose answer cannot be sent: whoever asked for many and read none would have them all read from the
        disk, while everybody else waits."""
        return frame[:2] == _FETCH and self._transport.is_broken(connection)


def _come_back(replica: Replica, now: Micros) -> None:
    """The first thing that a thread decides about which took no news for so long that the native threads, which do not
    need it and would have led on for ever, gave up the lead."""
    replica.request(ev.DiskStalled(), now)
    replica.request(ev.DiskRecovered(), now)


def _driver(replica: Replica) -> NativeShell:
    driver = replica.shell
    assert isinstance(driver, NativeShell)
    return driver
