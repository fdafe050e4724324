"""The listening socket. Source: socket(7), ip(7)."""

import asyncio
import errno
import os
import socket
from typing import Final

from fastquorum.errors import ConfigError
from fastquorum.types import LISTENER_NAME, Endpoint

BACKLOG: Final = 512
_TURNS_TO_TAKE_IN: Final = 3
"""An asyncio server that has accepted a connection calls back within so many turns of its loop."""


def listen(bind: Endpoint, key: str = "listeners") -> socket.socket:
    """A non-blocking listening socket. ConfigError, naming the address and the setting, if it cannot be had."""
    where = f"{bind.host}:{bind.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            bind.host or None, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(
            f"{where} cannot be resolved: {error.strerror}", "listen on an address of this machine", key
        ) from error
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ConfigError(*_refusal(where, error), key) from error
    return sock


def bound_endpoint(sock: socket.socket, bind: Endpoint) -> Endpoint:
    """Where it listens, with the port the kernel chose if 0 was asked for."""
    return Endpoint(bind.name or LISTENER_NAME, bind.host, int(sock.getsockname()[1]))


async def stop_listening(server: asyncio.Server) -> None:
    """Close the server; whomever it had accepted by then, its callback has been told of when this returns.

    An asyncio server that is just closed leaves a connection open that it accepted in the same turn, told to nobody.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    for _ in range(_TURNS_TO_TAKE_IN):
        await asyncio.sleep(0)
    server.close()


def _refusal(where: str, error: OSError) -> tuple[str, str]:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"{where} is taken",
                "stop what uses it (`ss -tanp` names it, be it an outgoing connection), or choose another port",
            )
        case errno.EADDRNOTAVAIL:
            return f"{where} is not an address of this machine", "listen on 0.0.0.0 and advertise the other address"
        case errno.EACCES | errno.EPERM:
            return f"{where} may not be bound by this user", "choose a port above 1023"
        case _:
            return f"{where} cannot be bound: {os.strerror(error.errno or 0)}", "choose another address"
