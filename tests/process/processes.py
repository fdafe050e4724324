"""A child process that speaks JSON lines: started, signalled, reaped. A thread reads what it says, so nobody polls."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

Event = dict[str, Any]
WAIT_S = 30.0
"""Bound of waits that end at once when all is well: a loaded machine is no failure."""


class NodeProcess:
    """One node's process. `events` is all it said so far."""

    def __init__(
        self,
        node_id: int,
        arguments: Sequence[str],
        *,
        errors: Path,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        on_event: Callable[[int, Event], None] | None = None,
        module: str = "tests.process.node",
    ) -> None:
        self.node_id = node_id
        self.events: list[Event] = []
        self.errors = errors
        self._on_event = on_event
        self._changed = threading.Condition()
        self._over = False
        self.over_s = math.inf
        """When it ended, by the monotonic clock."""
        self.signals: set[int] = set()
        """Sent to it while it ran."""
        self._errors_from = errors.stat().st_size if errors.exists() else 0
        self._errors_bytes = -1
        """How much it wrote to stderr, once it has ended."""
        with errors.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                text=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"node-{node_id}-says", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def stderr(self) -> str:
        return self.errors.read_text(errors="replace")

    @property
    def own_stderr(self) -> str:
        """Without that of processes before it and after it."""
        with self.errors.open("rb") as stderr:
            stderr.seek(self._errors_from)
            return stderr.read(self._errors_bytes).decode(errors="replace")

    @property
    def code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def reported(self, event: str) -> list[Event]:
        with self._changed:
            return [each for each in self.events if each["event"] == event]

    def wait(self, is_it: Callable[[Event], bool], *, after: int = 0, timeout_s: float = WAIT_S) -> Event:
        """The first event from number `after` on that is it. AssertionError if it ends or is late."""
        found: list[Event] = []

        def look() -> bool:
            found.extend(each for each in self.events[after:] if is_it(each))
            return bool(found) or self._over

        with self._changed:
            self._changed.wait_for(look, timeout_s)
        if not found:
            state = "ended" if self._over else f"did not say it within {timeout_s} s"
            shown = f"it reported {self.events[-10:]}; stderr: {self.stderr[-2000:]}"
            raise AssertionError(f"node {self.node_id} {state}; {shown}")
        return found[0]

    def wait_event(self, event: str, *, after: int = 0, timeout_s: float = WAIT_S) -> Event:
        return self.wait(lambda each: each["event"] == event, after=after, timeout_s=timeout_s)

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def append(self, value: str, timeout_s: float) -> None:
        """Have it append in its own process; `appended` follows."""
        self.tell(f"append {timeout_s} {value}")

    def appended(self, value: str, timeout_s: float = WAIT_S) -> Event:
        return self.wait(lambda each: each["event"] == "appended" and each["value"] == value, timeout_s=timeout_s)

    def status(self) -> Event:
        """What it is now, and how far."""
        before = len(self.events)
        self.tell("status")
        return self.wait_event("status", after=before)

    def wait_status(self, is_it: Callable[[Event], bool], *, timeout_s: float = WAIT_S) -> Event:
        """Ask until it is so. Each question is a round trip to a busy process, so this does not spin."""
        deadline = time.monotonic() + timeout_s
        while not is_it(status := self.status()):
            assert time.monotonic() < deadline, f"node {self.node_id} did not get there: {self.events[-10:]}"
        return status

    def wait_role(self, *roles: str) -> None:
        self.wait_status(lambda status: status["role"] in roles)

    def wait_caught_up(self, end_offset: int) -> None:
        """Return once it knows that everything below is committed."""
        self.wait_status(lambda status: status["high_watermark"] >= end_offset)

    def signal(self, number: int) -> None:
        if self.is_alive:
            self.signals.add(number)
            self._process.send_signal(number)

    def ended(self, timeout_s: float = WAIT_S) -> int:
        """Its exit code, negative for a signal, once it has ended and all it said was read."""
        code = self._process.wait(timeout_s)
        self._reader.join(timeout_s)
        return code

    def wait_ended(self, timeout_s: float) -> bool:
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> int:
        """SIGKILL, which a stopped process obeys too; its exit code."""
        self.signal(signal.SIGKILL)
        return self.ended()

    def stop(self, timeout_s: float = WAIT_S) -> int:
        """SIGTERM; its exit code."""
        self.signal(signal.SIGTERM)
        return self.ended(timeout_s)

    def close(self) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "cut", "text": line}  # killed in the middle of a line
            event["at_s"] = time.monotonic()
            if self._on_event is not None:
                self._on_event(self.node_id, event)
            with self._changed:
                self.events.append(event)
                self._changed.notify_all()
        self._process.wait()
        self._errors_bytes = self.errors.stat().st_size - self._errors_from
        with self._changed:
            self._over = True
            self.over_s = time.monotonic()
            self._changed.notify_all()
