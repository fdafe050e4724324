"""The replica's loop: what came in is looked at before anybody is held to a deadline."""

import os
from types import SimpleNamespace
from typing import Any

from fastquorum.config import QuorumConfig
from fastquorum.node.io.reactor import Reactor


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
        self.log = SimpleNamespace(durable_mark=SimpleNamespace(at=SimpleNamespace(offset=0)), end_offset=0)
        self.reactor: Any = None

    def start(self, now_us: int) -> None:
        pass

    def work(self, now_us: int) -> None:
        pass

    def on_tick(self, now_us: int) -> None:
        self.calls.append("timer")
        self.reactor.on_stopped(None)


def test_what_a_stale_poll_did_not_show_comes_before_the_timer() -> None:
    calls: list[str] = []
    wake_fd = os.eventfd(1)
    epoll = Polls([], [(wake_fd, 1)])
    transport: Any = SimpleNamespace(
        epoll=epoll, by_fd={}, wake_fd=wake_fd, resolved=[], lost=[], note_request=None, wake=lambda: None
    )
    replica: Any = Overdue(calls)
    reactor = Reactor(
        config=QuorumConfig(),
        transport=transport,
        flusher=SimpleNamespace(fileno=lambda: -7),  # type: ignore[arg-type]
        lock=SimpleNamespace(),  # type: ignore[arg-type]
        listening=SimpleNamespace(fileno=lambda: -8),  # type: ignore[arg-type]
        name="loop",
        on_end=lambda error: None,
    )
    replica.reactor = reactor
    reactor._sweep = lambda *_: None  # type: ignore[method-assign]
    reactor.post(lambda replica, now_us: calls.append("frame"))
    reactor._loop(replica)
    os.close(wake_fd)
    assert calls == ["frame", "timer"]
    assert epoll.waits[1] == 0


def test_a_sync_s_report_after_the_end_is_left_for_whoever_closes_the_log() -> None:
    calls: list[str] = []
    wake_fd = os.eventfd(1)
    epoll = Polls([(wake_fd, 1), (-7, 1)])
    transport: Any = SimpleNamespace(
        epoll=epoll, by_fd={}, wake_fd=wake_fd, resolved=[], lost=[], note_request=None, wake=lambda: None
    )
    replica: Any = Overdue(calls)
    reactor = Reactor(
        config=QuorumConfig(),
        transport=transport,
        flusher=SimpleNamespace(fileno=lambda: -7, completions=lambda: calls.append("report")),  # type: ignore[arg-type]
        lock=SimpleNamespace(),  # type: ignore[arg-type]
        listening=SimpleNamespace(fileno=lambda: -8),  # type: ignore[arg-type]
        name="loop",
        on_end=lambda error: None,
    )
    reactor.post(lambda replica, now_us: reactor.on_stopped(None))
    reactor._loop(replica)
    os.close(wake_fd)
    assert calls == []
