"""What the active controller looks for every so often, beside the silent: leaders that are not the preferred ones, and
partitions that nobody leads. Source: Kafka `QuorumController`, its periodic tasks.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fastquorum.controller import elections
from fastquorum.controller.state import ControllerSettings, ControllerState
from fastquorum.types import Micros
from fastquorum.wire import Message


@dataclass(slots=True)
class Look:
    """For elections, every so often."""

    find: Callable[[ControllerState], list[Message]]
    every_us: Micros
    at_us: Micros


def looks(settings: ControllerSettings, now_us: Micros) -> list[Look]:
    """Of a lead that begins now. None for what the settings turn off."""
    finders = (
        (elections.balance, settings.leader_imbalance_check_us),
        (elections.elect_missing, settings.unclean_election_check_us),
    )
    return [Look(find, every_us, now_us + every_us) for find, every_us in finders if every_us]
