"""The loop's second half: what has come on connections is looked at in its ranks (`arrivals`), a slice at a time.

A subclass brings what has come, in the order of each connection, and takes back what was dealt with.
"""

from collections.abc import Callable
from typing import Final, Protocol

from fastquorum.kernels import codes
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.arrivals import URGENT_SLICES, Arrival, Arrivals
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.reactor import Reactor, ReactorTransport
from fastquorum.node.replica import Replica
from fastquorum.wire import READ_ONLY_APIS

_READS: Final = frozenset(key.to_bytes(2, "big") for key in READ_ONLY_APIS)


class RankedTransport(ReactorTransport, Protocol):
    """The transport of a ranked reactor: two questions more than the loop has."""

    def is_broken(self, connection: Connection) -> bool: ...
    def is_accepted(self, connection: Connection) -> bool: ...


class RankedReactor(Reactor):
    """See the module."""

    _transport: RankedTransport
    _note: Callable[[Connection, bytes], None] | None = None
    """Told of each request, for failpoints."""

    def _loop(self, replica: Replica) -> None:
        self._arrivals = Arrivals(replica.connections.is_voters, replica.connections.is_consumers)
        self._done: list[tuple[Connection, int]] = []
        """Frames that were dealt with since the subclass was told so, and their sizes in bytes."""
        self._left: list[Arrival] = []
        """What the replica's end has kept from being looked at."""
        super()._loop(replica)

    # --- a subclass's -------------------------------------------------------------------------------------------------

    def _take_arrivals(self, replica: Replica) -> list[Arrival]:
        """What has come since the last call."""
        raise NotImplementedError

    def _frames_done(self, replica: Replica, frames: list[tuple[Connection, int]]) -> None:
        """These are dealt with: their connections' next ones need not wait behind them."""
        raise NotImplementedError

    def _on_event(self, replica: Replica, kind: int, connection: Connection, token: int, error: int) -> None:
        """Anything but a frame."""
        raise NotImplementedError

    # --- a turn's end -------------------------------------------------------------------------------------------------

    def _catch_up(self, replica: Replica) -> None:
        for _ in range(URGENT_SLICES):
            self._arrivals.add(self._take_arrivals(replica))
            if self._over:  # what has arrived stays where `_close` finds it
                return
            urgent = self._arrivals.take_urgent()
            if not urgent:
                break
            self._look_at(replica, urgent)
        if not self._over:
            self._look_at(replica, self._arrivals.take_others())
        if not self._over:
            self._report_done(replica)

    def _report_done(self, replica: Replica) -> None:
        """Report the frames that are dealt with: all but those set aside, which are the last of their connection."""
        left = {connection: len(frames) for connection, frames in replica.connections.frames_set_aside.items()}
        kept: list[tuple[Connection, int]] = []
        if left:
            done: list[tuple[Connection, int]] = []
            for each in reversed(self._done):
                left[each[0]] = left.get(each[0], 0) - 1
                (done if left[each[0]] < 0 else kept).append(each)
            self._done = done[::-1]
        if self._done:
            self._frames_done(replica, self._done)
        self._done = kept[::-1]

    def _look_at(self, replica: Replica, arrivals: list[Arrival]) -> None:
        """Frames that are next to each other are looked at together: what they bring about is written together."""
        frames: list[tuple[Connection, bytes]] = []
        for kind, connection, frame, token, error in arrivals:
            if kind == codes.EVENT_FRAME:
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

    def _is_in_vain(self, connection: Connection, frame: bytes) -> bool:
        """A request that changes nothing, and whose answer cannot be sent: what a thousand connections asked before
        they were closed may be minutes' work, for which everybody else would wait. What changes something is done: its
        sender may count on it, or have wanted no answer."""
        return frame[:2] in _READS and self._transport.is_broken(connection)
