"""What the active controller looks for every so often, beside the silent: leaders that are not the preferred ones, and
partitions that nobody leads. Source: Kafka `QuorumController`, its periodic tasks.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fastquorum.controller.partitions import elections
from fastquorum.controller.state.controller_state import ControllerSettings, ControllerState
from fastquorum.types import Micros
from fastquorum.wire import Message


@dataclass(slots=True)
class PeriodicTask:
    """A periodic walk through all partitions that may need an election."""

    begin: Callable[[ControllerState], elections.Walk]
    every_us: Micros
    at_us: Micros
    """When the task is next due."""
    _walk: elections.Walk | None = None
    """The walk under way; None between two."""

    def find(self, state: ControllerState, now_us: Micros) -> list[Message]:
        """Return the elections of the walk's next piece. Until the walk is over, the task is due again at once, so that
        whatever else waits comes first."""
        walk = self._walk or self.begin(state)
        records = walk.elections(state)
        self._walk, self.at_us = (None, now_us + self.every_us) if walk.is_over else (walk, now_us)
        return records

    def begin_again(self, at_us: Micros) -> None:
        """Walk again at that time, or when due if that is sooner: what was found could not be written."""
        self.at_us = min(self.at_us, at_us) if self._walk is None else at_us
        self._walk = None


def periodic_tasks(settings: ControllerSettings, now_us: Micros) -> list[PeriodicTask]:
    """Return the periodic tasks of a lead that begins now; none for what the settings turn off."""
    finders = (
        (elections.balance, settings.leader_imbalance_check_us),
        (elections.elect_missing, settings.unclean_election_check_us),
    )
    return [PeriodicTask(find, every_us, now_us + every_us) for find, every_us in finders if every_us]
