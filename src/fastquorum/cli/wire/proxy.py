"""A TCP proxy that lets every byte through as it is, and shows what went by.

What it holds is bounded: it reads from one side no faster than the other side takes it. A side that closes its half, or
resets, has the same happen to the other side. Knows no Kafka.
"""

import asyncio
import contextlib
import itertools
import os
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from fastquorum.addresses import numeric
from fastquorum.errors import UsageError
from fastquorum.node.io.sockets.dialing import Dialed, Dialer
from fastquorum.node.io.sockets.listening import NAME_SERVER_S, stop_listening
from fastquorum.node.io.sockets.resolving import look_up
from fastquorum.types import Endpoint, Micros, address_text

CONNECT_S: Final = 10.0
CHUNK_BYTES: Final = 1 << 16
_BACKLOG: Final = 1024
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: a close with this resets the connection."""


class Route(NamedTuple):
    """Where to listen, and where what comes in goes."""

    listen: Endpoint
    target: Endpoint


class Tap(Protocol):
    """Looks at one connection."""

    def on_request_bytes(self, data: bytes, now_us: Micros) -> None:
        """The client sent this."""

    def on_response_bytes(self, data: bytes, now_us: Micros) -> None:
        """The target sent this."""

    def on_end(self, reason: str, now_us: Micros) -> None:
        """The connection is over. Called once."""


class Proxy:
    """Some listeners, until `close`."""

    def __init__(self, new_tap: Callable[[Route, str], Tap], tell: Callable[[str], None]) -> None:
        """`new_tap` gets the route and the client's address, for every connection that reached its target."""
        self._new_tap = new_tap
        self._tell = tell
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._unreachable: dict[Endpoint, str] = {}
        """What was told of targets that are not there: said once, until they are there again."""
        self._dialer: Dialer | None = None
        self._dials: dict[int, asyncio.Future[Dialed]] = {}
        """Connections to targets that are under way."""
        self._dialed: deque[tuple[int, Dialed]] = deque()
        """How others of them ended, as the dialer's thread left it here."""
        self._dial_numbers = itertools.count()

    async def bind(self, route: Route) -> Endpoint:
        """Take an address, for `start` to listen on; which it is. UsageError if it cannot be had."""

        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(route, reader, writer))
            self._connections.add(task)
            # Not in the task's own hands: one that `close` cancels before it has begun runs none of its code.
            task.add_done_callback(lambda _: writer.transport.abort())
            task.add_done_callback(self._connections.discard)

        where = route.listen.address
        try:
            server = await asyncio.start_server(
                serve,
                _hosts(route.listen.host),
                route.listen.port,
                limit=CHUNK_BYTES,
                backlog=_BACKLOG,
                start_serving=False,
            )
        except OSError as error:
            raise UsageError(f"cannot listen on {where}: {_reason(error)}", "choose another address") from error
        self._servers.append(server)
        return route.listen._replace(port=server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen, on every address taken."""
        loop = asyncio.get_running_loop()

        def report(number: int, dialed: Dialed) -> None:
            self._dialed.append((number, dialed))
            loop.call_soon_threadsafe(self._take_dialed)

        self._dialer = Dialer(report)
        for server in self._servers:
            await server.start_serving()

    async def close(self) -> None:
        """Take no more connections, and end those that there are."""
        for server in self._servers:
            await stop_listening(server)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._dialer is not None:
            self._dialer.close()
        self._take_dialed()  # the loop may have no turn left for what the dialer told last

    async def _serve(self, route: Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            target = await self._connect(route.target)
            if target is None:
                return
            writers.append(target[1])
            client = writer.get_extra_info("peername")
            tap = self._new_tap(route, address_text(*client[:2]) if client else "?")
            ended: list[str] = []
            try:
                await _pass_on((reader, writer), target, tap, ended)
            finally:
                tap.on_end(ended[0] if ended else "the sniffer was stopped", now_us())
            for each in writers:
                each.close()
            for each in writers:
                with contextlib.suppress(OSError):  # how it ended is known by now
                    await each.wait_closed()  # until its side has taken what is still to be sent
        finally:
            for each in writers:
                each.transport.abort()

    async def _connect(self, target: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        where = target.address
        sock, reason = await self._dial(target)
        if sock is None:
            if self._unreachable.get(target) != reason:
                self._unreachable[target] = reason
                self._tell(f"{where} cannot be reached: {reason}; clients are disconnected until then")
            return None
        if self._unreachable.pop(target, None) is not None:
            self._tell(f"{where} is reached again")
        return await asyncio.open_connection(sock=sock, limit=CHUNK_BYTES)

    async def _dial(self, target: Endpoint) -> Dialed:
        """Look its name up and try its addresses, as a node does; the end of the proxy waits for no name server."""
        assert self._dialer is not None
        number = next(self._dial_numbers)
        dial: asyncio.Future[Dialed] = asyncio.get_running_loop().create_future()
        self._dials[number] = dial
        self._dialer.dial(number, target, CONNECT_S)
        try:
            return await dial
        except asyncio.CancelledError:
            self._dialer.cancel(number)
            if not dial.cancelled():  # it had ended, in the same turn
                dial.result().close()
            raise
        finally:
            del self._dials[number]

    def _take_dialed(self) -> None:
        """Hand a connection to its waiter; close one that has none any more."""
        while self._dialed:
            number, dialed = self._dialed.popleft()
            dial = self._dials.get(number)
            if dial is not None and not dial.done():
                dial.set_result(dialed)
            else:
                dialed.close()


def _hosts(host: str) -> str | list[str]:
    """Return the addresses to listen on, all of a name's. Raises OSError."""
    if not host or numeric(host) is not None:
        return host
    found = look_up([host], NAME_SERVER_S)[host]
    if not found.addresses:
        raise OSError(None, found.reason)
    return [each.address[0] for each in found.addresses]


def _reason(error: OSError) -> str:
    """In the system's words: asyncio puts its own around them."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def now_us() -> Micros:
    """The monotonic clock."""
    return time.monotonic_ns() // 1000


async def _pass_on(
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    target: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    tap: Tap,
    ended: list[str],
) -> None:
    """Both directions, until both have ended or one side has reset; `ended` says how, as it happens."""
    for _, writer in (client, target):
        # A side whose machine is gone is found out about in the end.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    try:
        async with asyncio.TaskGroup() as group:
            for who, reader, writer, look in (
                ("client", client[0], target[1], tap.on_request_bytes),
                ("server", target[0], client[1], tap.on_response_bytes),
            ):
                group.create_task(_pump(reader, writer, look, who, ended))
    except* OSError:
        ended.append("the connection was reset")
        for _, writer in (client, target):
            with contextlib.suppress(OSError):  # the one that has reset may be gone already
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    look: Callable[[bytes, Micros], None],
    who: str,
    ended: list[str],
) -> None:
    """One direction. What came is sent on first, and looked at while it is on its way."""
    while data := await reader.read(CHUNK_BYTES):
        read_us = now_us()
        writer.write(data)
        look(data, read_us)
        await writer.drain()
    ended.append(f"the {who} closed the connection")
    with contextlib.suppress(OSError):  # no peer is left
        writer.write_eof()
