"""Runs one phase on a stage: sets the generator going, hears its reports, kills the leader if asked to, and sees to it
that the load goes on with the next leader.

With the embedded driver the leader generates, so that killing the leader kills the callers in its process too: what
they had in flight, or sent since their last report, counts as `killed`, of unknown outcome. Arrivals that fall due
until the next leader is elected wait for it; it sends them then, late, and their latency counts from when they were
due.
"""

import time
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from fastquorum.errors import NotReady
from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.plan import LoadPlan
from fastquorum.load.processes import Message, WorkerProcess
from fastquorum.load.recorded import RecordedRun, TimelinePoint
from fastquorum.load.stage import ELECTION_S, Stage

LEAD_NS: Final = 200_000_000
"""From telling a worker to start until the schedule begins: it is to be ready by then."""
_LOOK_S: Final = 0.1
CAUGHT_UP_NS: Final = 2_000_000
KILLED: Final = "killed"
NOT_SENT: Final = "not_sent"
"""Arrivals that the generator had not sent when the schedule was over."""


class Wish:
    """What the user wants meanwhile."""

    def __init__(self) -> None:
        self.is_over = False
        """Set by a signal: end the run, and report."""


class Kill:
    """The leader is to be killed this long after the start."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s
        self.node_id = -1
        self.at_ns = 0
        """On the monotonic clock; 0: not yet."""


def run_phase(
    stage: Stage,
    plan: LoadPlan,
    phase: int,
    seconds: float,
    wish: Wish,
    on_point: Callable[[TimelinePoint], None] = lambda point: None,
    kill: Kill | None = None,
) -> RecordedRun:
    """One phase, from its first arrival until the last fate is known. Phases of a stage are numbered from 0."""
    return _Phase(stage, plan, phase, seconds, wish, on_point, kill).run()


class _Phase:
    def __init__(
        self,
        stage: Stage,
        plan: LoadPlan,
        phase: int,
        seconds: float,
        wish: Wish,
        on_point: Callable[[TimelinePoint], None],
        kill: Kill | None,
    ) -> None:
        self._stage = stage
        self._plan = plan
        self._phase = phase
        self._wish = wish
        self._on_point = on_point
        self._kill = kill
        self._schedule = None if plan.closed else Schedule(plan, seconds, plan.seed + phase)
        self._recorded = RecordedRun(0, seconds)
        self._current: WorkerProcess | None = None
        """The worker that generates; None while there is no leader."""
        self._is_ending = False
        self._last: dict[str, int] = {"next_tick": 0, "in_flight": 0}
        """Fields of the current worker's last report."""
        self._next_tick = 0
        self._is_catching_up = False
        self._leaderless_since = 0.0

    def run(self) -> RecordedRun:
        stage, recorded = self._stage, self._recorded
        stage.await_leader()
        stage.prepare(all_nodes=stage.is_embedded and self._kill is not None)
        stage.await_leader()
        recorded.start_ns = time.monotonic_ns() + LEAD_NS
        self._succeed()
        is_over = False
        while not is_over:
            self._look_at_the_clock()
            message = stage.next(_LOOK_S)
            if message is not None:
                is_over = self._hear(message)
            if self._current is None and not is_over:
                is_over = self._look_for_successor()
        if self._schedule is None:
            recorded.arrivals = recorded.sent + sum(recorded.errors.values())
        else:
            recorded.arrivals = self._schedule.arrivals(0, self._next_tick)
        recorded.is_interrupted = self._wish.is_over
        return recorded

    def _look_at_the_clock(self) -> None:
        if self._wish.is_over and self._current is not None and not self._is_ending:
            self._end_current()
        kill = self._kill
        if kill is not None and not kill.at_ns and time.monotonic_ns() >= self._recorded.start_ns + kill.at_s * 1e9:
            victim = self._stage.kill_leader()
            if victim is not None:
                kill.at_ns, kill.node_id = time.monotonic_ns(), victim.node_id

    def _hear(self, message: Message) -> bool:
        """True if the phase is over."""
        fields = message.fields
        match message.word:
            case "interval" if fields["phase"] == self._phase:
                self._recorded.add(message, self._own_lateness(message.lateness))
                self._last = fields
                self._on_point(self._recorded.points[-1])
            case "generated" if fields["phase"] == self._phase and message.worker is self._current:
                self._next_tick = fields["next_tick"]
                self._recorded.generator_cpu_s += fields["cpu_s"]
                self._recorded.own_appends_per_s = fields["own_appends_per_s"]
                return self._hand_over()
            case "gone" if message.worker is self._current:
                self._count_killed()
                self._current = None
                self._leaderless_since = time.monotonic()
            case "leadership" if self._stage.is_embedded:
                leader = self._stage.generating()
                if self._current is not None and leader not in (None, self._current) and not self._is_ending:
                    self._end_current()
        return False

    def _end_current(self) -> None:
        assert self._current is not None
        self._is_ending = True
        self._current.tell("end", phase=self._phase)

    def _hand_over(self) -> bool:
        """The current worker has ended: because all is done, or because another one leads."""
        self._current = None
        self._leaderless_since = time.monotonic()
        if self._schedule is not None and not self._is_ending and self._next_tick < self._schedule.ticks:
            self._recorded.not_sent = self._schedule.arrivals(self._next_tick, self._schedule.ticks)
            self._recorded.errors[NOT_SENT] += self._recorded.not_sent
            self._next_tick = self._schedule.ticks
        return self._wish.is_over or self._is_done()

    def _is_done(self) -> bool:
        if self._schedule is not None:
            return self._next_tick >= self._schedule.ticks
        return time.monotonic_ns() >= self._recorded.start_ns + self._recorded.seconds * 1e9

    def _look_for_successor(self) -> bool:
        if self._wish.is_over or self._is_done():
            return True
        if self._stage.generating() is not None:
            self._succeed()
        elif time.monotonic() > self._leaderless_since + ELECTION_S:
            raise NotReady(f"no leader was elected within {ELECTION_S:g} s after the last one")
        return False

    def _succeed(self) -> None:
        """Have the present leader generate, from the next tick on."""
        worker = self._stage.generating()
        assert worker is not None
        if self._leaderless_since:
            self._recorded.leaderless_s += time.monotonic() - self._leaderless_since
        self._is_catching_up = self._next_tick > 0
        self._current = worker
        self._is_ending = False
        self._last = {"next_tick": self._next_tick, "in_flight": 0}
        worker.tell(
            "generate",
            phase=self._phase,
            plan=self._plan.as_json(),
            seconds=self._recorded.seconds,
            start_ns=self._recorded.start_ns,
            first_tick=self._next_tick,
        )

    def _own_lateness(self, lateness: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Without the ticks that were overdue when their worker took over: it is not to blame for them."""
        if self._is_catching_up:
            in_time = np.flatnonzero(lateness < CAUGHT_UP_NS)
            self._is_catching_up = not len(in_time)
            return lateness[in_time[0] :] if len(in_time) else lateness[:0]
        return lateness

    def _count_killed(self) -> None:
        """What the killed worker had in flight, and what it was to send after its last report, until it was killed."""
        kill = self._kill
        assert kill is not None, "only a kill on purpose gets here"
        lost = self._last["in_flight"]
        if self._schedule is not None:
            self._next_tick = max(self._schedule.tick_at(kill.at_ns - self._recorded.start_ns), self._last["next_tick"])
            lost += self._schedule.arrivals(self._last["next_tick"], self._next_tick)
        self._recorded.errors[KILLED] += lost
