"""From a name to a connection: all addresses in turn, one deadline over all of it, and what is said when it fails."""

import errno
import gc
import os
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from fastquorum.client.connection import Connection, Deadline, NotSent
from fastquorum.config import QuorumConfig
from fastquorum.kernels import load
from fastquorum.node.io.sockets import dialing
from fastquorum.node.io.sockets.dialing import Dialed, Dialer, DialError, dial
from fastquorum.node.io.sockets.resolving import try_elsewhere
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.types import Endpoint
from tests.api.nodes import WAIT_S
from tests.node.io.name_service import Names, name_service

SHORT_S = 0.5
"""A deadline that passes. What takes it into account ends long before WAIT_S."""


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    with name_service(monkeypatch) as made:
        yield made


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """Connections to it are begun for ever: more wait than it takes."""
    with socket.create_server(("127.0.0.2", 0), backlog=0) as made:
        filling = [socket.socket() for _ in range(4)]
        for each in filling:
            each.setblocking(False)
            each.connect_ex(made.getsockname())
        yield made
        for each in filling:
            each.close()


def port(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def test_an_address_where_nobody_listens_costs_a_name_nothing(names: Names, server: socket.socket) -> None:
    names.addresses["h.test"] = ["127.0.0.9", "::1", "127.0.0.1"]
    with dial(Endpoint("", "h.test", port(server)), WAIT_S) as sock:
        assert sock.getpeername() == server.getsockname()
        assert sock.getblocking()


def test_an_address_that_never_answers_costs_a_name_a_moment(names: Names, deaf: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", port(deaf))):
        names.addresses["h.test"] = ["127.0.0.2", "127.0.0.1"]
        with dial(Endpoint("", "h.test", port(deaf)), WAIT_S) as sock:
            assert sock.getpeername()[0] == "127.0.0.1"
        # From then on it is not waited for at all.
        with dial(Endpoint("", "h.test", port(deaf)), WAIT_S) as sock:
            assert sock.getpeername()[0] == "127.0.0.1"


def test_sockets_of_which_a_forked_child_has_a_copy_disturb_nobody_once_they_have_failed(
    names: Names, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = []

    class Copied(socket.socket):
        def connect_ex(self, address: object) -> int:
            copies.append(os.dup(self.fileno()))
            return super().connect_ex(address)  # type: ignore[arg-type]

    names.addresses["h.test"] = ["127.0.0.9", "127.0.0.8", "127.0.0.1"]
    reports: list[tuple[int, Dialed]] = []
    has_ended = threading.Event()

    def report(number: int, dialed: Dialed) -> None:
        reports.append((number, dialed))
        has_ended.set()

    dialer = Dialer(report)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", Copied)
            for number in range(3):
                has_ended.clear()
                dialer.dial(number, Endpoint("", "h.test", port(server)), WAIT_S)
                assert has_ended.wait(WAIT_S)
        for _, dialed in reports:
            assert dialed.sock is not None
            dialed.sock.close()
    finally:
        dialer.close()
        for each in copies:
            os.close(each)
    assert [number for number, _ in reports] == [0, 1, 2]
    assert len(copies) > 3, "none had failed"


def test_a_deadline_covers_a_look_up_that_never_ends(names: Names) -> None:
    names.hang("dead.test")
    began = time.monotonic()
    with pytest.raises(DialError, match=r"no name server has said within 0.5 s what dead\.test is"):
        dial(Endpoint("", "dead.test", 9093), SHORT_S)
    assert SHORT_S <= time.monotonic() - began < WAIT_S


def test_a_deadline_covers_look_up_connection_and_request(names: Names, deaf: socket.socket) -> None:
    names.addresses["deaf.test"] = ["127.0.0.2"]
    with pytest.raises(NotSent, match=r"deaf\.test:\d+ cannot be reached: 127\.0\.0\.2:\d+: no answer within"):
        Connection(Endpoint("", "deaf.test", port(deaf)), Deadline(SHORT_S))
    with pytest.raises(NotSent, match="no answer within"):
        Connection(Endpoint("", "127.0.0.2", port(deaf)), Deadline(SHORT_S))


def test_every_address_that_failed_is_named_with_its_reason(names: Names) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        at = port(unused)
        names.addresses["h.test"] = ["127.0.0.1", "127.0.0.9"]
        with pytest.raises(DialError) as refused:
            dial(Endpoint("", "h.test", at), WAIT_S)
    assert str(refused.value.strerror) == (f"127.0.0.1:{at}: Connection refused; 127.0.0.9:{at}: Connection refused")


def test_the_last_addresses_are_used_while_the_name_server_is_silent_or_fails(
    names: Names, server: socket.socket
) -> None:
    endpoint = Endpoint("", "h.test", port(server))
    names.addresses["h.test"] = ["127.0.0.1"]
    dial(endpoint, WAIT_S).close()
    names.hang("h.test")
    dial(endpoint, WAIT_S).close()
    names.release()
    names.addresses["h.test"] = []
    dial(endpoint, WAIT_S).close()


def test_a_name_that_has_moved_is_found_where_it_is_now(names: Names, server: socket.socket) -> None:
    names.addresses["h.test"] = ["127.0.0.9"]
    with pytest.raises(DialError):
        dial(Endpoint("", "h.test", port(server)), WAIT_S)
    names.addresses["h.test"] = ["127.0.0.1"]
    dial(Endpoint("", "h.test", port(server)), WAIT_S).close()


def test_an_address_whose_listener_was_of_no_use_is_left_for_the_next(names: Names, server: socket.socket) -> None:
    endpoint = Endpoint("", "h.test", port(server))
    names.addresses["h.test"] = ["127.0.0.8", "127.0.0.1"]
    with socket.create_server(("127.0.0.8", port(server))):
        reached = []
        for _ in range(4):
            with dial(endpoint, WAIT_S) as sock:
                reached.append(sock.getpeername()[0])
            assert try_elsewhere("h.test")
    assert reached == ["127.0.0.8", "127.0.0.1", "127.0.0.8", "127.0.0.1"]
    assert not try_elsewhere("unknown.test")


@pytest.mark.parametrize("host", ["q2..svc", "", "a" * 64, "ü.test", "b\0c"])
def test_a_bad_host_is_one_that_cannot_be_reached(host: str) -> None:
    with pytest.raises(NotSent, match="host"):
        Connection(Endpoint("", host, 9093), Deadline(WAIT_S))


def test_without_descriptors_it_is_said_and_tried_again(
    names: Names, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    names.addresses["h.test"] = ["127.0.0.1"]
    endpoint = Endpoint("", "h.test", port(server))
    reports = Reports()
    with monkeypatch.context() as patch:
        patch.setattr(select, "epoll", none_left)
        reports.dialer.dial(1, endpoint, WAIT_S)
        assert "Too many open files" in reports.ended[1].reason
        with pytest.raises(NotSent, match="Too many open files"):
            Connection(endpoint, Deadline(WAIT_S))
    reports.dialer.dial(2, endpoint, WAIT_S)
    reports.wait(2)
    sock = reports.ended[2].sock
    assert sock is not None
    sock.close()
    reports.dialer.close()


def test_a_socket_that_cannot_be_watched_is_told_as_that_and_the_next_dial_goes_well(
    names: Names, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.addresses["h.test"] = ["127.0.0.9", "127.0.0.1"]
    endpoint = Endpoint("", "h.test", port(server))
    watch = select.epoll

    class NoRoom:
        """An epoll that watches the dialer's own descriptor, which is a number, and no socket."""

        def __init__(self, *words: int, **named: int) -> None:
            self.inner = watch(*words, **named)

        def register(self, what: int | socket.socket, events: int) -> None:
            if isinstance(what, socket.socket) and not has_room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.inner.register(what, events)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    has_room = False
    monkeypatch.setattr(select, "epoll", NoRoom)
    reports = Reports()
    reports.dialer.dial(1, endpoint, WAIT_S)
    reports.wait(1)
    assert reports.ended[1].sock is None
    assert "No space left on device" in reports.ended[1].reason
    has_room = True
    reports.dialer.dial(2, endpoint, WAIT_S)
    reports.wait(2)
    sock = reports.ended[2].sock
    assert sock is not None
    sock.close()
    reports.dialer.close()


def test_a_dialer_that_cannot_begin_says_so_each_time_and_leaves_nothing_open(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoRoom:
        def __init__(self, **_: int) -> None: ...
        def close(self) -> None: ...
        def register(self, what: object, events: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(select, "epoll", NoRoom)
    reports = Reports()
    before = os.listdir("/proc/self/fd")
    for number in range(3):
        reports.dialer.dial(number, Endpoint("", "h.test", 1), WAIT_S)
        assert "No space left on device" in reports.ended[number].reason
    assert os.listdir("/proc/self/fd") == before
    config = QuorumConfig()
    for _ in range(3):
        with pytest.raises(OSError, match="No space left on device"):
            SocketTransport(config, load("native"))
    assert os.listdir("/proc/self/fd") == before


def test_a_dialer_that_is_closed_reports_no_more_and_closes_what_connects(
    names: Names, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its thread gets its turn only after that: a busy machine's."""
    has_connected, may_go_on = threading.Event(), threading.Event()
    ended: list[Dialed] = []

    def held(*_: object) -> None:
        has_connected.set()
        assert may_go_on.wait(WAIT_S)

    monkeypatch.setattr(dialing, "prefer", held)
    monkeypatch.setattr(dialing, "JOIN_S", 0.0)
    names.addresses["h.test"] = ["127.0.0.1"]
    dialer = Dialer(lambda _, dialed: ended.append(dialed))
    dialer.dial(1, Endpoint("", "h.test", port(server)), WAIT_S)
    assert has_connected.wait(WAIT_S)
    dialer.close()
    may_go_on.set()
    assert dialer._thread is not None
    dialer._thread.join(WAIT_S)
    assert not dialer._thread.is_alive()
    assert ended == []
    gc.collect()  # a socket that nobody closed is told as an unraisable warning, an error here


class Reports:
    """What a dialer has told, by number."""

    def __init__(self) -> None:
        self.ended: dict[int, Dialed] = {}
        self._changed = threading.Condition()
        self.dialer = Dialer(self._report)

    def _report(self, number: int, dialed: Dialed) -> None:
        with self._changed:
            self.ended[number] = dialed
            self._changed.notify_all()

    def wait(self, *numbers: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(numbers) <= self.ended.keys(), WAIT_S)


def test_many_connections_are_made_beside_each_other_in_one_thread(
    names: Names, server: socket.socket, deaf: socket.socket
) -> None:
    names.hang("dead.test")
    names.addresses |= {"h.test": ["127.0.0.9", "127.0.0.1"], "deaf.test": ["127.0.0.2"]}
    reports = Reports()
    for number in range(10):
        reports.dialer.dial(number, Endpoint("", "dead.test", 1), SHORT_S)
        reports.dialer.dial(100 + number, Endpoint("", "deaf.test", port(deaf)), SHORT_S)
        reports.dialer.dial(200 + number, Endpoint("", "h.test", port(server)), WAIT_S)
    reports.dialer.dial(1000, Endpoint("", "dead.test", 1), WAIT_S)
    reports.dialer.cancel(1000)
    reports.wait(*range(10), *range(100, 110), *range(200, 210))
    assert {reports.ended[number].sock is None for number in (*range(10), *range(100, 110))} == {True}
    for number in range(200, 210):
        sock = reports.ended[number].sock
        assert sock is not None
        assert not sock.getblocking()
        sock.close()
    assert 1000 not in reports.ended
    reports.dialer.dial(1001, Endpoint("", "dead.test", 1), WAIT_S)
    reports.dialer.close()
    assert not any(each.name == "fastquorum-dialer" and each.is_alive() for each in threading.enumerate())
