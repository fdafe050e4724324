"""The replica's loop: what came in is looked at before anybody is held to a deadline."""

import errno
import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.kernels.codes import EVENT_FRAME
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.reactor import READ
from fastquorum.node.io.socket_reactor import SocketReactor
from fastquorum.raft import events as ev
from fastquorum.storage.log.mark import LogPosition, Mark
from fastquorum.wire import ApiKey

FLUSHER_FD = -7


class Polls:
    """An epoll whose first answer is stale, as after SIGSTOP and SIGCONT, or while another thread held the
    interpreter."""

    def __init__(self, *answers: list[tuple[int, int]]) -> None:
        self.answers = list(answers)
        self.waits: list[float] = []

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        self.waits.append(timeout)
        return self.answers.pop(0)

    def register(self, *_: object) -> None:
        pass

    unregister = register


class Overdue:
    """A replica whose deadline has long passed."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.deadline_us = 1
        self.error = None
        self.log = SimpleNamespace(durable_mark=Mark(LogPosition(0, 0, 0), 0), end_offset=0)
        self.connections = SimpleNamespace(is_voters=None, is_consumers=None, frames_set_aside={})
        self.reactor: Any = None

    def start(self, now_us: int) -> None:
        pass

    def work(self, now_us: int) -> None:
        pass

    def on_tick(self, now_us: int) -> None:
        self.calls.append("timer")
        self.reactor.on_stopped(None)


class Loop:
    """A reactor over these polls, and an overdue replica; what it calls, in order."""

    def __init__(self, wake_fd: int, *answers: list[tuple[int, int]]) -> None:
        self.calls: list[str] = []
        self.epoll = Polls(*answers)
        transport: Any = SimpleNamespace(
            epoll=self.epoll,
            strangers=SimpleNamespace(fileno=lambda: -9),
            by_fd={},
            wake_fd=wake_fd,
            drained=[],
            dialed=[],
            lost=[],
            note_request=None,
            wake=lambda: None,
        )
        flusher: Any = SimpleNamespace(fileno=lambda: FLUSHER_FD, completions=lambda: self.calls.append("report"))
        self.reactor = SocketReactor(
            config=QuorumConfig(),
            transport=transport,
            flusher=flusher,
            lock=SimpleNamespace(),  # type: ignore[arg-type]
            listening=SimpleNamespace(fileno=lambda: -8),  # type: ignore[arg-type]
            name="loop",
            on_end=lambda error: None,
        )
        self.replica: Any = Overdue(self.calls)
        self.replica.reactor = self.reactor

    def run(self) -> None:
        self.reactor._loop(self.replica)


@pytest.fixture
def wake_fd() -> Iterator[int]:
    fd = os.eventfd(1)
    yield fd
    os.close(fd)


def test_what_a_stale_poll_did_not_show_comes_before_the_timer(wake_fd: int) -> None:
    loop = Loop(wake_fd, [], [(wake_fd, 1)])
    loop.reactor._sweep = lambda *_: None  # type: ignore[method-assign]
    loop.reactor.post(lambda replica, now_us: loop.calls.append("frame"))
    loop.run()
    assert loop.calls == ["frame", "timer"]
    assert loop.epoll.waits[1] == 0


def test_a_sync_s_report_after_the_end_is_left_for_whoever_closes_the_log(wake_fd: int) -> None:
    loop = Loop(wake_fd, [(wake_fd, 1), (FLUSHER_FD, 1)])
    loop.reactor.post(lambda replica, now_us: loop.reactor.on_stopped(None))
    loop.run()
    assert loop.calls == []


def test_a_loop_that_was_held_up_does_not_blame_the_disk_before_it_has_looked_again(wake_fd: int) -> None:
    loop = Loop(wake_fd)
    loop.replica.request = lambda event, now_us: loop.calls.append(event)
    reactor: Any = loop.reactor
    reactor._transport.overdue = lambda now_us: []
    reactor._flusher.is_stalled = lambda now_us, stall_us_max: True
    stall_us_max = reactor._config.disk_stall_us_max
    reactor._sweep_at_us = 1_000
    reactor._sweep(loop.replica, 1_000 + 2 * stall_us_max)
    assert loop.calls == []
    reactor._sweep(loop.replica, reactor._sweep_at_us)
    assert loop.calls == [ev.DiskStalled()]


def test_a_listening_socket_that_cannot_be_watched_again_is_tried_again_a_moment_later(wake_fd: int) -> None:
    loop = Loop(wake_fd)
    reactor: Any = loop.reactor
    reactor._transport.overdue = lambda now_us: []
    reactor._flusher.is_stalled = lambda now_us, stall_us_max: False
    watched: list[int] = []
    has_room = False

    def register(fd: int, events: int) -> None:
        if not has_room:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        watched.append(fd)

    loop.epoll.register = register  # type: ignore[method-assign,assignment]
    reactor._pause_accepting(1_000)
    for _ in range(3):
        reactor._sweep(loop.replica, reactor._accept_at_us)
        assert watched == []
    has_room = True
    reactor._sweep(loop.replica, reactor._accept_at_us)
    assert watched == [-8]


class Late:
    """A socket that is read only after a while, and then has what came meanwhile: the process was stopped."""

    def __init__(self) -> None:
        self.read_us = -1

    def recv_into(self, buffer: bytearray, size: int) -> int:
        began_us = now_us()
        while now_us() < began_us + 1_000:
            pass
        self.read_us = now_us()
        buffer[:5] = b"\0\0\0\x01x"
        return 5


def test_a_frame_came_no_earlier_than_it_was_read(wake_fd: int) -> None:
    """Else a heartbeat that came while the process stood still would seem to have come before."""
    loop, sock, came = Loop(wake_fd, [(9, READ)]), Late(), list[int]()
    channel: Any = SimpleNamespace(
        number=1,
        sock=sock,
        connected=True,
        broken=False,
        is_paused=False,
        seen_frame=False,
        partial_bytes=0,
        partial_since_us=-1,
    )
    transport: Any = loop.reactor._transport
    transport.by_fd[9] = channel
    transport.receive_bytes, transport.received = lambda _: 0, lambda *_: None
    transport.knows, transport.is_broken, transport.dealt_with = lambda _: True, lambda _: False, lambda *_: None
    loop.reactor._lock = threading.Lock()  # type: ignore[assignment]
    connections = SimpleNamespace(frames_set_aside={}, is_voters=lambda _: True, is_consumers=lambda _: False)
    loop.replica.connections = connections
    loop.replica.on_frames = lambda frames, now_us: (came.append(now_us), loop.reactor.on_stopped(None))
    loop.run()
    assert came[0] >= sock.read_us > 0


@pytest.mark.parametrize("is_broken", [True, False])
def test_of_a_connection_that_is_broken_only_what_changes_something_is_looked_at(wake_fd: int, is_broken: bool) -> None:
    """A thousand connections ask for all configurations 64 times each, and are closed: five minutes' work."""
    reading = [ApiKey.DESCRIBE_CONFIGS, ApiKey.METADATA, ApiKey.FETCH, ApiKey.DESCRIBE_QUORUM, ApiKey.API_VERSIONS]
    changing = [ApiKey.END_QUORUM_EPOCH, ApiKey.BROKER_HEARTBEAT, ApiKey.PRODUCE, ApiKey.CREATE_TOPICS]
    loop, looked_at = Loop(wake_fd, [(wake_fd, 1)], []), list[int]()
    transport: Any = loop.reactor._transport
    transport.knows, transport.is_broken, transport.dealt_with = lambda _: True, lambda _: is_broken, lambda *_: None
    loop.replica.connections = SimpleNamespace(
        frames_set_aside={}, is_voters=lambda _: False, is_consumers=lambda _: False
    )
    loop.replica.on_frames = lambda frames, now_us: looked_at.extend(
        int.from_bytes(frame[:2], "big") for _, frame in frames
    )
    loop.reactor._lock = threading.Lock()  # type: ignore[assignment]
    loop.reactor._sweep = lambda *_: None  # type: ignore[method-assign]
    arrivals = [(EVENT_FRAME, 7, each.to_bytes(2, "big"), 0, 0) for each in [*changing, *reading]]
    loop.reactor.post(lambda replica, now_us: loop.reactor._came.extend(arrivals))
    loop.run()
    assert looked_at == changing + ([] if is_broken else reading)
