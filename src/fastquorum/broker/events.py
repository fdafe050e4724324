"""What happens to a member's life, and what it orders: values, in and out. Source: Kafka `BrokerLifecycleManager`."""

from dataclasses import dataclass

from fastquorum.broker.states import State
from fastquorum.errors import FastQuorumError
from fastquorum.types import Micros, Offset
from fastquorum.wire.message import Message

# --- events -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """Begin."""


@dataclass(frozen=True, slots=True)
class TimerFired:
    """`deadline_us` has come."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The controller's answer to the request of this number."""

    number: int
    message: Message


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The request of this number will not be answered; it may have been acted upon."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Followed:
    """How far the metadata was read, and what it says of this broker id."""

    next_offset: Offset
    """Behind the last record taken in."""
    fresh_us: Micros
    """When a Fetch was sent that found nothing committed beyond next_offset; -1: never yet."""
    epoch: int
    """Of the registration that stands; -1 if there is none."""
    is_fenced: bool
    """That registration is."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The program has (or has not) what it needs to act: until then heartbeats ask to be kept fenced."""

    is_ready: bool


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Go in good order, and by this time in any case."""

    deadline_us: Micros


@dataclass(frozen=True, slots=True)
class Failed:
    """Something without which there is no membership has broken."""

    error: FastQuorumError


Event = Started | TimerFired | Answered | Unanswered | Followed | Ready | StopRequested | Failed

# --- effects ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this to the active controller, whoever that is. It counts as sent now, and not when the bytes leave.

    `Answered` or `Unanswered` may follow with its number; of a request that was given up nobody wants to hear.
    """

    number: int
    message: Message


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Tell the program, BEFORE any effect behind it: it must not act on what is over."""

    state: State
    epoch: int


Effect = Ask | StateChanged
