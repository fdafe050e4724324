"""Answers of the active controller to what it decided, each until it may be given. Sans-IO.

All wait until what they say is committed. One of a client's change that a broker passed on waits longer: the client
reads from brokers what it wrote, and whichever it asks next must know that it is committed. So such an answer is held
until the last unfenced broker has named it in a Fetch (KIP-1166), for HELD_US_MAX at most. Nobody else is awaited, and
a broker that let an answer wait in vain is awaited no more until it has caught up (`Lane.await_observers`).
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.config import MS
from fastquorum.controller.image.registrations import Brokers
from fastquorum.node.lane.port import Shell
from fastquorum.node.metadata.requests import ControllerRequest
from fastquorum.types import UNKNOWN_OFFSET, Micros, NodeId, Offset
from fastquorum.wire import ErrorCode, Message

HELD_US_MAX: Final = 20 * MS
"""How long a committed change's answer waits for brokers that do not know it yet. They need a round trip, if they are
well."""


class _Due(NamedTuple):
    """One answer."""

    end_offset: Offset
    """It waits until all below it is committed."""
    request: ControllerRequest
    answer: Message
    is_read_at_brokers: bool
    """Its client will look for it at brokers."""

    def give(self) -> None:
        self.request.answer(self.answer)


class _Held(NamedTuple):
    """One that is committed, and not known to every broker yet."""

    due: _Due
    until_us: Micros


class DueAnswers:
    """The answers of one replica's controller, in the order of the decisions."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._uncommitted: deque[_Due] = deque()
        self._held: deque[_Held] = deque()
        self._named_offset: Offset = UNKNOWN_OFFSET
        """What brokers are awaited to name; unknown: none is awaited."""
        self._brokers: Brokers | None = None
        self._unfenced: tuple[NodeId, ...] = ()
        """The unfenced brokers of `_brokers`, ascending."""

    @property
    def deadline_us(self) -> Micros:
        """When the first is held no longer; -1 if none is held."""
        return self._held[0].until_us if self._held else -1

    def add(self, end_offset: Offset, request: ControllerRequest, answer: Message, *, is_read_at_brokers: bool) -> None:
        """An answer that waits until all below `end_offset` is committed."""
        self._uncommitted.append(_Due(end_offset, request, answer, is_read_at_brokers))

    def on_committed(self, brokers: Brokers, now_us: Micros) -> None:
        """Give, or hold, those whose records are committed. `brokers`: that are registered."""
        high_watermark = self._shell.high_watermark
        while self._uncommitted and self._uncommitted[0].end_offset <= high_watermark:
            due = self._uncommitted.popleft()
            if due.is_read_at_brokers:
                self._held.append(_Held(due, now_us + HELD_US_MAX))
            else:
                due.give()
        self.on_turn(brokers, now_us)

    def on_turn(self, brokers: Brokers, now_us: Micros) -> None:
        """Brokers may have named what they were awaited to, and time has gone by."""
        while self._held:
            if self._named_offset != UNKNOWN_OFFSET:
                is_over = self._held[0].until_us <= now_us
                if self._shell.are_observers_awaited and not is_over:
                    return
                self._give_held(self._named_offset)
                self._named_offset = UNKNOWN_OFFSET
            else:  # with one question for all that are held
                self._named_offset = self._shell.high_watermark
                self._shell.await_observers(self._ids_of_unfenced(brokers), self._named_offset)

    def lose(self) -> None:
        """The lead is over, or the fate of what is not committed is open: its clients ask the next leader. What is
        committed is answered: nobody is left here whom brokers could tell what they know."""
        self._give_held(self._shell.high_watermark)
        self._named_offset = UNKNOWN_OFFSET
        uncommitted, self._uncommitted = self._uncommitted, deque()
        for each in uncommitted:
            each.request.refuse(ErrorCode.NOT_CONTROLLER)

    def _give_held(self, end_offset: Offset) -> None:
        while self._held and self._held[0].due.end_offset <= end_offset:
            self._held.popleft().due.give()

    def _ids_of_unfenced(self, brokers: Brokers) -> Sequence[NodeId]:
        if self._brokers is not brokers:
            self._brokers = brokers
            self._unfenced = tuple(sorted(broker_id for broker_id, broker in brokers.items() if not broker.fenced))
        return self._unfenced
