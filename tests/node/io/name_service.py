"""A name service for tests inside one process, in place of the system's resolver."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fastquorum.node.io.sockets import resolving
from tests.api.nodes import WAIT_S


class Names:
    """In place of the system's resolver: nothing else here can be silent, and then speak, when a test wants it."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.hung: dict[str, threading.Event] = {}
        self.queries: list[str] = []
        self.running = 0
        self.running_max = 0
        self._real = socket.getaddrinfo
        self._guard = threading.Lock()

    def hang(self, *hosts: str) -> None:
        self.hung.update({host: threading.Event() for host in hosts})

    def release(self) -> None:
        for event in self.hung.values():
            event.set()

    def look_up(self, host: str, *arguments: Any, **named: Any) -> Any:
        if named.get("flags"):
            return self._real(host, *arguments, **named)
        with self._guard:
            self.queries.append(host)
            self.running += 1
            self.running_max = max(self.running, self.running_max)
        try:
            if host in self.hung:
                self.hung[host].wait(WAIT_S)
            if not self.addresses.get(host):
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            return [row for each in self.addresses[host] for row in self._real(each, *arguments, **named)]
        finally:
            with self._guard:
                self.running -= 1


@contextmanager
def name_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    """Names are those of the test, and nothing is known of them yet."""
    made = Names()
    monkeypatch.setattr(socket, "getaddrinfo", made.look_up)
    monkeypatch.setattr(resolving, "_lookups", resolving._Lookups())
    yield made
    made.release()
    until = time.monotonic() + WAIT_S
    while made.running:
        assert time.monotonic() < until
        time.sleep(0.001)
