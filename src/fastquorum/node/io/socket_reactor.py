"""The loop that moves bytes itself: sockets, frames, and the flusher's reports, all in the replica's thread. The pure
twin of the native shell's threads.
"""

import select
from typing import Final

from fastquorum.kernels.lane import Connection
from fastquorum.node.io.channel import Channel
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.injected import InjectedFlusher, InjectedTransport
from fastquorum.node.io.reactor import READ, Reactor
from fastquorum.node.io.receiving import Receiver
from fastquorum.node.io.transport import SocketTransport
from fastquorum.node.io.watched import WatchedFlusher
from fastquorum.node.replica import Replica
from fastquorum.types import Micros

_HANG_UP: Final = select.EPOLLHUP | select.EPOLLERR
_READABLE: Final = select.EPOLLIN | _HANG_UP


class SocketReactor(Reactor):
    """See the module."""

    _transport: SocketTransport
    _flusher: WatchedFlusher

    def _watch_sources(self) -> None:
        self._receiver = Receiver()
        self._held: set[Connection] = set()
        """Not read from until what came on them was dealt with."""
        self._flusher_fd = self._flusher.fileno()
        self._note = self._transport.note_request if isinstance(self._transport, InjectedTransport) else None
        self._transport.epoll.register(self._flusher_fd, READ)

    def _on_source(self, replica: Replica, fd: int, mask: int, now: Micros) -> None:
        channel = self._transport.by_fd.get(fd)
        if channel is not None:
            self._on_channel(replica, channel, mask, now)
        elif fd == self._flusher_fd:
            self._on_flusher(replica, now)

    def _on_flusher(self, replica: Replica, now: Micros) -> None:
        for token, code in self._flusher.completions():
            replica.on_flush(token, code, now)
        if isinstance(self._flusher.inner, InjectedFlusher):
            self._flusher.inner.counted()
        self._disk_is_back(replica, now)

    def _on_channel(self, replica: Replica, channel: Channel, mask: int, now: Micros) -> None:
        if not channel.connected:
            with self._lock:
                connected = self._transport.finish_connect(channel)
            if connected:
                replica.on_connected(channel.number, now)
            else:
                self._lose(replica, channel.number, now)
            return
        if mask & select.EPOLLOUT:
            with self._lock:
                self._transport.flush(channel)
        if mask & _READABLE:
            self._receive(replica, channel, now)

    def _receive(self, replica: Replica, channel: Channel, now: Micros) -> None:
        partial_bytes = channel.partial_bytes
        frames = self._receiver.frames(channel, now, self._transport.receive_bytes)
        # What came while this process stood still, between the look at the clock and the read, came later than that:
        # a heartbeat of it must not be taken for an earlier one (`lease`).
        now = now_us()
        with self._lock:
            self._transport.received(channel, partial_bytes)
        if frames is None:
            self._lose(replica, channel.number, now)
            return
        for frame in frames:
            if channel.broken or self._over:
                return
            self._frame(replica, channel, frame, now)
        if channel.number in replica.connections.frames_set_aside:
            self._held.add(channel.number)
            self._hold(channel.number, is_held=True)

    def _hold(self, connection: Connection, *, is_held: bool) -> None:
        channel = self._transport.channel(connection)
        if channel is not None:
            with self._lock:
                self._transport.hold(channel, is_held)

    def _catch_up(self, replica: Replica) -> None:
        for connection in [each for each in self._held if each not in replica.connections.frames_set_aside]:
            self._held.discard(connection)
            self._hold(connection, is_held=False)

    def _frame(self, replica: Replica, channel: Channel, frame: bytes, now: Micros) -> None:
        channel.seen_frame = True
        if self._note is not None and channel.accepted:
            self._note(channel.number, frame)
        replica.on_frame(channel.number, frame, now)
