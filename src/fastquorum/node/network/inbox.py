"""What waits for raft/'s decision, or for the door's, in the order of its arrival. Belongs to the replica's thread.

Knows which of raft's events a peer's answer is, and which answers are a client's; not what is made of them.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.kernels.lane import Connection
from fastquorum.node.lane.peer_events import Answer, NoAnswer
from fastquorum.raft import events as ev
from fastquorum.wire import ApiKey, Message
from fastquorum.wire.messages.fetch import FetchResponse

_RELAY_FIRST: Final = -2
"""Requests passed on are numbered downwards from here, apart from raft's own."""


class Waiting(NamedTuple):
    """A frame that came while something else was to be decided: it is looked at in its turn."""

    connection: Connection
    frame: bytes
    is_outgoing: bool
    """It came on a connection that this replica made."""


class Relayed(NamedTuple):
    """Another node's answer to a request that was passed on to it; None if there will be none."""

    number: int
    answer: Message | None


Item = ev.Event | Waiting | Relayed


class Inbox:
    """First in, first out; and the numbers of the requests that are passed on."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._relays = 0

    def __len__(self) -> int:
        return len(self._items)

    def append(self, item: Item) -> None:
        self._items.append(item)

    def put_back(self, frames: Sequence[Waiting]) -> None:
        """One connection's, which were set aside: behind everything that waits, but before what came on it later."""
        connections = {frame.connection for frame in frames}
        is_later = (isinstance(each, Waiting) and each.connection in connections for each in self._items)
        at = next((at for at, later in enumerate(is_later) if later), len(self._items))
        self._items.rotate(-at)
        self._items.extendleft(reversed(frames))
        self._items.rotate(at)

    def put_first(self, item: Item) -> None:
        """Before everything that waits."""
        self._items.appendleft(item)

    def take(self) -> Item:
        """The first. There must be one."""
        return self._items.popleft()

    def next_relay(self) -> int:
        """The number of a request that is to be passed on, by which its answer is known."""
        number = _RELAY_FIRST - self._relays
        self._relays += 1
        return number

    def add_answer(self, answer: Answer | NoAnswer) -> None:
        """A peer's, to raft/ or to a request that was passed on."""
        match answer:
            case Answer(_, correlation_id, _, message) if correlation_id <= _RELAY_FIRST:
                self.append(Relayed(correlation_id, message))
            case NoAnswer(_, correlation_id, _) if correlation_id <= _RELAY_FIRST:
                self.append(Relayed(correlation_id, None))
            case Answer(source, correlation_id, ApiKey.FETCH, message):
                assert isinstance(message, FetchResponse)
                self.append(ev.FetchResponseReceived(source, correlation_id, message, None))
            case Answer(source, correlation_id, _, message):
                self.append(ev.ResponseReceived(source, correlation_id, message))
            case NoAnswer(destination, correlation_id, unsupported):
                self.append(ev.RequestFailed(destination, correlation_id, unsupported))
