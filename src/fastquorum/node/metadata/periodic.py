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
class Look:
    """For elections, every so often: a walk through all partitions that may need one."""

    begin: Callable[[ControllerState], elections.Walk]
    every_us: Micros
    at_us: Micros
    """When it is next due."""
    _walk: elections.Walk | None = None
    """Under way."""

    def find(self, state: ControllerState, now_us: Micros) -> list[Message]:
        """Elections, on the next piece of the way. While there is more of it the look is due again at once, and
        whatever else waits comes first."""
        walk = self._walk or self.begin(state)
        records = walk.elections(state)
        self._walk, self.at_us = (None, now_us + self.every_us) if walk.is_over else (walk, now_us)
        return records

    def begin_again(self, at_us: Micros) -> None:
        """Then, or sooner if it is due sooner: what was found could not be written."""
        self.at_us = min(self.at_us, at_us) if self._walk is None else at_us
        self._walk = None


def looks(settings: ControllerSettings, now_us: Micros) -> list[Look]:
    """Return the periodic tasks of a lead that begins now; none for what the settings turn off."""
    finders = (
        (elections.balance, settings.leader_imbalance_check_us),
        (elections.elect_missing, settings.unclean_election_check_us),
    )
    return [Look(find, every_us, now_us + every_us) for find, every_us in finders if every_us]
