"""Frames off a socket: what has arrived, split where its lengths say. Knows no protocol. Source: recv(2)."""

from collections.abc import Sequence
from typing import Final

from fastquorum.errors import FrameError
from fastquorum.node.io.sockets.channel import NEVER, Channel
from fastquorum.types import Micros

RECEIVE_BYTES: Final = 1024 * 1024


class Receiver:
    """One thread's, for all its connections."""

    def __init__(self) -> None:
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)

    def frames(self, channel: Channel, now: Micros, bytes_max: int = RECEIVE_BYTES) -> Sequence[bytes] | None:
        """The whole frames that one read, of so many bytes at most, brings; None: the connection is over.

        It may end in the middle of a frame: what was begun is not acted upon.
        """
        sock = channel.sock
        assert sock is not None
        try:
            size = sock.recv_into(self._buffer, bytes_max)
        except (BlockingIOError, InterruptedError):
            return ()
        except OSError:
            return None
        if size == 0:
            return None
        channel.contact_us = now
        view = self._view
        if channel.partial_since_us == NEVER and int.from_bytes(view[:4], "big", signed=True) == size - 4 >= 0:
            # One whole frame, as in the steady state: it needs no splitting.
            return (bytes(view[4:size]),)
        try:
            frames = channel.splitter.feed(view[:size])
        except (FrameError, MemoryError):  # a frame for which there is no memory costs its connection
            return None
        pending_bytes = channel.splitter.pending_bytes
        if not pending_bytes:
            channel.partial_since_us, channel.announced_bytes = NEVER, 0
        elif frames or channel.partial_since_us == NEVER:
            channel.partial_since_us, begin = now, size - pending_bytes
            length = view[begin : min(begin + 4, size)]
            channel.announced_bytes = 4 + int.from_bytes(length, "big") if len(length) == 4 else 0
        return frames
