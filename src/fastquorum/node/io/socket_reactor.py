"""The loop that moves bytes itself: sockets, frames, and the flusher's reports, all in the replica's thread. The pure
twin of the native shell's threads.
"""

import select
from collections import deque
from typing import Final

from fastquorum.kernels import codes
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.arrivals import SLICE_BYTES, SLICE_FRAMES, Arrival
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.injected import InjectedFlusher, InjectedTransport
from fastquorum.node.io.ranked_reactor import RankedReactor
from fastquorum.node.io.reactor import READ
from fastquorum.node.io.sockets.channel import Channel
from fastquorum.node.io.sockets.receiving import Receiver
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.node.io.watched import WatchedFlusher
from fastquorum.node.replica import Replica
from fastquorum.types import Micros

_HANG_UP: Final = select.EPOLLHUP | select.EPOLLERR
_READABLE: Final = select.EPOLLIN | _HANG_UP
_LENGTH_BYTES: Final = 4
"""In front of every frame."""


class SocketReactor(RankedReactor):
    """See the module."""

    _transport: SocketTransport
    _flusher: WatchedFlusher

    def _watch_sources(self) -> None:
        self._receiver = Receiver()
        self._came: list[Arrival] = []
        self._ready: deque[tuple[int, int]] = deque()
        """Strangers' descriptors that were found to be ready, and have not had their turn."""
        self._strangers_fd = self._transport.strangers.fileno()
        self._flusher_fd = self._flusher.fileno()
        if isinstance(self._transport, InjectedTransport):
            self._note = self._transport.note_request
        self._transport.epoll.register(self._flusher_fd, READ)

    def _on_source(self, replica: Replica, fd: int, mask: int, now: Micros) -> None:
        channel = self._transport.by_fd.get(fd)
        if channel is not None:
            self._on_channel(replica, channel, mask, now)
        elif fd == self._flusher_fd:
            self._on_flusher(replica, now)
        elif fd == self._strangers_fd and not self._ready:
            self._ready.extend(self._transport.strangers.poll(0, SLICE_FRAMES))

    def _on_flusher(self, replica: Replica, now: Micros) -> None:
        for token, code in self._flusher.completions():
            replica.on_flush(token, code, now)
        if isinstance(self._flusher.inner, InjectedFlusher):
            self._flusher.inner.counted()
        self._disk_is_back(replica, now)

    def _on_channel(self, replica: Replica, channel: Channel, mask: int, now: Micros) -> int:
        """The bytes that came."""
        if not channel.connected:
            with self._lock:
                connected = self._transport.finish_connect(channel)
            if connected:
                replica.on_connected(channel.number, now)
            else:
                self._lose(replica, channel.number, now)
            return 0
        if mask & select.EPOLLOUT:
            with self._lock:
                self._transport.flush(channel)
        if mask & _READABLE and not (channel.is_paused and not mask & _HANG_UP):
            return self._receive(channel, now)
        return 0

    def _receive(self, channel: Channel, now: Micros) -> int:
        partial_bytes = channel.partial_bytes
        frames = self._receiver.frames(channel, now, self._transport.receive_bytes(channel))
        with self._lock:
            self._transport.received(channel, frames or (), partial_bytes)
            if frames is None:
                self._transport.end(channel)
        if frames is None:
            self._came.append((codes.EVENT_LOST, channel.number, b"", 0, 0))
            return 0
        if frames:
            channel.seen_frame = True
            self._came += [(codes.EVENT_FRAME, channel.number, frame, 0, 0) for frame in frames]
        return sum(len(frame) + _LENGTH_BYTES for frame in frames) + channel.partial_bytes - partial_bytes

    # --- what came is looked at in its ranks --------------------------------------------------------------------------

    def _is_behind(self, replica: Replica) -> bool:
        return bool(self._ready or self._came or self._arrivals)

    def _catch_up(self, replica: Replica) -> None:
        self._serve_strangers(replica)
        super()._catch_up(replica)

    def _serve_strangers(self, replica: Replica) -> None:
        """A slice of what they sent. Those that were found ready and are not in it have their turn before others are
        looked for."""
        served_bytes = 0
        while self._ready and served_bytes < SLICE_BYTES and not self._over:
            fd, mask = self._ready.popleft()
            channel = self._transport.by_fd.get(fd)
            if channel is not None and channel.connected and not channel.has_ended:
                served_bytes += self._on_channel(replica, channel, mask, now_us())

    def _take_arrivals(self, replica: Replica) -> list[Arrival]:
        came, self._came = self._came, []
        return came

    def _frames_done(self, replica: Replica, frames: list[tuple[Connection, int]]) -> None:
        with self._lock:
            for connection, size_bytes in frames:
                self._transport.dealt_with(connection, size_bytes)

    def _on_event(self, replica: Replica, kind: int, connection: Connection, token: int, error: int) -> None:
        """The end of a connection, after all that came on it."""
        self._lose(replica, connection, now_us())
