"""Clients' requests under way, by connection: their answers leave in the order of the requests, and what is kept has a
bound. Sans-IO; must not know what is asked or answered.

Kept are the requests that wait, and the answers that wait for an earlier one. Beyond a bound nothing more of the
connection is looked at until its first answer has left. Source: the Kafka protocol guide (order of responses).
"""

from collections import deque
from typing import Final

from fastquorum.kernels.lane import Connection
from fastquorum.node.network.inbound import Request
from fastquorum.raft.events import Token

UNANSWERED_MAX: Final = 256
"""Requests that one connection may have open; beyond it the client is hung up on."""
HELD_BYTES_MAX: Final = 256 * 1024
"""Answers of one connection that wait for an earlier one, but for the one that goes beyond it."""
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""Requests under way of one connection, but for the one that goes beyond it."""
ALL_BYTES_MAX: Final = 64 * 1024 * 1024
"""Both, of all connections: beyond it none may have a second request under way."""


class _Slot:
    """The place of one request in its connection's order of answers."""

    __slots__ = ("frame", "request_bytes", "token")

    def __init__(self, token: Token, request_bytes: int) -> None:
        self.token = token
        self.request_bytes = request_bytes
        self.frame: bytes | None = None
        """The answer; empty for a request that wants none."""


class _Order:
    """What one connection has under way, the first request first."""

    __slots__ = ("held_bytes", "request_bytes", "slots")

    def __init__(self) -> None:
        self.slots: deque[_Slot] = deque()
        self.held_bytes = 0
        self.request_bytes = 0


class AnswerOrder:
    """All connections of one replica."""

    def __init__(self) -> None:
        self._orders: dict[Connection, _Order] = {}
        self._slots: dict[Token, _Slot] = {}
        self.kept_bytes = 0
        """Of all of them."""

    def __len__(self) -> int:
        """Requests that are not answered yet."""
        return len(self._slots)

    def __contains__(self, token: Token) -> bool:
        """The request is not answered yet, and its connection is there."""
        return token in self._slots

    def add(self, request: Request) -> bool:
        """A request came. False: the connection has too many open already."""
        order = self._orders.setdefault(request.connection, _Order())
        if len(order.slots) >= UNANSWERED_MAX:
            return False
        slot = self._slots[request.token] = _Slot(request.token, request.size_bytes)
        order.slots.append(slot)
        order.request_bytes += slot.request_bytes
        self.kept_bytes += slot.request_bytes
        return True

    def answer(self, request: Request, frame: bytes) -> list[bytes]:
        """It is answered: the answers that may leave now, in their order."""
        slot = self._slots.pop(request.token)
        order = self._orders[request.connection]
        slot.frame = frame
        order.request_bytes -= slot.request_bytes
        order.held_bytes += len(frame)
        self.kept_bytes += len(frame) - slot.request_bytes
        leaving: list[bytes] = []
        while order.slots and order.slots[0].frame is not None:
            leaving.append(order.slots.popleft().frame or b"")
        left_bytes = sum(map(len, leaving))
        order.held_bytes -= left_bytes
        self.kept_bytes -= left_bytes
        if not order.slots:
            del self._orders[request.connection]
        return leaving

    def withdraw(self, request: Request) -> None:
        """It came last, and somebody else answers it."""
        slot = self._slots.pop(request.token)
        order = self._orders[request.connection]
        order.slots.remove(slot)
        order.request_bytes -= slot.request_bytes
        self.kept_bytes -= slot.request_bytes
        if not order.slots:
            del self._orders[request.connection]

    def is_first(self, request: Request) -> bool:
        """Would its answer leave at once?"""
        order = self._orders.get(request.connection)
        return order is not None and order.slots[0].token == request.token

    def holds_too_much(self, connection: Connection) -> bool:
        """Nothing more may be begun for it until its first request is answered."""
        order = self._orders.get(connection)
        if order is None:
            return False
        has_most = order.held_bytes > HELD_BYTES_MAX or order.request_bytes > REQUEST_BYTES_MAX
        return has_most or self.kept_bytes > ALL_BYTES_MAX

    def forget(self, connection: Connection) -> bool:
        """The connection is gone. True if it had something under way."""
        order = self._orders.pop(connection, None)
        if order is None:
            return False
        self.kept_bytes -= order.held_bytes + order.request_bytes
        for slot in order.slots:
            self._slots.pop(slot.token, None)
        return True
