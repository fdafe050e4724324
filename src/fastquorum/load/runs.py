"""A whole run, as the command line asks for it: stage, warm-up, the measured phases, the result; and the sweep."""

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fastquorum.load.hdr import Interval
from fastquorum.load.plan import LoadPlan
from fastquorum.load.recorded import RecordedRun, TimelinePoint
from fastquorum.load.result import Result, result_of, sweep_result
from fastquorum.load.running import Kill, Wish, run_phase
from fastquorum.load.stage import Stage
from fastquorum.load.stolen import Stolen
from fastquorum.trace import NodeTrace

FIRST_RATE: Final = 1000.0
ACHIEVED_MIN: Final = 0.98
"""Achieved part of the offered load; less is beyond the knee."""
ERRORS_MAX: Final = 0.001
"""Failed part of the appends; more is beyond the knee."""
LATENCY_MAX: Final = 20.0
"""Latency as a multiple of the lightest load's p50: beyond it arrivals only queue."""
DOUBLINGS_MAX: Final = 16
BISECTIONS: Final = 3


@dataclass(slots=True)
class Watching:
    """Callbacks for the progress of a run."""

    on_phase: Callable[[str, float], None] = lambda name, seconds: None
    """Called when a phase begins, with its name and seconds."""
    on_point: Callable[[TimelinePoint], None] = lambda point: None
    on_result: Callable[[Result], None] = lambda result: None


@dataclass(slots=True)
class Runs:
    """Phases on one stage."""

    stage: Stage
    plan: LoadPlan
    machine: Mapping[str, Any]
    wish: Wish
    watching: Watching = field(default_factory=Watching)
    intervals: list[Interval] = field(default_factory=list)
    """Intervals of the last measured phase, for the files of other tools."""
    trace_capacity: int = 0
    """Batches that each node records while it is measured; 0: none."""
    traces: list[NodeTrace] = field(default_factory=list)
    """Traces of the last measured phase."""
    around: Callable[[Stage], AbstractContextManager[object]] = nullcontext
    """Entered around each measured phase."""
    _phases: int = 0

    def run(self, kill_at_s: float | None = None) -> Result:
        """Warm up, and measure once."""
        self._warm_up(self.plan)
        return self._measure(self.plan, Kill(kill_at_s) if kill_at_s is not None else None)

    def sweep(self) -> Result:
        """Double the offered load until the quorum does not keep up, close in on the knee, then offer twice of it.

        The knee is the highest offered load that was achieved (98 %), with hardly an error (0.1 %), at a p50 below 20
        times that of the lightest load.
        """
        self._warm_up(self.plan)
        steps: list[Result] = []
        good: Result | None = None
        rate, bad_rate = self.plan.records_per_s or FIRST_RATE, math.inf
        for _ in range(DOUBLINGS_MAX):
            step = self._step(rate, steps)
            if self.wish.is_over or not keeps_up(step, steps[0]):
                bad_rate = rate
                break
            good, rate = step, rate * 2
        for _ in range(BISECTIONS):
            if self.wish.is_over or good is None or math.isinf(bad_rate):
                break
            rate = math.sqrt(good["plan"]["records_per_s"] * bad_rate)
            step = self._step(rate, steps)
            if keeps_up(step, steps[0]):
                good = step
            else:
                bad_rate = rate
        overload = None
        if self.wish.is_over:
            good = None  # the highest load that was kept up with is not yet the highest that can be
        if good is not None:
            overload = self._step(good["plan"]["records_per_s"] * 2, steps)
        return sweep_result(steps, good, overload, self.machine)

    def offer(self, records_per_s: float) -> Result:
        """Measure once at another offered load, without a warm-up."""
        return self._measure(replace(self.plan, records_per_s=records_per_s), None)

    def _step(self, rate: float, steps: list[Result]) -> Result:
        step = self.offer(rate)
        steps.append(step)
        self.watching.on_result(step)
        return step

    def _warm_up(self, plan: LoadPlan) -> None:
        if plan.warmup_s and not self.wish.is_over:
            self._phase("warming up", plan, plan.warmup_s, None)

    def _measure(self, plan: LoadPlan, kill: Kill | None) -> Result:
        started = datetime.datetime.now(datetime.UTC)
        self.stage.observe(self.trace_capacity)
        name = f"{plan.closed} in flight" if plan.closed else f"{plan.records_per_s:,.0f} records/s"
        with self.around(self.stage):
            before, stolen = self._cpu_s(), Stolen()
            recorded = self._phase(name, plan, plan.seconds, kill)
            used, stolen_share = self._cpu_s() - before, stolen.share()
        observed = self.stage.observed()
        self.traces = [node.trace for node in observed.values() if node.trace is not None]
        self.intervals = recorded.intervals
        is_whole = bool(self.stage.nodes) and not any(node.was_killed for node in self.stage.nodes)
        result = result_of(
            plan,
            recorded,
            self.stage,
            started=started,
            cpu_s=used if is_whole else None,
            stolen_share=stolen_share,
            kill=kill,
            machine=self.machine,
        )
        result["stages"] = {str(node_id): node.figures() for node_id, node in sorted(observed.items())}
        return result

    def _phase(self, name: str, plan: LoadPlan, seconds: float, kill: Kill | None) -> RecordedRun:
        self.watching.on_phase(name, seconds)
        self._phases += 1
        return run_phase(self.stage, plan, self._phases, seconds, self.wish, self.watching.on_point, kill)

    def _cpu_s(self) -> float:
        return sum(worker.cpu_s() for worker in self.stage.workers)


def keeps_up(step: Result, lightest: Result) -> bool:
    """Is this offered load below the knee?"""
    errors = sum(step["errors"].values())
    return bool(
        step["acknowledged"]
        and step["achieved_per_s"] >= ACHIEVED_MIN * step["offered_per_s"]
        and errors <= ERRORS_MAX * step["appends"]
        and step["latency_us"]["p50"] <= LATENCY_MAX * lightest["latency_us"]["p50"]
    )


def steps_of(result: Result) -> Sequence[Result]:
    """Return the steps of a sweep; a single run is its own only step."""
    steps: Sequence[Result] = result.get("steps", (result,))
    return steps
