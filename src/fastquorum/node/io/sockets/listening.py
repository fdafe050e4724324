"""The listening socket. Source: socket(7), ip(7), ipv6(7)."""

import asyncio
import errno
import os
import socket
from typing import Final

from fastquorum.addresses import AddressError, is_loopback
from fastquorum.errors import ConfigError
from fastquorum.node.io.sockets.resolving import Address, literal, look_up
from fastquorum.types import LISTENER_NAME, Endpoint

BACKLOG: Final = 512
NAME_SERVER_S: Final = 5.0
"""How long a name server may think about the name that is to be listened on."""
_TURNS_TO_TAKE_IN: Final = 3
"""An asyncio server that has accepted a connection calls back within so many turns of its loop."""
_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL)
"""What bind(2) says of an address that this machine does not have, or of its family."""


def listen(bind: Endpoint, key: str = "listeners") -> socket.socket:
    """A non-blocking listening socket. An empty host means every address, IPv4 and IPv6; of a name's addresses it is
    the first that this machine has, one that others reach before a loopback one. ConfigError, naming the address and
    the setting, if it cannot be had.
    """
    addresses = (
        [Address(family, (host, bind.port)) for family, host in _EVERYWHERE] if not bind.host else _of(bind, key)
    )
    for address in addresses:
        try:
            return _listen_at(address, is_for_both=not bind.host)
        except OSError as error:
            if error.errno not in _NOT_HERE or address == addresses[-1]:
                raise ConfigError(*_refusal(bind.address, error), key) from error
    raise AssertionError("there is an address at least")


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


_EVERYWHERE: Final = ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0"))


def _of(bind: Endpoint, key: str) -> list[Address]:
    """The addresses of a host, in the order in which they are tried."""
    try:
        address = literal(bind.host, bind.port)
    except AddressError as error:
        raise ConfigError(f"{bind.address}: {error}", "listen on an address of this machine", key) from error
    if address is not None:
        return [address]
    found = look_up([bind.host], NAME_SERVER_S)[bind.host]
    if not found.addresses:
        raise ConfigError(f"{bind.address}: {found.reason}", "listen on an address of this machine", key)
    ordered = sorted(found.addresses, key=lambda each: is_loopback(each.address[0]))
    return [Address(each.family, (each.address[0], bind.port, *each.address[2:])) for each in ordered]


def _listen_at(address: Address, *, is_for_both: bool) -> socket.socket:
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_for_both and address.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address.address)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


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
