"""Requests that wait for raft/, or for the client APIs, in the order of their arrival. Belongs to the replica's thread.

Knows which of raft's events a peer's answer is, and which answers are a client's; not what is made of them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fastquorum.kernels.lane import Connection
from fastquorum.node.lane.peer_events import PeerAnswer, UnansweredRequest
from fastquorum.raft import events as ev
from fastquorum.wire import ApiKey, Message
from fastquorum.wire.messages.fetch import FetchResponse

_FORWARDED_FIRST: Final = -2
"""Requests that are none of raft's are numbered downwards from here, apart from raft's own."""


class WaitingFrame(NamedTuple):
    """A frame that came while something else was to be decided: it is looked at in its turn."""

    connection: Connection
    frame: bytes
    is_outgoing: bool
    """It came on a connection that this replica made."""


OnResponse = Callable[[Message | None], None]
"""Takes another node's response; None if there will be none."""


class Forwarded(NamedTuple):
    """Another node's response to a request that is none of raft's; None if there will be none."""

    number: int
    response: Message | None


Item = ev.Event | WaitingFrame | Forwarded


class Inbox:
    """First in, first out; and who waits for the responses to requests that are none of raft's."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._next_number = _FORWARDED_FIRST
        self._expected: dict[int, OnResponse] = {}

    def __len__(self) -> int:
        return len(self._items)

    def append(self, item: Item) -> None:
        self._items.append(item)

    def put_back(self, frames: Sequence[WaitingFrame]) -> None:
        """One connection's, which were set aside: behind everything that waits, but before what came on it later."""
        connections = {frame.connection for frame in frames}
        is_later = (isinstance(each, WaitingFrame) and each.connection in connections for each in self._items)
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

    def expect(self, on_response: OnResponse) -> int:
        """The number of a request that is to be sent, by which its response is known."""
        number = self._next_number
        self._next_number -= 1
        self._expected[number] = on_response
        return number

    def expect_no_more(self, number: int) -> None:
        """Nobody wants the response any more."""
        self._expected.pop(number, None)

    def deliver(self, item: Forwarded) -> None:
        """Give a response to whoever waits for it."""
        on_response = self._expected.pop(item.number, None)
        if on_response is not None:
            on_response(item.response)

    def add_answer(self, answer: PeerAnswer | UnansweredRequest) -> None:
        """A peer's, to raft/ or to a request that is none of raft's."""
        match answer:
            case PeerAnswer(_, correlation_id, _, message) if correlation_id <= _FORWARDED_FIRST:
                self.append(Forwarded(correlation_id, message))
            case UnansweredRequest(_, correlation_id, _) if correlation_id <= _FORWARDED_FIRST:
                self.append(Forwarded(correlation_id, None))
            case PeerAnswer(source, correlation_id, ApiKey.FETCH, message):
                assert isinstance(message, FetchResponse)
                self.append(ev.FetchResponseReceived(source, correlation_id, message, None))
            case PeerAnswer(source, correlation_id, _, message):
                self.append(ev.ResponseReceived(source, correlation_id, message))
            case UnansweredRequest(destination, correlation_id, unsupported):
                self.append(ev.RequestFailed(destination, correlation_id, unsupported))
