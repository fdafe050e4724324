"""Appends of one event loop: those of one turn of the loop go to the node together.

Whoever awaits an append cannot look at anything before the loop's next turn. So the values of a turn are kept, and
handed over in one call: the node takes its lock once, writes one batch, sends it once.
"""

from collections.abc import Callable, Sequence

from fastquorum.api.bridge import AppendWaiter, Bridge, fail_all
from fastquorum.api.values import Values, as_values, each_of
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Buffer, Outcome, Turn
from fastquorum.kernels.producers import Stamp
from fastquorum.node.io.handles import Guarded
from fastquorum.node.io.running import RunningNode


class Appends(Guarded):
    """In the loop alone."""

    def __init__(self, node: RunningNode, bridge: Bridge) -> None:
        super().__init__()
        self._node = node
        self._bridge = bridge
        self._loop = bridge.loop
        self._new_outcome = node.kernels.Outcome
        self._is_ending_turn = False
        self._turn: Turn | None = None
        self.gather: Callable[[Values], Outcome] = self.submit
        """Append, by the end of this turn of the loop; the outcome has what it is refused with, too."""
        if bridge.mailbox is not None:
            self._turn = node.kernels.Turn(bridge.loop, self._end_turn_soon, self.submit)
            self.gather = self._turn.gather

    def submit(self, value: Values) -> Outcome:
        """Append now, behind what was gathered. Raises what it is refused with."""
        outcome: Outcome = self._new_outcome(self._loop)
        box = self._bridge.mailbox
        if box is None:
            self._node.append(as_values(value), AppendWaiter(self._bridge, outcome))
            return outcome
        values: Buffer | Sequence[Buffer] = value if value.__class__ is bytes else as_values(value)
        self.hand_over()
        self._node.append_mail(values, box, outcome, self._bridge.resolve)
        self._end_turn_soon()
        return outcome

    def submit_each(self, values: Sequence[Buffer]) -> list[Outcome]:
        """Append now, each by itself; its outcome has what it is refused with. Raises ClosedError, FatalError, and
        UsageError where a controller writes the log."""
        if self._bridge.mailbox is None:
            self._node.check_appends()
            return [self._submit_or_fail(value) for value in each_of(values)]
        kept = each_of(values)
        self.hand_over()
        self._node.check_appends()
        outcomes: list[Outcome] = [self._new_outcome(self._loop) for _ in kept]
        self._native_append_all(kept, outcomes)
        return outcomes

    def submit_stamped(self, batch: bytes, stamp: Stamp) -> Outcome:
        """Append a producer's batch now, once. Raises what it is refused with."""
        self.hand_over()
        outcome: Outcome = self._new_outcome(self._loop)
        self._node.append_stamped(batch, stamp, AppendWaiter(self._bridge, outcome))
        return outcome

    def _submit_or_fail(self, value: bytes) -> Outcome:
        try:
            return self.submit(value)
        except FastQuorumError as error:
            outcome: Outcome = self._new_outcome(self._loop)
            outcome.set_exception(error)
            return outcome

    def _end_turn_soon(self) -> None:
        if not self._is_ending_turn:
            self._is_ending_turn = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """Everything appended in the turn is written and sent together."""
        self._is_ending_turn = False
        if self._turn:
            self.hand_over()
        else:
            native = self._node.native
            assert native is not None
            native.push()

    def hand_over(self) -> None:
        """Append what was gathered, before something else is appended or the node is closed."""
        if not self._turn:
            return
        values, outcomes = self._turn.take()
        try:
            self._node.check_appends()
        except FastQuorumError as error:
            fail_all(outcomes, error)
            return
        self._native_append_all(values, outcomes)

    def _native_append_all(self, values: list[bytes], outcomes: list[Outcome]) -> None:
        native, box = self._node.native, self._bridge.mailbox
        assert native is not None
        assert box is not None
        for at, error in native.append_all(values, box, outcomes, self._bridge.resolve):
            if not outcomes[at].done():
                outcomes[at].set_exception(error)
