"""The loop beside the native threads: what they hand up comes here, in its order, as news."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from fastquorum.kernels import shell as native
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.injected import InjectedNativeTransport
from fastquorum.node.io.native_flusher import NativeFlusher
from fastquorum.node.io.native_shell import NativeShell
from fastquorum.node.io.native_transport import NativeTransport
from fastquorum.node.io.reactor import READ, Reactor
from fastquorum.node.io.watchdog import Watchdog
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.types import Micros
from fastquorum.wire import ApiKey

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox, Shell

FRAMES_MAX: Final = 32
"""Looked at together: about a millisecond's."""
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
        self._watchdog = Watchdog(
            stall_us_max=self._config.disk_stall_us_max,
            turn=lambda: self.turn,
            on_hung=self._on_hung,
            name=f"{self._thread.name}-watchdog",
        )

    def start(self, replica: Replica) -> None:
        super().start(replica)
        self._watchdog.start()

    def _on_hung(self) -> None:
        """In the watchdog's thread: the replica's does not come back from the disk. The native threads, which do not
        need it, would lead on for ever."""
        assert self._replica is not None
        driver = _driver(self._replica)
        if driver.is_leader:
            driver.give_up()
            self.post(_come_back)

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
        return bool(_driver(replica).events)

    def _catch_up(self, replica: Replica) -> None:
        # Any call of the driver may have collected news, timers' included.
        events = _driver(replica).events
        while events and not self._over:
            if events[0][0] == native.EVENT_FRAME:
                self._on_frames(replica, events)
            else:
                self._on_event(replica, *events.popleft())
        if not self._over:
            self._shell.news_done()

    def _on_frames(self, replica: Replica, events: deque[tuple[int, int, bytes, int, int]]) -> None:
        """What came together is looked at together, up to a point: answers are not to wait for many others."""
        frames: list[tuple[Connection, bytes]] = []
        while events and events[0][0] == native.EVENT_FRAME and len(frames) < FRAMES_MAX:
            _, connection, frame, _, _ = events.popleft()
            if self._transport.knows(connection) and not self._is_in_vain(connection, frame):
                if self._note is not None and self._transport.is_accepted(connection):
                    self._note(connection, frame)
                frames.append((connection, frame))
        replica.on_frames(frames, now_us())

    def _close(self) -> None:
        assert self._replica is not None
        self._watchdog.stop()
        events = _driver(self._replica).events
        self._flusher.uncounted += [each[3:] for each in events if each[0] == native.EVENT_SYNCED]
        super()._close()

    def _on_event(self, replica: Replica, kind: int, connection: int, _: bytes, token: int, error: int) -> None:
        """Anything but a frame."""
        now = now_us()
        match kind:
            case native.EVENT_CONNECTED:
                replica.on_connected(connection, now)
                replica.work(now)
            case native.EVENT_LOST:
                self._lose(replica, connection, now)
            case native.EVENT_SYNCED:
                replica.on_flush(token, error, now)
                self._disk_is_back(replica, now)

    def _is_in_vain(self, connection: Connection, frame: bytes) -> bool:
        """A Fetch whose answer cannot be sent: whoever asked for many and read none would have them all read from the
        disk, while everybody else waits."""
        return frame[:2] == _FETCH and self._transport.is_broken(connection)


def _come_back(replica: Replica, now: Micros) -> None:
    """The first thing that a thread which hung decides about: it is no leader any more."""
    replica.request(ev.DiskStalled(), now)
    replica.request(ev.DiskRecovered(), now)


def _driver(replica: Replica) -> NativeShell:
    driver = replica.shell
    assert isinstance(driver, NativeShell)
    return driver
