"""Appends of one event loop: those of one turn of the loop go to the node together.

Whoever awaits an append cannot look at anything before the loop's next turn. So the values of a turn are kept, and
handed over in one call: the node takes its lock once, writes one batch, sends it once.
"""

import asyncio
from collections.abc import Sequence

from fastquorum.api.bridge import fail_all
from fastquorum.api.values import Values, as_values, each_of
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Buffer, Kernels, Outcome
from fastquorum.kernels.producers import Stamp
from fastquorum.node.io.callers.tickets import LoopCallers
from fastquorum.node.io.handles import Guarded


class Appends(Guarded):
    """The appends of one event loop. Used in that loop alone."""

    def __init__(self, callers: LoopCallers, loop: asyncio.AbstractEventLoop, kernels: Kernels) -> None:
        super().__init__()
        self._callers = callers
        self._loop = loop
        self._new_outcome = kernels.Outcome
        self._turn = kernels.Turn(loop, self._end_turn_soon, self.append_nowait)
        self.append = self._turn.gather
        """Append, by the end of this turn of the loop; the outcome has what it is refused with, too."""

    def append_nowait(self, value: Values) -> Outcome:
        """Append now, behind what was gathered. Raises what it is refused with."""
        values: Buffer | Sequence[Buffer] = value if value.__class__ is bytes else as_values(value)
        self.hand_over()
        outcome: Outcome = self._new_outcome(self._loop)
        self._callers.append(values, outcome)
        return outcome

    def append_each(self, values: Sequence[Buffer]) -> list[Outcome]:
        """Append now, each by itself; its outcome has what it is refused with. Raises ClosedError, FatalError, and
        UsageError where a controller writes the log."""
        kept = each_of(values)
        self.hand_over()
        outcomes: list[Outcome] = [self._new_outcome(self._loop) for _ in kept]
        self._callers.append_each(kept, outcomes)
        return outcomes

    def append_stamped(self, batch: bytes, stamp: Stamp) -> Outcome:
        """Append a producer's batch now, once. Raises what it is refused with."""
        self.hand_over()
        outcome: Outcome = self._new_outcome(self._loop)
        self._callers.append_stamped(batch, stamp, outcome)
        return outcome

    def _end_turn_soon(self) -> None:
        self._loop.call_soon(self.hand_over)

    def hand_over(self) -> None:
        """Append what was gathered, before something else is appended or the node is closed."""
        if not self._turn:
            return
        values, outcomes = self._turn.take()
        try:
            self._callers.append_each(values, outcomes)
        except FastQuorumError as error:
            fail_all(outcomes, error)
