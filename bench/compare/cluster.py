"""Three processes of a contender, its client process if it has one, and what they cost."""

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.compare.workload import BadAnswer, Figures, Workload, parse
from fastquorum.observe.process import cpu_s_of

ROOT = Path(__file__).parent.parent.parent
SCHEDULERS_CLOCK = 2
"""The clock CPUCLOCK_SCHED of a process."""
LEADER_S = 90.0
"""Longest wait for a leader, JVMs and elections included."""
GRACE_S = 60.0
"""A run that takes so much longer than planned hangs."""
STOP_S = 10.0


class ContenderFailed(Exception):
    """It could not be started, died or hangs; the message says which and what it printed last."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a contender's processes are started."""

    members: Sequence[Sequence[str]]
    """Three commands."""
    client: Callable[[int], Sequence[str]] | None = None
    """The command of a client process, given which member leads, 0 to 2. None: the leader's process loads itself."""
    leads: Callable[[int], bool] | None = None
    """Whether a member leads, for members that do not speak our lines."""
    environment: Mapping[str, str] = field(default_factory=dict)


class Process:
    """One of them. Its stderr goes to a file, whose end is shown if it fails."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.name, self._log = name, log
        with log.open("wb") as stderr:
            self._popen = subprocess.Popen(
                list(command),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **environment},
            )
        self._rest = b""

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ask(self, command: Mapping[str, Any], timeout_s: float) -> str:
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(json.dumps(command).encode() + b"\n")
            self._popen.stdin.flush()
        except BrokenPipeError:
            raise self._failed("has ended") from None
        return self._line(timeout_s)

    def check(self) -> None:
        if self._popen.poll() is not None:
            raise self._failed(f"ended with {self._popen.returncode}")

    def _line(self, timeout_s: float) -> str:
        assert self._popen.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._popen.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._failed(f"did not answer within {timeout_s:.0f} s")
            got = os.read(self._popen.stdout.fileno(), 1 << 16)
            if not got:
                raise self._failed("has ended")
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    def _failed(self, what: str) -> ContenderFailed:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        last_lines = f"; it said: {' / '.join(lines[-3:])[-400:]}" if lines else ""
        return ContenderFailed(f"{self.name} {what}{last_lines}")

    def cpu_us(self) -> float:
        """Return its user and system time so far."""
        return cpu_s_of(self.pid) * 1e6

    def ask_to_end(self) -> None:
        assert self._popen.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already
            self._popen.stdin.close()

    def stop(self, speaks: bool) -> None:
        """Ends with its stdin, if it speaks our lines; else, or if it does not, it is told to, then made to."""
        assert self._popen.stdout is not None
        for end, patience_s in ((self._popen.terminate, STOP_S if speaks else 0.0), (self._popen.kill, STOP_S)):
            try:
                self._popen.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                end()
        self._popen.wait()
        self._popen.stdout.close()


class Started:
    """Processes that are up within a `with` block: what was started ends with it, if not all of it starts, too."""

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    def _begin(self) -> None:
        """Start them, and return when they serve."""
        raise NotImplementedError

    def _end(self) -> None:
        """End those that were started."""
        raise NotImplementedError


class Cluster(Started):
    """A running contender; ends with its `with` block."""

    def __init__(self, name: str, plan: Plan, directory: Path, prefix: Callable[[int], Sequence[str]] | None = None):
        """`prefix` goes before a member's command: a tracer."""
        self._name, self._plan, self._directory = name, plan, directory
        self._prefix = prefix or (lambda number: ())
        self._members: list[Process] = []
        self._client: Process | None = None
        self._leader: int | None = None

    def _begin(self) -> None:
        for number, command in enumerate(self._plan.members):
            self._members.append(self._start(f"node {number + 1}", [*self._prefix(number), *command]))
        self._leader = self._await_leader()
        if self._plan.client is not None:
            self._client = self._start("client", self._plan.client(self._leader))

    def _start(self, role: str, command: Sequence[str]) -> Process:
        log = self._directory / f"{role.replace(' ', '-')}.stderr"
        try:
            return Process(f"{self._name}, {role}", command, log, self._plan.environment)
        except OSError as error:
            raise ContenderFailed(f"{self._name}: {command[0]} cannot be started: {error}") from None

    def _end(self) -> None:
        """All at once: who hands over to others waits for them."""
        clients = [self._client] if self._client else []
        for each in (*clients, *self._members):
            each.ask_to_end()
        for client in clients:
            client.stop(speaks=True)
        for member in self._members:
            member.stop(speaks=self._plan.leads is None)

    def _await_leader(self) -> int:
        deadline = time.monotonic() + LEADER_S
        while time.monotonic() < deadline:
            for number, member in enumerate(self._members):
                member.check()
                if self._leads(number, member):
                    return number
            time.sleep(0.05)  # between two looks, not instead of one
        raise ContenderFailed(f"{self._name}: nobody leads after {LEADER_S:.0f} s")

    def _leads(self, number: int, member: Process) -> bool:
        if self._plan.leads is not None:
            return self._plan.leads(number)
        answer = member.ask({"do": "who"}, LEADER_S)
        try:
            return bool(json.loads(answer)["leads"])
        except (ValueError, KeyError, TypeError):
            raise BadAnswer(f"{member.name} answered {answer[:200]!r} to who leads") from None

    @property
    def leader(self) -> int:
        """Which member led when it was last looked for, 0 to 2."""
        assert self._leader is not None
        return self._leader

    def cpu_us(self) -> dict[str, float]:
        """Return the processor time of each process so far."""
        return {each.name: each.cpu_us() for each in (*self._members, *([self._client] if self._client else []))}

    def run(self, workload: Workload, seconds: float) -> Figures:
        if self._client is None:
            self._leader = self._await_leader()
        loader = self._client or self._members[self._leader]
        before = self.cpu_us()
        line = loader.ask(workload.request(seconds), seconds + GRACE_S)
        used = {name: us - before[name] for name, us in self.cpu_us().items()}
        figures = parse(self._name, line)
        return Figures(
            figures.commits,
            figures.seconds,
            figures.percentiles_us,
            figures.errors,
            figures.not_sent,
            figures.error,
            sum(used.values()),
            used,
        )
