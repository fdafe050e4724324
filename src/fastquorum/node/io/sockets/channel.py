"""One TCP connection: its frames in, its bytes out, and since when it owes us something.

Reading belongs to the replica's thread. `outbox` and everything about sending is guarded by the lane lock (one writer
per socket).
"""

import socket
from collections import deque
from dataclasses import dataclass, field

from fastquorum.kernels import FrameSplitter
from fastquorum.kernels.lane import Connection
from fastquorum.types import Micros

NEVER: Micros = -1


@dataclass(slots=True, eq=False, repr=False)
class Channel:
    """State of one connection; the transport and the reactor act on it."""

    number: Connection
    sock: socket.socket | None
    """None while the host name is being resolved."""
    splitter: FrameSplitter
    accepted: bool
    opened_us: Micros
    fd: int = field(init=False)
    connected: bool = field(init=False)
    contact_us: Micros = field(init=False)
    broken: bool = False
    """No more is sent; the replica's thread will find out why and report it."""
    is_paused: bool = False
    """Not read from until it has taken what it is owed, or has its turn."""
    has_ended: bool = False
    """The other side sends no more; what came before may still be answered."""
    waiting: int = 0
    """Frames that came on it, and are not dealt with."""
    waiting_bytes: int = 0
    is_favoured: bool = False
    """A voter's."""
    drain_wanted: bool = False
    """The replica waits until its other side has read."""
    seen_frame: bool = False
    partial_since_us: Micros = NEVER
    """When the frame began that is not whole yet."""
    announced_bytes: int = 0
    """What it is to be, its length included; 0 if that is not known."""
    outbox: deque[memoryview] = field(default_factory=deque)
    outbox_bytes: int = 0
    unsent_since_us: Micros = NEVER
    """When the oldest byte in the outbox was put there, or the socket last took some."""

    def __post_init__(self) -> None:
        self.fd = self.sock.fileno() if self.sock is not None else -1
        self.connected = self.accepted
        self.contact_us = self.opened_us

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
