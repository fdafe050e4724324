"""The transport alone, against plain sockets: what is sent at once, kept, given up, and how names are resolved."""

import errno
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fastquorum.client.connection import Connection, Deadline, NotSent
from fastquorum.config import QuorumConfig
from fastquorum.errors import ConfigError
from fastquorum.kernels import pure
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.sockets import transport as transports
from fastquorum.node.io.sockets.dialing import Dialed
from fastquorum.node.io.sockets.listening import bound_endpoint, listen
from fastquorum.node.io.sockets.transport import SocketTransport
from fastquorum.types import Endpoint
from tests.api.nodes import WAIT_S, Trio, stalled, trio, values_of


@pytest.fixture
def transport() -> Iterator[SocketTransport]:
    made = SocketTransport(QuorumConfig(), pure)
    yield made
    made.close_all()
    made.close_all()


def accepted(transport: SocketTransport) -> tuple[int, socket.socket]:
    """A connection of the transport's, and its other end."""
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    theirs.settimeout(WAIT_S)
    return transport.accept(ours), theirs


def test_a_frame_leaves_at_once_behind_its_length(transport: SocketTransport) -> None:
    number, theirs = accepted(transport)
    with theirs:
        transport.send(number, b"hello")
        assert theirs.recv(100) == b"\x00\x00\x00\x05hello"
        transport.send(number, bytearray(b""))
        assert theirs.recv(100) == bytes(4)


class NoRoom:
    """An epoll that can watch nothing more: fs.epoll.max_user_watches is reached, or the memory is."""

    def __init__(self, inner: select.epoll) -> None:
        self.inner = inner

    def register(self, *_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def test_an_accepted_connection_that_cannot_be_watched_is_closed_and_nothing_is_kept_of_it(
    transport: SocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(transport, "strangers", NoRoom(transport.strangers))
        number, theirs = accepted(transport)
    with theirs:
        assert theirs.recv(1) == b""
    assert (transport.channel(number), len(transport), transport.by_fd) == (None, 0, {})


@pytest.mark.parametrize("is_dialed", [False, True])
def test_a_connection_that_was_made_and_cannot_be_watched_came_to_nothing(
    transport: SocketTransport, monkeypatch: pytest.MonkeyPatch, is_dialed: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = Endpoint("", "127.0.0.1", server.getsockname()[1])
        monkeypatch.setattr(transport, "_dialer", Silent())
        with monkeypatch.context() as patch:
            patch.setattr(transport, "epoll", NoRoom(transport.epoll))
            if is_dialed:
                endpoint = Endpoint("", "h.test", endpoint.port)
                number = transport.connect(endpoint)
                transport.take_over(number, Dialed(socket.create_connection(server.getsockname())))
            else:
                number = transport.connect(endpoint)
    assert list(transport.lost) == [number]
    assert os.strerror(errno.ENOSPC) in transport.last_error(endpoint)
    transport.close(number)
    assert (len(transport), transport.by_fd) == (0, {})


class Silent:
    """A dialer that tells of nothing."""

    def dial(self, *_: object) -> None:
        pass

    cancel = close = dial


def test_a_voters_connection_for_which_there_is_no_room_is_served_on_and_favoured_when_there_is(
    transport: SocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, theirs = accepted(transport)
    with theirs:
        with monkeypatch.context() as patch:
            patch.setattr(transport, "epoll", NoRoom(transport.epoll))
            transport.favour(number)
        (fd,) = transport.by_fd
        assert transport.by_fd[fd].number == number
        theirs.sendall(b"x")
        assert [ready for ready, _ in transport.strangers.poll(WAIT_S)] == [fd]
        transport.favour(number)
        assert transport.strangers.poll(0) == []
        assert fd in [ready for ready, _ in transport.epoll.poll(WAIT_S)]


def test_a_connection_of_which_a_forked_child_has_a_copy_is_not_heard_of_once_it_is_closed(
    transport: SocketTransport,
) -> None:
    number, theirs = accepted(transport)
    channel = transport.channel(number)
    assert channel is not None
    copy = os.dup(channel.fd)
    transport.close(number)
    theirs.close()
    assert transport.poll(0) == []
    os.close(copy)


def test_what_the_socket_does_not_take_follows_in_order_when_it_does(transport: SocketTransport) -> None:
    number, theirs = accepted(transport)
    channel = transport.channel(number)
    assert channel is not None
    frames = [bytes([value]) * 3_000_000 for value in range(4)]
    received = bytearray()

    def read() -> None:
        while len(received) < sum(4 + len(frame) for frame in frames):
            received.extend(theirs.recv(1 << 20))

    with theirs:
        for frame in frames:
            transport.send(number, memoryview(frame))
        assert channel.outbox_bytes > 0
        assert channel.is_paused
        assert channel.unsent_since_us > 0
        reader = threading.Thread(target=read)
        reader.start()
        while channel.outbox:
            assert transport.epoll.poll(WAIT_S)
            transport.flush(channel)
        reader.join()
    assert (channel.is_paused, channel.outbox_bytes, channel.unsent_since_us) == (False, 0, -1)
    assert bytes(received) == b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def test_a_peer_that_lets_too_much_pile_up_is_given_up(
    transport: SocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "OUTBOX_BYTES_MAX", 1_000_000)
    number, theirs = accepted(transport)
    with theirs:
        for _ in range(20):
            transport.send(number, bytes(900_000))
        assert list(transport.lost) == [number]
        transport.send(number, b"ignored")
        channel = transport.channel(number)
        assert channel is not None
        assert channel.outbox_bytes == 0


def test_sending_to_a_peer_that_is_gone_is_reported_and_not_raised(transport: SocketTransport) -> None:
    number, theirs = accepted(transport)
    theirs.close()
    while not transport.lost:
        transport.send(number, b"x" * 1000)
    transport.close(number)
    transport.close(number)
    transport.send(number, b"unknown by now")
    assert len(transport) == 0


@pytest.fixture
def broken_pipes() -> Iterator[list[int]]:
    """The SIGPIPEs of this process, which end one that has not switched them off: an embedding program's may not."""
    raised: list[int] = []
    before = signal.signal(signal.SIGPIPE, lambda number, _: raised.append(number))
    yield raised
    signal.signal(signal.SIGPIPE, before)


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_peer_that_is_gone_sends_the_program_no_signal(
    transport: SocketTransport, broken_pipes: list[int], size: int
) -> None:
    number, theirs = accepted(transport)
    with theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        transport.send(number, bytes(6_000_000))
    channel = transport.channel(number)
    assert channel is not None
    while not transport.lost:
        transport.flush(channel)
        transport.send(number, bytes(size))
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection(Endpoint("", "127.0.0.1", server.getsockname()[1]), Deadline(WAIT_S))
        server.accept()[0].close()
        with suppress(NotSent):
            while True:
                connection.send(bytes(size), Deadline(WAIT_S))
    assert broken_pipes == []


def test_a_name_is_resolved_elsewhere_and_one_that_is_unknown_is_reported(transport: SocketTransport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = transport.connect(Endpoint("", "localhost", server.getsockname()[1]))
        unknown = transport.connect(Endpoint("", "no-such-host.invalid", 1))
        while len(transport.dialed) < 2:
            assert transport.epoll.poll(WAIT_S)
        found = dict(transport.dialed)
        assert found[unknown].sock is None
        transport.take_over(unknown, found[unknown])
        assert list(transport.lost) == [unknown]
        assert "no-such-host.invalid" in transport.last_error(Endpoint("", "no-such-host.invalid", 1))
        transport.take_over(number, found[number])
        channel = transport.channel(number)
        assert channel is not None
        while not channel.connected:
            for fd, _ in transport.epoll.poll(WAIT_S):
                if fd == channel.fd:
                    assert transport.finish_connect(channel)
        transport.take_over(99, Dialed(None, "too late"))  # closed meanwhile: nothing to do


def test_who_is_overdue(transport: SocketTransport) -> None:
    number, theirs = accepted(transport)
    channel = transport.channel(number)
    assert channel is not None

    def overdue(after_us: int) -> bool:
        return channel.is_overdue(
            channel.opened_us + after_us, partial_us_max=100, idle_us_max=1_000, connect_us_max=10
        )

    with theirs:
        assert [overdue(100), overdue(101)] == [False, True]  # no first frame
        channel.seen_frame = True
        assert [overdue(1_000), overdue(1_001)] == [False, True]  # idle
        channel.partial_since_us = channel.opened_us + 50
        assert [overdue(150), overdue(151)] == [False, True]
        channel.connected = False
        assert [overdue(10), overdue(11)] == [False, True]
        assert transport.oldest_silent(now_us(), 10_000_000) is None
        assert transport.oldest_silent(now_us() + 20_000_000, 10_000_000) == number


def test_a_voters_connection_makes_no_room_however_long_it_is_silent(transport: SocketTransport) -> None:
    voter, its_end = accepted(transport)
    client, other_end = accepted(transport)
    with its_end, other_end:
        transport.favour(voter)
        assert transport.oldest_silent(now_us() + 1_000_000, 0) == client
        transport.close(client)
        assert transport.oldest_silent(now_us() + 1_000_000, 0) is None


def test_what_is_kept_for_all_is_bounded_and_voters_go_first(
    transport: SocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads: the twin of the native shell's test."""
    monkeypatch.setattr(transports, "KEPT_BYTES_MAX", 20_000_000)
    monkeypatch.setattr(transports, "CROWD_BYTES", 10_000_000)
    ends = [accepted(transport) for _ in range(12)]
    voter, its_end = ends.pop()
    transport.favour(voter)
    for number, _ in ends:
        transport.send(number, bytes(8_000_000))
    assert transport.needs_drain(ends[0][0])
    assert ends[-1][0] in transport.lost, "it would be owed more than may be kept"
    transport.send(voter, bytes(8_000_000))
    assert voter not in transport.lost
    for number, end in ends:
        end.close()
        transport.close(number)
    channel = transport.channel(voter)
    assert channel is not None
    while channel.outbox:
        its_end.recv(1 << 20)
        transport.flush(channel)
    its_end.close()
    assert not transport.needs_drain(voter)
    assert (transport._owed_bytes, transport._is_crowded) == (0, False)


def test_many_frames_are_more_than_their_bytes(transport: SocketTransport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones, of which one read brings thousands."""
    monkeypatch.setattr(transports, "CROWD_BYTES", 1_000_000)
    ends = [accepted(transport) for _ in range(2)]
    crowded, late = [channel for number, _ in ends if (channel := transport.channel(number)) is not None]
    transport.received(crowded, [b""] * 4_096, 0)
    transport.received(late, [b"one"], 0)
    assert late.is_paused, "nobody may have a second frame"
    for _ in range(4_096):
        transport.dealt_with(crowded.number, 0)
    transport.dealt_with(late.number, 3)
    assert (transport._waiting_bytes, late.is_paused) == (0, False)
    for number, end in ends:
        end.close()
        transport.close(number)


@pytest.mark.parametrize(
    ("endpoint", "word"),
    [
        (Endpoint("", "192.0.2.1", 9093), "not an address of this machine"),
        (Endpoint("", "no-such-host.invalid", 9093), "cannot be resolved"),
    ],
)
def test_an_address_that_cannot_be_had_is_named(endpoint: Endpoint, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as refused:
        listen(endpoint)
    assert endpoint.host in str(refused.value)


def test_a_port_of_the_kernel_s_choice_is_told() -> None:
    wanted = Endpoint("", "127.0.0.1", 0)
    with listen(wanted) as sock:
        assert bound_endpoint(sock, wanted) == Endpoint("CONTROLLER", "127.0.0.1", sock.getsockname()[1])


def test_voters_given_by_name_find_each_other(tmp_path: Path) -> None:
    nodes = Trio(tmp_path)
    nodes.voters = nodes.voters.replace("127.0.0.1", "localhost")
    try:
        nodes.open(1, 2, 3)
        nodes.append(b"x")
    finally:
        nodes.close()


def test_a_leader_whose_disk_stalls_gives_way_and_comes_back(tmp_path: Path) -> None:
    with trio(tmp_path, disk_stall_us_max=200_000) as nodes:
        nodes.append(b"before")
        leader, epoch = nodes.leader, nodes.leader.epoch
        with stalled(leader):
            leader.append_nowait(b"stuck here, committed by the others or not")
            # Whoever follows is not asked whether it leads: it may be about to, or its disk may stall in its turn.
            for event in leader.leadership():
                assert event.epoch == epoch or event.leader_id != leader.node_id
                if event.epoch > epoch and event.leader_id >= 0:
                    break
        offset = nodes.append(b"after")
        for item in leader.committed(progress=True):
            if item.next_offset > offset:
                break
        assert values_of(leader)[-1] == b"after"
