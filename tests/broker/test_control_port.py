"""The socket at which a member is told what it leads: who is taken in, who makes room, and whom it outlives."""

import contextlib
import functools
import os
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fastquorum import sync
from fastquorum.broker.io import running
from fastquorum.broker.io.control_port import CONNECTIONS_MAX, NEVER, PAUSE_US, ControlPort
from fastquorum.config import MS, QuorumConfig
from fastquorum.kernels import load
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.sockets import transport as sockets
from fastquorum.node.io.sockets.listening import listen
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.types import Endpoint
from tests.api.nodes import WAIT_S
from tests.broker.clusters import join, one_controller
from tests.cli.conftest import wait_until

ANY = Endpoint("PLAINTEXT", "127.0.0.1", 0)
NOW = 5_000_000


class Port:
    """A ControlPort over real sockets, and whoever comes."""

    def __init__(self) -> None:
        self.transport = SocketTransport(QuorumConfig(), load("pure"))
        self.sock = listen(ANY)
        self.core = ControlPort(self.sock, self.transport)
        self.callers: list[socket.socket] = []

    def call(self) -> int | None:
        """Somebody comes, and is taken in; whoever makes room."""
        self.callers.append(socket.create_connection(self.sock.getsockname(), WAIT_S))
        return self.core.accept(now_us())

    @property
    def is_called(self) -> bool:
        return self.core.fd in [fd for fd, _ in self.transport.epoll.poll(0)]

    def close(self) -> None:
        for each in self.callers:
            each.close()
        self.core.close()
        self.transport.close_all()


@contextmanager
def no_descriptors() -> Iterator[None]:
    """This process can open nothing more."""
    lowest = os.dup(0)
    os.close(lowest)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_whoever_comes_is_taken_in_and_at_the_limit_the_silent_make_room() -> None:
    with contextlib.closing(Port()) as port:
        assert [port.call() for _ in range(CONNECTIONS_MAX)] == [None] * CONNECTIONS_MAX
        makes_room = port.call()
        assert makes_room == port.transport.channels()[0].number, "it came first and has said nothing since"
        assert port.core.accept(now_us()) is None, "nobody else came"
        assert len(port.transport.channels()) == CONNECTIONS_MAX + 1


def test_without_descriptors_it_looks_again_a_while_later() -> None:
    with contextlib.closing(Port()) as port:
        caller = socket.create_connection(port.sock.getsockname(), WAIT_S)
        port.callers.append(caller)
        assert port.is_called
        with no_descriptors():
            assert port.core.accept(NOW) is None
        assert port.core.deadline_us == NOW + PAUSE_US
        assert not port.is_called, "else its thread would spin"
        port.core.on_tick(NOW + PAUSE_US - 1)
        assert not port.is_called
        port.core.on_tick(NOW + PAUSE_US)
        assert (port.is_called, port.core.deadline_us) == (True, NEVER)
        port.core.accept(NOW)
        assert len(port.transport.channels()) == 1


def test_a_forked_child_does_not_keep_the_port(tmp_path: Path) -> None:
    with one_controller(tmp_path, older_brokers=True) as bootstrap:
        member = join(bootstrap, 7, control_requests=True, host="127.0.0.1", port=0)
        member.wait_active(WAIT_S)
        (at,) = member.listeners
        waits, tells = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(tells)
            os.read(waits, 1)
            os._exit(0)
        member.close()
        listen(Endpoint("PLAINTEXT", at.host, at.port)).close()
        os.close(tells)
        os.close(waits)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def dial(member: sync.Membership) -> socket.socket:
    (at,) = member.listeners
    return socket.create_connection((at.host, at.port), WAIT_S)


def transport_of(member: sync.Membership) -> Any:
    holder: Any = member
    return holder._member._transport


@pytest.mark.parametrize("sent", [b"", (1000).to_bytes(4, "big") + b"begun"], ids=["nothing", "a part of a frame"])
def test_whoever_sends_no_whole_frame_in_time_loses_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(running, "QuorumConfig", functools.partial(QuorumConfig, partial_frame_us_max=50 * MS))
    with (
        one_controller(tmp_path, older_brokers=True) as bootstrap,
        join(bootstrap, 7, control_requests=True, host="127.0.0.1", port=0) as member,
        dial(member) as caller,
    ):
        caller.sendall(sent)
        assert caller.recv(1) == b"", "closed before the socket's own timeout"


def test_what_callers_have_begun_is_counted_and_with_too_much_of_it_they_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "KEPT_BYTES_MAX", 300_000)
    with (
        one_controller(tmp_path, older_brokers=True) as bootstrap,
        join(bootstrap, 7, control_requests=True, host="127.0.0.1", port=0) as member,
    ):
        transport = transport_of(member)
        with dial(member) as caller:
            caller.settimeout(WAIT_S)
            caller.sendall((50 << 20).to_bytes(4, "big"))
            caller.sendall(bytes(400_000))
            wait_until(lambda: transport._is_crowded, WAIT_S)
            caller.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # a reset is seen though paused
            assert any(each.is_paused for each in transport.channels())
        wait_until(lambda: not transport._is_crowded, WAIT_S)
        member.wait_active(WAIT_S)
        wait_until(lambda: transport._waiting_bytes == 0, WAIT_S)
