"""What both transports keep of the connections that they make: where to, and why one came to nothing."""

import errno
import os
import socket
import threading
from collections import deque
from collections.abc import Iterable
from typing import Final

from fastquorum.addresses import AddressError, check_reachable, place
from fastquorum.config import QuorumConfig
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.sockets.dialing import Dialed, Dialer
from fastquorum.node.io.sockets.resolving import Address, literal, try_elsewhere
from fastquorum.node.io.sockets.waking import waking_epoll
from fastquorum.types import Endpoint

Place = tuple[str, int]
"""Host and port in one spelling."""
ERRORS_MAX: Final = 256
"""Most endpoints of which the last error is kept."""


def numeric_address(endpoint: Endpoint) -> Address | None:
    """Return the address of a peer; None if it is a name. Raises AddressError if no peer can be there: another node's
    log says where the voters are, so that anything may be in there."""
    check_reachable(endpoint.host)
    return literal(endpoint.host, endpoint.port)


def begin_connect(address: Address) -> socket.socket:
    """Return a socket whose connection to `address` is under way, or made. Raises OSError."""
    sock = socket.socket(address.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        code = sock.connect_ex(address.address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
    except OSError:
        sock.close()
        raise
    return sock


def dial_timeout_s(config: QuorumConfig) -> float:
    """How long a name may take to be connected to: less than a request may, so that the reason is there first."""
    return config.request_timeout_us * 0.9 / 1e6


def close_dialed(dialed: deque[tuple[Connection, Dialed]]) -> None:
    """Close what was connected and is wanted by nobody any more."""
    while dialed:
        dialed.popleft()[1].close()


class LastErrors:
    """Why endpoints could not be reached when that was last tried."""

    def __init__(self) -> None:
        self._endpoints: dict[Connection, Endpoint] = {}
        """Endpoints of connections that were begun here and are not closed."""
        self._errors: dict[Endpoint, str] = {}
        self._guard = threading.Lock()
        """Guards all of this: connections are begun in one thread and may end in another."""
        self._has_ended = threading.Condition(self._guard)
        self._cut_off: frozenset[Place] = frozenset()

    def begin(self, connection: Connection, endpoint: Endpoint) -> None:
        """A connection is to be made. AddressError if that place is cut off."""
        with self._guard:
            self._endpoints[connection] = endpoint
            if place(endpoint) in self._cut_off:
                raise AddressError("cut off by a test")

    def cut_off(self, places: frozenset[Place]) -> list[Connection]:
        """Have no connection begin to these places from now on, to all others again. Return those that there are."""
        with self._guard:
            self._cut_off = places
            return [each for each, endpoint in self._endpoints.items() if place(endpoint) in places]

    def failed(self, connection: Connection, reason: str) -> None:
        """It came to nothing. Nothing is kept of one that was accepted."""
        with self._guard:
            endpoint = self._endpoints.get(connection)
            if endpoint is None:
                return
            self._errors.pop(endpoint, None)
            self._errors[endpoint] = reason
            if len(self._errors) > ERRORS_MAX:
                del self._errors[next(iter(self._errors))]

    def connected(self, connection: Connection) -> None:
        """It was made."""
        with self._guard:
            endpoint = self._endpoints.get(connection)
            if endpoint is not None:
                self._errors.pop(endpoint, None)

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        with self._guard:
            self._endpoints.pop(connection, None)
            self._has_ended.notify_all()

    def are_forgotten(self, connections: Iterable[Connection], timeout_s: float) -> bool:
        """Wait until all of these are closed; False if that takes too long."""
        with self._guard:
            return self._has_ended.wait_for(lambda: self._endpoints.keys().isdisjoint(connections), timeout_s)

    def of(self, endpoint: Endpoint) -> str:
        """The last error; empty if there is none."""
        return self._errors.get(endpoint, "")


class Outgoing:
    """The part of both transports that makes connections, and wakes the replica's thread."""

    def __init__(self) -> None:
        self.epoll, self.wake_fd = waking_epoll()
        """What the replica's thread waits for."""
        self.lost: deque[Connection] = deque()
        """Connections whose end the replica's thread has yet to report."""
        self.drained: deque[Connection] = deque()
        """Connections of which the replica's thread has yet to be told that they can be owed more."""
        self.dialed: deque[tuple[Connection, Dialed]] = deque()
        """Connections to names that the replica's thread has yet to take over."""
        self.errors = LastErrors()
        self._dialer = Dialer(self._on_dialed)
        self._wake_guard = threading.Lock()
        self._closed = False

    def last_error(self, endpoint: Endpoint) -> str:
        """Why the last attempt to connect there came to nothing; empty if it did not."""
        return self.errors.of(endpoint)

    def try_elsewhere(self, endpoint: Endpoint) -> None:
        """Try another address of this name next time."""
        try_elsewhere(endpoint.host)

    def wake(self) -> None:
        """Have the replica's thread look around soon. From any thread."""
        with self._wake_guard:  # lest the number be written to after it was closed, and perhaps reused
            if not self._closed:
                os.eventfd_write(self.wake_fd, 1)

    def close_all(self) -> None:
        """The end: sockets, epoll, eventfd. Last words go out as far as the sockets take them."""
        with self._wake_guard:
            if self._closed:
                return
            self._closed = True
            os.close(self.wake_fd)
        self._close_connections()
        self._dialer.close()
        close_dialed(self.dialed)
        self.epoll.close()

    def abandon_in_child(self) -> None:
        """After fork, in the child: let go of the descriptors, so that no port and no connection outlives the parent.

        Closing sends nothing: the parent still holds every socket. No lock is taken, a thread that is gone may hold it.
        """
        if self._closed:
            return  # its numbers may be somebody else's by now
        self._closed = True
        self._abandon_connections()
        self._dialer.abandon_in_child()
        close_dialed(self.dialed)
        self.epoll.close()
        os.close(self.wake_fd)

    def _close_connections(self) -> None:
        raise NotImplementedError

    def _abandon_connections(self) -> None:
        raise NotImplementedError

    def _came_to_nothing(self, connection: Connection, reason: str) -> None:
        """Note why a connection that was to be made is not."""
        self.errors.failed(connection, reason)
        self._report_lost(connection)

    def _report_lost(self, connection: Connection) -> None:
        self.lost.append(connection)
        self.wake()

    def _on_dialed(self, connection: Connection, dialed: Dialed) -> None:
        self.dialed.append((connection, dialed))
        self.wake()


def cut_off(transport: Outgoing, endpoints: Iterable[Endpoint]) -> list[Connection]:
    """Lose what is connected to these endpoints, and connect to none of them until it is called again. Return what is
    to be closed, which the replica's thread does soon. For tests of a network that is parted; from any thread."""
    connections = transport.errors.cut_off(frozenset(map(place, endpoints)))
    transport.lost.extend(connections)
    transport.wake()
    return connections
