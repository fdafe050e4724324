"""The socket at which a member listens for its controller. Belongs to the member's thread. Source: accept(2)."""

import select
import socket
from dataclasses import replace
from typing import Final

from fastquorum.broker.settings import MemberSettings
from fastquorum.config import MS
from fastquorum.kernels.lane import Connection
from fastquorum.node.io.repeating import Repeating
from fastquorum.node.io.sockets.accepting import OUT_OF_DESCRIPTORS, shortage
from fastquorum.node.io.sockets.listening import bound_endpoint, listen
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.types import Endpoint, Micros

CONNECTIONS_MAX: Final = 16
"""Most connections; a controller has one. A further one takes the place of the one that is silent longest."""
PAUSE_US: Final = 100 * MS
"""Time until it tries to accept again when the process has no free descriptor."""
NEVER: Final = -1


def listening(settings: MemberSettings) -> tuple[MemberSettings, socket.socket]:
    """Return a socket at the member's one listener, and the settings with its port. ConfigError if it cannot be
    bound."""
    (listener,) = settings.listeners
    at = Endpoint(listener.name, listener.host, listener.port)
    sock = listen(at, "port")
    port = bound_endpoint(sock, at).port
    return replace(settings, listeners=(listener._replace(port=port),)), sock


class ControlPort:
    """The listening socket of one member."""

    def __init__(self, sock: socket.socket, transport: SocketTransport) -> None:
        self.fd: Final = sock.fileno()
        self._sock = sock
        self._transport = transport
        self.deadline_us: Micros = NEVER
        """When `on_tick` is due."""
        self._shortage = Repeating()
        transport.epoll.register(self.fd, select.EPOLLIN)

    def accept(self, now_us: Micros) -> Connection | None:
        """Accept a waiting connection; return the connection that has to make room for it, if any."""
        try:
            sock, _ = self._sock.accept()
        except OSError as error:
            if error.errno in OUT_OF_DESCRIPTORS:
                self._shortage.say(shortage(self._sock, error))
                self._transport.epoll.modify(self.fd, 0)
                self.deadline_us = now_us + PAUSE_US
            return None  # or whoever came has gone already
        silent = None
        if sum(each.accepted for each in self._transport.channels()) >= CONNECTIONS_MAX:
            silent = self._transport.oldest_silent(now_us, 0)
        self._transport.accept(sock)
        return silent

    def on_tick(self, now_us: Micros) -> None:
        """Try to accept again."""
        if NEVER != self.deadline_us <= now_us:
            self.deadline_us = NEVER
            self._transport.epoll.modify(self.fd, select.EPOLLIN)

    def close(self) -> None:
        """Close the socket, in the child of a fork, too: the port must not outlive the member."""
        self._sock.close()
