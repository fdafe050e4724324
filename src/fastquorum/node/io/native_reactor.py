"""The loop beside the native threads: what they hand up comes here, in its order, as news."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastquorum.kernels import codes
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.arrivals import Arrival
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.injected import InjectedNativeTransport
from fastquorum.node.io.native.flusher import NativeFlusher
from fastquorum.node.io.native.shell import NativeShell
from fastquorum.node.io.native.transport import NativeTransport
from fastquorum.node.io.ranked_reactor import RankedReactor
from fastquorum.node.io.reactor import READ
from fastquorum.node.replica import Replica
from fastquorum.raft import events as ev
from fastquorum.raft.transitions import Cause
from fastquorum.types import NO_NODE, Micros

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox, Shell


class NativeReactor(RankedReactor):
    """See the module. `attach` before `start`."""

    _transport: NativeTransport
    _flusher: NativeFlusher

    def attach(self, shell: Shell, mailbox: Mailbox) -> None:
        """The native shell, and where the replica's thread is told of appends."""
        self._shell = shell
        self._mail_fd = mailbox.fileno()
        self._news_fd = shell.fileno()
        self._note = self._transport.note_request if isinstance(self._transport, InjectedNativeTransport) else None

    def _watch_sources(self) -> None:
        self._transport.epoll.register(self._news_fd, READ)
        self._transport.epoll.register(self._mail_fd, READ)

    def _serve(self, replica: Replica, ready: list[tuple[int, int]]) -> bool:
        # Before anything else: whatever is decided otherwise would be told as the reason why the lead ended.
        if self._shell.take_given_up():
            _come_back(replica, now_us())
        return super()._serve(replica, ready)

    def _on_source(self, replica: Replica, fd: int, mask: int, now: Micros) -> None:
        if fd == self._news_fd:
            with self._lock:
                driver = _driver(replica)
                driver.collect()
                driver.collect_failure()
        replica.work(now)

    def _is_behind(self, replica: Replica) -> bool:
        return bool(_driver(replica).events or self._arrivals)

    def _take_arrivals(self, replica: Replica) -> list[Arrival]:
        # Any call of the driver may have collected news, timers' included.
        return _driver(replica).take_events()

    def _report_done(self, replica: Replica) -> None:
        self._done += _driver(replica).take_handed_up()
        super()._report_done(replica)

    def _frames_done(self, replica: Replica, frames: list[tuple[Connection, int]]) -> None:
        self._shell.frames_done(frames)

    def _close(self) -> None:
        assert self._replica is not None
        left = [*self._left, *self._arrivals.take_all(), *_driver(self._replica).events]
        self._flusher.uncounted += [each[3:] for each in left if each[0] == codes.EVENT_SYNCED]
        super()._close()

    def _on_event(self, replica: Replica, kind: int, connection: int, token: int, error: int) -> None:
        """Anything but a frame."""
        now = now_us()
        match kind:
            case codes.EVENT_CONNECTED:
                self._transport.errors.connected(connection)
                replica.on_connected(connection, now)
                replica.work(now)
            case codes.EVENT_LOST:
                self._transport.ended(connection, error)
                self._lose(replica, connection, now)
            case codes.EVENT_DRAINED:
                replica.on_drained(connection, now)
            case codes.EVENT_SYNCED:
                replica.on_flush(token, error, now)
                self._disk_is_back(replica, now)


def _come_back(replica: Replica, now: Micros) -> None:
    """The first thing that a thread decides about which took no news for so long that the native threads, which do not
    need it and would have led on for ever, gave up the lead."""
    replica.request(ev.ResignRequested(NO_NODE, replica.raft.epoch, Cause.INTERPRETER_HELD), now)


def _driver(replica: Replica) -> NativeShell:
    driver = replica.shell
    assert isinstance(driver, NativeShell)
    return driver
