"""One TCP connection: its frames in, its bytes out, and since when it owes us something.

Reading belongs to the replica's thread. `outbox` and everything about sending is guarded by the lane lock (one writer
per socket).
"""

import socket
from collections import deque

from fastquorum.kernels import FrameSplitter
from fastquorum.kernels.lane import Connection
from fastquorum.types import Micros

NEVER: Micros = -1


class Channel:
    """State of one connection; the transport and the reactor act on it."""

    __slots__ = (
        "accepted",
        "announced_bytes",
        "broken",
        "connected",
        "contact_us",
        "drain_wanted",
        "fd",
        "has_ended",
        "is_favoured",
        "is_paused",
        "number",
        "opened_us",
        "outbox",
        "outbox_bytes",
        "partial_since_us",
        "seen_frame",
        "sock",
        "splitter",
        "unsent_since_us",
        "waiting",
        "waiting_bytes",
    )

    def __init__(
        self, number: Connection, sock: socket.socket | None, splitter: FrameSplitter, *, accepted: bool, now_us: Micros
    ) -> None:
        self.number = number
        self.sock = sock
        """None while the host name is being resolved."""
        self.fd = sock.fileno() if sock is not None else -1
        self.splitter = splitter
        self.accepted = accepted
        self.connected = accepted
        self.broken = False
        """No more is sent; the replica's thread will find out why and report it."""
        self.is_paused = False
        """Not read from until it has taken what it is owed, or has its turn."""
        self.has_ended = False
        """The other side sends no more; what came before may still be answered."""
        self.waiting = 0
        """Frames that came on it, and are not dealt with."""
        self.waiting_bytes = 0
        self.is_favoured = False
        """A voter's."""
        self.drain_wanted = False
        """The replica waits until its other side has read."""
        self.opened_us = now_us
        self.contact_us = now_us
        self.seen_frame = False
        self.partial_since_us: Micros = NEVER
        """When the frame began that is not whole yet."""
        self.announced_bytes = 0
        """What it is to be, its length included; 0 if that is not known."""
        self.outbox: deque[memoryview] = deque()
        self.outbox_bytes = 0
        self.unsent_since_us: Micros = NEVER
        """When the oldest byte in the outbox was put there, or the socket last took some."""

    @property
    def partial_bytes(self) -> int:
        """Bytes at hand of the frame that is not whole yet."""
        return self.splitter.pending_bytes

    @property
    def missing_bytes(self) -> int:
        """Bytes still to come of the frame that is not whole yet; 0 if that is not known."""
        return max(self.announced_bytes - self.partial_bytes, 0)

    @property
    def yields(self) -> bool:
        """Others go first, if this node keeps too much: neither is it a voter's, nor did this node make it."""
        return self.accepted and not self.is_favoured

    def is_overdue(
        self, now_us: Micros, *, partial_us_max: Micros, idle_us_max: Micros, connect_us_max: Micros
    ) -> bool:
        """It has not done in time what it began: connecting, its first frame, a frame, or reading our answers."""
        if not self.connected:
            return now_us - self.opened_us > connect_us_max
        since = [each for each in (self.partial_since_us, self.unsent_since_us) if each != NEVER]
        if self.accepted and not self.seen_frame:
            since.append(self.opened_us)
        if any(now_us - each > partial_us_max for each in since):
            return True
        return self.accepted and now_us - self.contact_us > idle_us_max
