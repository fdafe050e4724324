"""Ending asyncio servers: whoever was accepted is told of, and nobody's connection stays open."""

import asyncio
import contextlib
import gc
import socket

import pytest

from fastquorum.cli.wire.proxy import Proxy, Route
from fastquorum.node.io.sockets.listening import listen, stop_listening
from fastquorum.observe.serving import MetricsServer
from fastquorum.types import Endpoint

ANY_PORT = Endpoint("", "127.0.0.1", 0)
CLIENTS = 4
TURNS = range(6)
"""Turns of the loop between the clients' connecting and the server's end: accepting takes some."""


def connected(port: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(CLIENTS)]


def are_over(clients: list[socket.socket]) -> bool:
    """The other side has closed, or reset, every one; they are closed."""
    over = True
    for client in clients:
        with client:
            client.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                over &= client.recv(1) == b""
    return over


@pytest.mark.parametrize("turns", TURNS)
def test_a_server_told_to_stop_tells_of_everybody_it_has_accepted(turns: int) -> None:
    async def run() -> list[socket.socket]:
        def on_connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        server = await asyncio.start_server(on_connected, "127.0.0.1", 0)
        clients = connected(server.sockets[0].getsockname()[1])
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop_listening(server)
        return clients

    assert are_over(asyncio.run(run()))
    gc.collect()  # a connection that nobody closed is told as an unraisable warning, an error here


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("is_reached", [False, True])
def test_a_proxy_that_ends_leaves_no_connection_open(turns: int, is_reached: bool) -> None:
    """Neither of clients nor to the target: where it is with connecting when it ends is chance, within some turns."""

    class Tap:
        def on_request_bytes(self, data: bytes, now_us: int) -> None: ...
        def on_response_bytes(self, data: bytes, now_us: int) -> None: ...
        def on_end(self, reason: str, now_us: int) -> None: ...

    async def run(target: socket.socket) -> list[socket.socket]:
        proxy = Proxy(lambda *_: Tap(), pytest.fail)
        endpoint = await proxy.bind(Route(ANY_PORT, Endpoint("", *target.getsockname())))
        await proxy.start()
        clients = connected(endpoint.port)
        if is_reached:
            readable = asyncio.Event()
            asyncio.get_running_loop().add_reader(target, readable.set)
            await readable.wait()
            asyncio.get_running_loop().remove_reader(target)
            for _ in clients:  # the loop stands still meanwhile: it has yet to hear of them
                target.accept()[0].close()
        for _ in range(turns):
            await asyncio.sleep(0)
        await proxy.close()
        return clients

    with socket.create_server(("127.0.0.1", 0)) as target:
        assert are_over(asyncio.run(run(target)))
    gc.collect()


def test_a_metrics_server_that_ends_leaves_no_connection_open() -> None:
    for _ in range(6):  # its loop runs in a thread of its own: where it is when it is told to end is chance
        listening = listen(ANY_PORT)
        port = listening.getsockname()[1]
        server = MetricsServer(listening)
        server.start()
        clients = connected(port)
        server.close()
        assert are_over(clients)
        gc.collect()
