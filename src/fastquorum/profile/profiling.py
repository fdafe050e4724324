"""One profile: samplers on the chosen processes, and a look at every thread before and after."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from fastquorum.profile.stacks import UNKNOWN, Stacks, below, is_waiting, scaled, together
from fastquorum.profile.threads import NATIVE, between, read_threads
from fastquorum.profile.tools import (
    Missing,
    Perf,
    PySpy,
    Sampler,
    SamplerFailed,
    hardware_counters_missing,
    python_threads,
)

WHOM: Final = ("leader", "followers", "all")
OFF_CPU: Final = Missing(
    "what native threads wait for", "perf's clock runs on a processor only; /proc has the time off it", ""
)


class Subject(NamedTuple):
    """A process that runs a node."""

    node_id: int
    pid: int
    is_leader: bool

    @property
    def title(self) -> str:
        return f"node {self.node_id} ({'leader' if self.is_leader else 'follower'})"


class _Running(NamedTuple):
    subject: Subject
    sampler: Sampler


class Profiler:
    """Takes one profile; what it found stands in its attributes."""

    def __init__(self, directory: str, rate: int, whom: str) -> None:
        """What samplers write goes to `directory`, and is read there; `rate` samples a second; `whom` is of WHOM."""
        self.subjects: list[Subject] = []
        self.sampled: list[int] = []
        """Ids of the nodes whose stacks were to be taken."""
        self.stacks: Stacks = {}
        """On a processor. How much of each thread is /proc's, which frames it went to are the samples'."""
        self.waits: Stacks = {}
        """The same of threads that run Python while they wait for something."""
        self.threads: dict[int, list[dict[str, Any]]] = {}
        """By node; see `threads.between`."""
        self.missing: list[Missing] = []
        self.wall_s = 0.0
        self.has_python = False
        """Stacks of Python's threads were found."""
        self._directory = directory
        self._rate = rate
        self._whom = whom
        self._names: dict[int, dict[int, str]] = {}

    @contextmanager
    def around(self, subjects: Sequence[Subject]) -> Iterator[None]:
        """Profile what happens in the block. A sampler that cannot work is noted as missing; the rest goes on."""
        self.subjects = list(subjects)
        chosen = [each for each in subjects if self._whom in ("all", "leader" if each.is_leader else "followers")]
        self.sampled = [each.node_id for each in chosen]
        running: list[_Running] = []
        try:
            for each in chosen:
                self._begin(running, each)
            before = {each.node_id: read_threads(each.pid) for each in subjects}
            began = time.monotonic()
            yield
            self.wall_s = time.monotonic() - began
            after = {each.node_id: read_threads(each.pid) for each in subjects}
        except BaseException:
            for each_running in running:
                each_running.sampler.abandon()
            raise
        self.threads = {
            node_id: between(before[node_id], after[node_id], self.wall_s, self._names.get(node_id))
            for node_id in after
        }
        self._collect(running)

    def _begin(self, running: list[_Running], subject: Subject) -> None:
        path = os.path.join(self._directory, f"node-{subject.node_id}")
        native = [thread for thread, times in read_threads(subject.pid).items() if times.name.startswith(NATIVE)]
        try:
            self._names[subject.node_id] = python_threads(subject.pid)
            running.append(_Running(subject, PySpy(subject.pid, self._rate, f"{path}.py-spy")))
        except SamplerFailed as error:
            self._note(error)
        try:
            if native:
                running.append(_Running(subject, Perf(native, self._rate, f"{path}.perf")))
        except SamplerFailed as error:
            self._note(error)

    def _collect(self, running: Sequence[_Running]) -> None:
        for each in running:
            each.sampler.stop()
        found: list[Stacks] = []
        waits: list[Stacks] = []
        for subject, sampler in running:
            try:
                stacks = sampler.finish()
            except SamplerFailed as error:
                self._note(error)
                continue
            finally:
                if os.path.exists(sampler.output):
                    os.unlink(sampler.output)
            if isinstance(sampler, Perf):
                found.append(below(subject.title, stacks))  # by a clock that runs on a processor only
            else:
                self.has_python = True
                found.append(below(subject.title, {stack: at for stack, at in stacks.items() if not is_waiting(stack)}))
                waits.append(below(subject.title, {stack: at for stack, at in stacks.items() if is_waiting(stack)}))
        for subject in self.subjects:
            if subject.node_id in self.sampled:
                self.stacks = together([self.stacks, self._measured(subject, found, "running_s")])
                self.waits = together([self.waits, self._measured(subject, waits, "blocked_s")])
        self._note_limits()

    def _measured(self, subject: Subject, found: Sequence[Stacks], what: str) -> Stacks:
        """One node's stacks, each thread's made to take the time that /proc tells of it."""
        its = {stack[1:]: at for stacks in found for stack, at in stacks.items() if stack[0] == subject.title}
        seconds: dict[str, float] = {}
        for row in self.threads[subject.node_id]:
            name = f"{row['name']} (native)" if row["is_native"] else row["name"]
            if what == "running_s" or not row["is_native"]:
                seconds[name] = seconds.get(name, 0.0) + (row[what] or 0.0)
        if what == "running_s":
            return below(subject.title, scaled(its, seconds))
        return below(subject.title, {stack: at for stack, at in scaled(its, seconds).items() if stack[-1] != UNKNOWN})

    def _note(self, error: SamplerFailed) -> None:
        if error.missing not in self.missing:
            self.missing.append(error.missing)

    def _note_limits(self) -> None:
        counters = hardware_counters_missing()
        self.missing += [OFF_CPU] if counters is None else [OFF_CPU, counters]
        if any(row["ready_s"] is None for rows in self.threads.values() for row in rows):
            self.missing.append(
                Missing("time ready, but without a processor", "this kernel has no /proc/PID/task/TID/schedstat", "")
            )
