"""What was measured in one phase, put together from the reports of all workers that generated in it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastquorum.load.hdr import Histogram, Interval
from fastquorum.load.processes import Message

HDR_INTERVAL_S: Final = 1.0
LATE_SHARE: Final = 0.5
"""A tail of which this much is the generator's own lateness says more of the generator than of the quorum."""
OWN_SHARE_MAX: Final = 0.5
BEHIND: Final = 1.01
"""The schedule took this much longer than it should have: the arrivals were not sent when they were due."""
BUSY_SHARE_MAX: Final = 0.9
MINIMUM_LATE_NS: Final = 1_000_000
"""Lateness below a tick is within what is promised."""


@dataclass(slots=True)
class TimelinePoint:
    """One interval of the timeline. Counts are of appends."""

    t_s: float
    """Its end, since the start of the phase."""
    span_s: float
    sent: int
    acknowledged: int
    errors: dict[str, int]
    in_flight: int
    p50_us: float
    p99_us: float
    max_us: float


@dataclass(slots=True)
class RecordedRun:
    """One phase."""

    start_ns: int
    seconds: float
    latencies: Histogram = field(default_factory=Histogram)
    lateness: Histogram = field(default_factory=Histogram)
    errors: Counter[str] = field(default_factory=Counter)
    points: list[TimelinePoint] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    sent: int = 0
    acknowledged_in_time: int = 0
    """Before the schedule's end: what came home later does not make the quorum faster."""
    window_ns: int = 0
    """From the start to when the last arrival was sent."""
    arrivals: int = 0
    """Scheduled; in a closed loop, sent."""
    leaderless_s: float = 0.0
    """Seconds without a leader whose process could generate."""
    is_interrupted: bool = False
    not_sent: int = 0
    generator_cpu_s: float = 0.0
    own_appends_per_s: float = 0.0

    @property
    def window_s(self) -> float:
        return max(self.window_ns / 1e9, 1e-9)

    def add(self, message: Message, lateness: npt.NDArray[np.int64]) -> None:
        """A report, and the lateness of those of its ticks that count."""
        fields, latencies = message.fields, message.latencies
        since_ns = fields["at_ns"] - self.start_ns
        self.sent += fields["sent"]
        self.errors.update(fields["errors"])
        self.lateness.record(np.maximum(lateness, 1))
        if not fields["is_draining"]:
            self.window_ns = max(self.window_ns, since_ns)
        if not fields["is_draining"] or since_ns <= self.seconds * 1e9:
            self.acknowledged_in_time += len(latencies)
        self._note(since_ns / 1e9, fields, latencies)

    def _note(self, t_s: float, fields: dict[str, Any], latencies: npt.NDArray[np.int64]) -> None:
        histogram = Histogram()
        histogram.record(latencies)
        self.latencies.add(histogram)
        before_s = self.points[-1].t_s if self.points else 0.0
        figures = histogram.as_us()
        self.points.append(
            TimelinePoint(
                t_s=max(t_s, before_s),
                span_s=max(t_s - before_s, 0.0),
                sent=fields["sent"],
                acknowledged=len(latencies),
                errors=fields["errors"],
                in_flight=fields["in_flight"],
                p50_us=figures["p50"],
                p99_us=figures["p99"],
                max_us=figures["max"],
            )
        )
        last = self.intervals[-1] if self.intervals else None
        if last is None or t_s - last.start_s > HDR_INTERVAL_S:
            start_s = 0.0 if last is None else last.start_s + last.length_s
            self.intervals.append(Interval(start_s, max(t_s - start_s, 0.0), histogram))
        else:
            last.histogram.add(histogram)
            self.intervals[-1] = last._replace(length_s=max(t_s - last.start_s, last.length_s))

    def bottleneck(self, *, is_closed: bool, is_alone: bool) -> tuple[bool, str]:
        """Was it the generator that was measured? And how that was found.

        `is_alone`: the generator's process holds nothing else, so that its processor time is the generator's own.
        """
        busy = self.generator_cpu_s / self.window_s
        if is_alone and busy > BUSY_SHARE_MAX:
            return True, f"the generator's process used {busy:.0%} of a processor"
        rate = self.sent / self.window_s
        if self.own_appends_per_s and rate > OWN_SHARE_MAX * self.own_appends_per_s:
            return True, (
                f"{rate:,.0f} appends/s were sent, and the generator sends no more than "
                f"{self.own_appends_per_s:,.0f}/s to a target that does nothing"
            )
        own = f"; to a target that does nothing it sends {self.own_appends_per_s:,.0f}/s" * bool(self.own_appends_per_s)
        if is_closed:
            return False, f"closed loop at {rate:,.0f} appends/s{own}"
        late_ns = self.lateness.at_percentile(99)
        is_behind = self.window_s - self.leaderless_s > self.seconds * BEHIND
        if self.not_sent or (is_behind and not self.is_interrupted):
            rest = f", with {self.not_sent:,} appends of it not sent" if self.not_sent else ""
            return True, (
                f"a schedule of {self.seconds:g} s took {self.window_s:.2f} s{rest}: the appending thread was busy "
                f"with the appends themselves{own}"
            )
        lateness_text = f"ticks began {late_ns / 1e3:,.0f} us late at p99{own}"
        if self.latencies.total < sum(self.errors.values()):
            return False, f"{lateness_text}; most appends failed, which tells nothing about it"
        for percent in (50, 99):
            late, latency = self.lateness.at_percentile(percent), self.latencies.at_percentile(percent)
            if late > max(LATE_SHARE * latency, MINIMUM_LATE_NS):
                return (
                    True,
                    f"ticks began {late / 1e3:,.0f} us late at p{percent}, of a latency of {latency / 1e3:,.0f} us",
                )
        return False, lateness_text
