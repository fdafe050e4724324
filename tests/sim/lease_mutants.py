"""Bugs put back on purpose, for the simulated members to catch: each term of the lease promise (`fastquorum.lease`)
left out, and each of the rules that its terms rest on."""

from typing import Any

from fastquorum.controller.image.registrations import Brokers
from fastquorum.controller.state.heartbeats import Heartbeats
from fastquorum.lease import LeasePromise
from fastquorum.node.lane.python_shell import LaneShell
from fastquorum.node.metadata.controller import MetadataController
from fastquorum.sim.node.threads import ReplicaThread
from fastquorum.types import Micros
from tests.sim.mutants import Mutant, Patcher


def _confirmed_natively(patcher: Patcher) -> None:
    serve_beats = LaneShell.serve_beats
    patcher.setattr(LaneShell, "serve_beats", lambda shell, beats, _: serve_beats(shell, beats, 1 << 61))


def _confirmed_in_python(patcher: Patcher) -> None:
    patcher.setattr(MetadataController, "_confirm", lambda *_: True)


def _lease_of(patcher: Patcher, sixteenths: int) -> None:
    promise_of = LeasePromise.of

    def longer(session_us: Micros) -> LeasePromise:
        promise = promise_of(session_us)
        return LeasePromise(session_us, promise.confirmed_us, session_us * sixteenths // 16, promise.slack_us)

    patcher.setattr(LeasePromise, "of", staticmethod(longer))
    patcher.setattr(LeasePromise, "holds", property(lambda _: True))


def _lease(patcher: Patcher) -> None:
    _lease_of(patcher, 24)


def _slack(patcher: Patcher) -> None:
    _lease_of(patcher, 15)


def _session(patcher: Patcher) -> None:
    begin = Heartbeats.__init__

    def halfway(self: Heartbeats, known: Brokers, now_us: Micros, session_timeout_us: Micros, *rest: Any) -> None:
        begin(self, known, now_us - session_timeout_us // 2, session_timeout_us, *rest)

    patcher.setattr(Heartbeats, "__init__", halfway)


def _session_of_the_fenced(patcher: Patcher) -> None:
    begin = Heartbeats.__init__

    def none_presumed(self: Heartbeats, *arguments: Any) -> None:
        begin(self, *arguments)
        for tracked in self._brokers.values():
            tracked.presumed_us = None

    patcher.setattr(Heartbeats, "__init__", none_presumed)


def _clock(patcher: Patcher) -> None:
    """Whoever stops a process has put its machine to sleep."""
    freeze, thaw = ReplicaThread.freeze, ReplicaThread.thaw
    asleep: dict[ReplicaThread, Micros] = {}

    def sleep(thread: ReplicaThread) -> None:
        asleep[thread] = thread._process.now_us
        freeze(thread)

    def wake(thread: ReplicaThread) -> None:
        thread._process.build.clock._zero_us -= thread._process.now_us - asleep.pop(thread)
        thaw(thread)

    patcher.setattr(ReplicaThread, "freeze", sleep)
    patcher.setattr(ReplicaThread, "thaw", wake)


MUTANTS: dict[str, Mutant] = {
    "C17-native": Mutant("a heartbeat is answered natively by a controller that was replaced", _confirmed_natively),
    "C17-python": Mutant("a heartbeat is answered by a controller that was replaced", _confirmed_in_python),
    "C17-lease": Mutant("a member acts for longer than its session lasts", _lease),
    "C17-slack": Mutant("the clocks are taken to run equally fast", _slack),
    "C17-session": Mutant("a new controller gives half a session", _session),
    "C17-clock": Mutant("a controller's clock stands still while its machine sleeps", _clock),
    "C17-fenced": Mutant("a new controller lets in a successor of whoever was fenced at once", _session_of_the_fenced),
}
