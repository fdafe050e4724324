"""What happened since the last report: samples and errors, handed over raw. The generator's loop must not stop to
think.

A report is a JSON line and, behind it, the samples as native int64: `samples` latencies in nanoseconds, one for each
append that was acknowledged, then `ticks` latenesses, one for each tick that was begun.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from fastquorum.errors import FastQuorumError

REPORT_NS: Final = 100_000_000
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")

Report = Callable[[dict[str, Any], bytes], None]


def kind_of(error: FastQuorumError) -> str:
    """An error's kind, as results name it: `overloaded`, `not_leader`; `outcome_unknown` if it may have committed."""
    if getattr(error, "maybe_committed", False):
        return "outcome_unknown"
    return _WORDS.sub("_", type(error).__name__).lower()


class LoadTally:
    """The counts of one phase of one worker. Any thread may append to `latencies`."""

    def __init__(self, report: Report, phase: int, now_ns: int) -> None:
        self.latencies: list[int] = []
        self.errors: Counter[str] = Counter()
        self.sent = 0
        self.due_ns = now_ns + REPORT_NS
        self._report = report
        self._phase = phase
        self._lateness: list[int] = []

    def ticked(self, lateness_ns: int) -> None:
        """A tick was begun this long after it was due."""
        self._lateness.append(lateness_ns)

    def failed(self, error: FastQuorumError) -> None:
        self.errors[kind_of(error)] += 1

    def report(self, now_ns: int, next_tick: int, in_flight: int, *, is_draining: bool = False) -> None:
        """Hand over what there is; the next report is due an interval later."""
        latencies, self.latencies = self.latencies, []
        lateness, self._lateness = self._lateness, []
        errors, self.errors = self.errors, Counter()
        sent, self.sent = self.sent, 0
        self.due_ns = max(self.due_ns + REPORT_NS, now_ns)
        self._report(
            {
                "say": "interval",
                "phase": self._phase,
                "at_ns": now_ns,
                "next_tick": next_tick,
                "in_flight": in_flight,
                "is_draining": is_draining,
                "sent": sent,
                "errors": dict(+errors),
                "samples": len(latencies),
                "ticks": len(lateness),
            },
            array("q", latencies + lateness).tobytes(),
        )
