"""The ledger of requests on accepted connections: in which order they came, which are not answered yet, and which
answers wait for an earlier one. Sans-IO; belongs to the replica's thread; must not know what is asked or answered.

Answers leave a connection in the order of its requests. What is kept of a connection has a bound; beyond it nothing
more of the connection is looked at until its first answer has left. Source: the Kafka protocol guide (order of
responses).
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

from fastquorum.kernels.lane import Connection
from fastquorum.raft.events import Token
from fastquorum.wire import Frames, Message, RequestHeader

UNANSWERED_MAX: Final = 256
"""Requests that one connection may have open; beyond it the client is hung up on."""
HELD_BYTES_MAX: Final = 256 * 1024
"""Answers of one connection that wait for an earlier one, but for the one that goes beyond it."""
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
"""Requests under way of one connection, but for the one that goes beyond it."""
ALL_BYTES_MAX: Final = 64 * 1024 * 1024
"""Both, of all connections: beyond it none may have a second request under way."""


class Replier(Protocol):
    """Sends responses."""

    def reply(self, request: "Request", message: Message | None) -> None:
        """Answer a request in the order of its connection's; None where the client wants no response (acks=0)."""


@dataclass(slots=True, eq=False, repr=False)
class Request:
    """A decoded request. It waits until `reply` is called, or its connection is gone."""

    token: Final[Token]
    connection: Final[Connection]
    header: Final[RequestHeader]
    message: Final[Message]
    size_bytes: Final[int]
    """The bytes of its frame."""
    frames: Final[Frames]
    _replier: Replier
    is_waiting: bool = True
    """Nobody has answered it, and its connection is there. The ledger's to set."""
    response_frame: bytes = b""
    """The response while it waits for an earlier one; empty if none is wanted. The ledger's to set."""

    def reply(self, message: Message | None) -> None:
        """Answer it; None where the client wants no response (acks=0). Nothing happens if it does not wait any more.

        Raises WireError if the message does not fit the layout that the client asked for.
        """
        self._replier.reply(self, message)

    def encoded(self, message: Message) -> bytes:
        """The response frame, without its length."""
        return self.frames.encode_answer(self.header, message)


@dataclass(slots=True, eq=False, repr=False)
class _Account:
    """What one accepted connection has under way."""

    frames_received: int = 0
    """All that ever came, requests of raft/ and the lane among them."""
    frames_answered: int = 0
    open: deque[Request] = field(default_factory=deque)
    """Requests whose responses have not left, the first one first."""
    open_bytes: int = 0
    """Bytes of the requests in `open` that wait."""
    held_bytes: int = 0
    """Bytes of the responses in `open`."""
    is_replica: bool = False
    is_consumer: bool = False


class Requests:
    """All requests of one replica's accepted connections."""

    def __init__(self) -> None:
        self._accounts: dict[Connection, _Account] = {}
        self._waiting: dict[Token, Request] = {}
        self._next_token: Token = 1
        self.kept_bytes = 0
        """Requests that wait and responses that wait, of all connections."""

    def __len__(self) -> int:
        """Requests that are not answered yet."""
        return len(self._waiting)

    # --- frames -------------------------------------------------------------------------------------------------------

    def received(self, connection: Connection) -> None:
        """A frame came, whoever is to answer it."""
        self._account(connection).frames_received += 1

    def answered(self, connection: Connection) -> int:
        """One more frame is answered, or wanted no answer. How many came, if all of them are answered now; else 0."""
        account = self._accounts.get(connection)
        if account is None:
            return 0
        account.frames_answered += 1
        return account.frames_received if account.frames_answered == account.frames_received else 0

    def owes(self, connection: Connection) -> bool:
        """A frame that came on it is not answered yet."""
        account = self._accounts.get(connection)
        return account is not None and account.frames_answered != account.frames_received

    def __contains__(self, connection: Connection) -> bool:
        """A frame came on it, and it is not forgotten."""
        account = self._accounts.get(connection)
        return account is not None and account.frames_received > 0

    # --- the other side -----------------------------------------------------------------------------------------------

    def note_replica(self, connection: Connection) -> None:
        """A replica's Fetch came on it."""
        account = self._accounts.get(connection)
        if account is not None:
            account.is_replica = True

    def note_consumer(self, connection: Connection) -> None:
        """A consumer's Fetch came on it."""
        account = self._accounts.get(connection)
        if account is not None:
            account.is_consumer = True

    def is_replica(self, connection: Connection) -> bool:
        """True once a replica's Fetch came on it: its frames go to the lane first."""
        account = self._accounts.get(connection)
        return account is not None and account.is_replica

    def is_consumer(self, connection: Connection) -> bool:
        """True once a consumer's Fetch came on it, and no replica's."""
        account = self._accounts.get(connection)
        return account is not None and account.is_consumer and not account.is_replica

    # --- requests and answers -----------------------------------------------------------------------------------------

    def add(
        self,
        connection: Connection,
        header: RequestHeader,
        message: Message,
        size_bytes: int,
        frames: Frames,
        replier: Replier,
    ) -> Request | None:
        """A request that waits from now on. None: the connection has too many open already."""
        account = self._account(connection)
        if len(account.open) >= UNANSWERED_MAX:
            return None
        request = Request(self._next_token, connection, header, message, size_bytes, frames, replier)
        self._next_token += 1
        self._waiting[request.token] = request
        account.open.append(request)
        account.open_bytes += size_bytes
        self.kept_bytes += size_bytes
        return request

    def find(self, token: Token) -> Request | None:
        """A request that waits."""
        return self._waiting.get(token)

    def answer(self, request: Request, frame: bytes) -> list[bytes]:
        """A request that waits has this response; empty where none is wanted. The responses that may leave now, in
        their order."""
        account = self._take(request)
        request.response_frame = frame
        account.held_bytes += len(frame)
        self.kept_bytes += len(frame)
        leaving: list[bytes] = []
        while account.open and not account.open[0].is_waiting:
            leaving.append(account.open.popleft().response_frame)
        left_bytes = sum(map(len, leaving))
        account.held_bytes -= left_bytes
        self.kept_bytes -= left_bytes
        self._drop_unused(request.connection, account)
        return leaving

    def withdraw(self, request: Request) -> None:
        """The lane answers a request that waits."""
        account = self._take(request)
        account.open.remove(request)
        self._drop_unused(request.connection, account)

    def is_next(self, request: Request) -> bool:
        """Would its response leave at once?"""
        account = self._accounts.get(request.connection)
        return account is not None and bool(account.open) and account.open[0] is request

    def holds_too_much(self, connection: Connection) -> bool:
        """Nothing more may be begun for it until its first request is answered."""
        account = self._accounts.get(connection)
        if account is None or not account.open:
            return False
        has_most = account.held_bytes > HELD_BYTES_MAX or account.open_bytes > REQUEST_BYTES_MAX
        return has_most or self.kept_bytes > ALL_BYTES_MAX

    def forget(self, connection: Connection) -> bool:
        """The connection is gone, and with it every response owed on it. True if a request was open."""
        account = self._accounts.pop(connection, None)
        if account is None:
            return False
        self.kept_bytes -= account.held_bytes + account.open_bytes
        for request in account.open:
            request.is_waiting = False
            self._waiting.pop(request.token, None)
        return bool(account.open)

    def _account(self, connection: Connection) -> _Account:
        return self._accounts.setdefault(connection, _Account())

    def _take(self, request: Request) -> _Account:
        """A request waits no longer."""
        account = self._accounts[request.connection]
        del self._waiting[request.token]
        request.is_waiting = False
        account.open_bytes -= request.size_bytes
        self.kept_bytes -= request.size_bytes
        return account

    def _drop_unused(self, connection: Connection, account: _Account) -> None:
        """A request that was handed up before its connection was forgotten makes an account that nobody else
        forgets."""
        if not account.open and not account.frames_received:
            del self._accounts[connection]
