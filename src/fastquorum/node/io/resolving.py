"""Host names to addresses, away from the replica's thread: a slow name server must not cost an election.

Literal addresses never come here. Every connection resolves anew, so that a voter may move.
"""

import queue
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from fastquorum.kernels.lane import Connection


class Address(NamedTuple):
    """What connect(2) takes."""

    family: int
    address: Any


def literal(host: str, port: int) -> Address | None:
    """The address, if the host is one already."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except OSError:
        return None
    family, _, _, _, address = found[0]
    return Address(family, address)


class Resolver:
    """A thread, started by the first name."""

    def __init__(self, report: Callable[[Connection, Address | None], None]) -> None:
        """`report` is called in the resolver's thread; None: the name is not known."""
        self._report = report
        self._names: queue.SimpleQueue[tuple[Connection, str, int] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, connection: Connection, host: str, port: int) -> None:
        if self._thread is None:
            # A daemon: getaddrinfo cannot be interrupted, and a stop must not wait for a name server.
            self._thread = threading.Thread(target=self._run, name="fastquorum-resolver", daemon=True)
            self._thread.start()
        self._names.put((connection, host, port))

    def close(self) -> None:
        if self._thread is not None:
            self._names.put(None)

    def _run(self) -> None:
        while (asked := self._names.get()) is not None:
            connection, host, port = asked
            try:
                family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
                self._report(connection, Address(family, address))
            except OSError:
                self._report(connection, None)
