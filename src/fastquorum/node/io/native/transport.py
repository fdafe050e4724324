"""The Transport port over the native shell's sockets. Connecting and accepting begin here; bytes move natively.

A socket's descriptor is the native side's from `add` on. Everything may be called from any thread that may call the
port; the native lock keeps sockets whole.
"""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING

from fastquorum.addresses import AddressError
from fastquorum.config import QuorumConfig
from fastquorum.errnos import reason
from fastquorum.kernels import Buffer
from fastquorum.kernels.lane import NO_CONNECTION, Connection
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.sockets.dialing import Dialed
from fastquorum.node.io.sockets.outgoing import Outgoing, begin_connect, dial_timeout_s, numeric_address
from fastquorum.node.io.sockets.resolving import Address
from fastquorum.types import Endpoint, Micros

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Shell


class NativeTransport(Outgoing):
    """All connections of one replica."""

    def __init__(self, config: QuorumConfig, shell: Shell) -> None:
        """The native threads have epoll sets of their own; their news say what is drained, `drained` stays empty."""
        super().__init__()
        self._config = config
        self._shell = shell
        self._next_number: Connection = 1
        self._number_guard = threading.Lock()
        self._dialing: dict[Connection, Micros] = {}
        """Connections without a socket yet, and when they were begun."""
        self._is_held = False

    # --- the port -----------------------------------------------------------------------------------------------------

    def connect(self, endpoint: Endpoint) -> Connection:
        """Begin to connect; `Replica.on_connected` or `on_disconnected` follows."""
        number = self._number()
        try:
            self.errors.begin(number, endpoint)
            address = numeric_address(endpoint)
        except AddressError as error:
            self._came_to_nothing(number, str(error))
            return number
        if address is None:
            self._dialing[number] = now_us()
            self._dialer.dial(number, endpoint, dial_timeout_s(self._config))
        else:
            self._begin_connect(number, address)
        return number

    def send(self, connection: Connection, frame: Buffer) -> None:
        """Send one frame, or what the socket takes of it; the rest follows when it takes more."""
        self._shell.send(connection, frame)

    def favour(self, connection: Connection) -> None:
        """It is a voter's."""
        self._shell.favour(connection)

    def needs_drain(self, connection: Connection) -> bool:
        return self._shell.needs_drain(connection)

    def is_crowded(self) -> bool:
        return self._shell.is_crowded()

    def close(self, connection: Connection) -> None:
        """Close; no report follows."""
        if self._dialing.pop(connection, None) is not None:
            self._dialer.cancel(connection)
        self._shell.close_connection(connection)
        self.errors.forget(connection)  # whoever waits for that goes on when nothing is sent any more

    # --- for the reactor, on the replica's thread ---------------------------------------------------------------------

    def __len__(self) -> int:
        return self._shell.connection_count() + len(self._dialing)

    def knows(self, connection: Connection) -> bool:
        return connection in self._dialing or self._shell.knows(connection)

    def is_broken(self, connection: Connection) -> bool:
        """Nothing can be sent on it any more, though its end has not been told yet."""
        return self._shell.is_broken(connection)

    def is_accepted(self, connection: Connection) -> bool:
        return self._shell.is_accepted(connection)

    def accept(self, sock: socket.socket) -> Connection:
        """Take over an accepted socket. One that the system has no room to watch is closed."""
        number = self._number()
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            sock.close()
            return number
        if self._shell.add(number, sock.fileno(), is_accepted=True, now_us=now_us()) == 0:
            sock.detach()
        else:
            sock.close()
        return number

    def take_over(self, connection: Connection, dialed: Dialed) -> None:
        """A connection to a name was made, or came to nothing."""
        began_us = self._dialing.pop(connection, None)
        if began_us is None:  # closed meanwhile
            if dialed.sock is not None:
                dialed.sock.close()
        elif dialed.sock is None:
            self._came_to_nothing(connection, dialed.reason)
        else:
            self._add(connection, dialed.sock, began_us)

    def ended(self, connection: Connection, error: int) -> None:
        """The native side has lost it, with this errno if it was never connected."""
        if error:
            self.errors.failed(connection, os.strerror(error))

    def overdue(self, now: Micros) -> list[Connection]:
        """Return the connections that have not done in time what they began."""
        config = self._config
        late = [each for each, began_us in self._dialing.items() if now - began_us > config.request_timeout_us]
        return late + self._shell.overdue(
            now,
            partial_us_max=config.partial_frame_us_max,
            idle_us_max=config.connection_idle_us_max,
            connect_us_max=config.request_timeout_us,
        )

    def oldest_silent(self, now: Micros, silent_us_min: Micros) -> Connection | None:
        """The accepted connection that has been silent longest, if for long enough: it makes room for another."""
        found = self._shell.oldest_silent(now, silent_us_min)
        return None if found == NO_CONNECTION else found

    def break_off(self, connection: Connection) -> None:
        """Give a connection up and have its end reported."""
        self._shell.break_off(connection)

    def _close_connections(self) -> None:
        self._dialing.clear()
        self._shell.close_all(now_us())

    def before_fork(self) -> None:
        """Hold the native threads still; nothing if they are over."""
        if not self._closed:
            self._shell.before_fork()
            self._is_held = True

    def after_fork(self) -> None:
        """In the parent."""
        if self._is_held:
            self._is_held = False
            self._shell.after_fork()

    def _abandon_connections(self) -> None:
        self._shell.abandon_in_child()

    # --- inner --------------------------------------------------------------------------------------------------------

    def _number(self) -> Connection:
        with self._number_guard:
            number = self._next_number
            self._next_number += 1
        return number

    def _begin_connect(self, connection: Connection, address: Address) -> None:
        try:
            self._add(connection, begin_connect(address), now_us())
        except OSError as error:  # or no descriptors are left; the link tries again later
            self._came_to_nothing(connection, reason(error))

    def _add(self, connection: Connection, sock: socket.socket, began_us: Micros) -> None:
        """The native side finds it connected, or sees how that ends."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            sock.close()
            self._came_to_nothing(connection, reason(error))
            return
        code = self._shell.add(connection, sock.fileno(), is_accepted=False, now_us=began_us)
        if code == 0:
            sock.detach()
        else:
            sock.close()
            self._came_to_nothing(connection, os.strerror(code))
