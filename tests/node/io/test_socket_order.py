"""The pure loop serves what the quorum lives by first, as the native threads do: see `test_native_order`."""

import os
import socket
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.kernels import load
from fastquorum.node.io.arrivals import SLICE_BYTES, SLICE_FRAMES
from fastquorum.node.io.socket_reactor import SocketReactor
from fastquorum.node.io.sockets.transport import WAITING_MAX, SocketTransport

CREATE_TOPICS = b"\0\x13" + bytes(8)
STRANGERS = 100


class Turns:
    """A loop over a real transport, and a replica that notes on which connections frames are looked at."""

    def __init__(self) -> None:
        self.transport = SocketTransport(QuorumConfig(), load("pure"))
        self.seen: list[int] = []
        self.ended: list[int] = []
        self.voters: set[int] = set()
        self._peers: list[socket.socket] = []
        self._flusher_fd, self._listening_fd = os.eventfd(0), os.eventfd(0)
        connections = SimpleNamespace(
            is_voters=self.voters.__contains__, is_consumers=lambda connection: False, frames_set_aside={}
        )
        self.replica: Any = SimpleNamespace(
            connections=connections,
            on_frames=self._on_frames,
            on_disconnected=lambda connection, now_us: self.ended.append(connection),
            start=lambda now_us: None,
            deadline_us=-1,
        )
        self.reactor = SocketReactor(
            config=QuorumConfig(),
            transport=self.transport,
            flusher=SimpleNamespace(fileno=lambda: self._flusher_fd, inner=None),  # type: ignore[arg-type]
            lock=_NoLock(),  # type: ignore[arg-type]
            listening=SimpleNamespace(fileno=lambda: self._listening_fd),  # type: ignore[arg-type]
            name="turns",
            on_end=lambda error: None,
        )
        self.reactor._over = True
        self.reactor._loop(self.replica)  # which only prepares
        self.reactor._over = False

    def _on_frames(self, frames: Iterable[tuple[int, bytes]], now_us: int) -> None:
        self.seen += [connection for connection, _ in frames]

    def connect(self, *, is_voter: bool = False) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        self._peers.append(theirs)
        number = self.transport.accept(_Accepted(fileno=ours.detach()))
        if is_voter:
            self.voters.add(number)
            self.transport.favour(number)
        return number, theirs

    def turn(self) -> list[int]:
        """The connections whose frames were looked at in it."""
        before = len(self.seen)
        self.reactor._serve(self.replica, self.transport.epoll.poll(0))
        return self.seen[before:]

    def close(self) -> None:
        self.transport.close_all()
        for each in self._peers:
            each.close()
        os.close(self._flusher_fd)
        os.close(self._listening_fd)


class _NoLock:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _Accepted(socket.socket):
    """A local socket that is asked for an option that only TCP's have."""

    def setsockopt(self, *_: Any) -> None:
        pass


@pytest.fixture
def turns() -> Iterator[Turns]:
    made = Turns()
    yield made
    made.close()


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def test_a_voters_frame_comes_before_those_of_many_strangers(turns: Turns) -> None:
    for _ in range(STRANGERS):
        turns.connect()[1].sendall(framed(CREATE_TOPICS))
    voter, peer = turns.connect(is_voter=True)
    peer.sendall(framed(b"vote"))
    first = turns.turn()
    assert first[0] == voter
    assert len(first) <= 1 + SLICE_FRAMES
    peer.sendall(framed(b"again"))
    assert turns.turn()[0] == voter
    for _ in range(STRANGERS):
        turns.turn()
    assert len(set(turns.seen)) == 1 + STRANGERS, "everybody has its turn"


def test_one_stranger_with_many_frames_is_read_and_looked_at_in_slices(turns: Turns) -> None:
    busy, peer = turns.connect()
    peer.setblocking(False)
    assert peer.send(framed(*[CREATE_TOPICS] * 5_000)) > 2 * SLICE_BYTES
    assert len(turns.turn()) <= SLICE_FRAMES
    channel = turns.transport.channel(busy)
    assert channel is not None
    assert channel.is_paused, "it is not read from until what came has been looked at"
    assert WAITING_MAX < channel.waiting <= SLICE_BYTES // len(framed(CREATE_TOPICS)) + 1
    voter, voters = turns.connect(is_voter=True)
    voters.sendall(framed(b"vote"))
    assert turns.turn()[0] == voter
    for _ in range(500):
        turns.turn()
    assert turns.seen.count(busy) == 5_000
    assert not channel.is_paused


def test_an_end_comes_after_what_came_before_it(turns: Turns) -> None:
    number, peer = turns.connect()
    peer.sendall(framed(*[CREATE_TOPICS] * 50))
    peer.close()
    while not turns.ended:
        turns.turn()
    assert turns.seen == [number] * 50
    assert turns.ended == [number]
    assert not turns.transport.knows(number)


def test_a_large_frame_is_read_as_a_whole_after_its_beginning(turns: Turns) -> None:
    number, peer = turns.connect()
    peer.setblocking(False)
    large = framed(CREATE_TOPICS + bytes(100_000))
    sent = peer.send(large)
    assert sent == len(large)
    reads = 0
    while not turns.seen:
        turns.turn()
        reads += 1
        assert reads <= 3
    assert turns.seen == [number]
