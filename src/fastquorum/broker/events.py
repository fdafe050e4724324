"""The events and effects of a member's lifecycle. Source: Kafka `BrokerLifecycleManager`."""

from dataclasses import dataclass

from fastquorum.broker.states import State
from fastquorum.errors import FastQuorumError
from fastquorum.types import Micros, Offset
from fastquorum.wire.message import Message

# --- events -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemberStarted:
    """The member is to begin."""


@dataclass(frozen=True, slots=True)
class MemberTimerFired:
    """`deadline_us` has come."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The controller has answered the request of this number."""

    number: int
    message: Message


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The request of this number will not be answered; the controller may have acted on it."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Followed:
    """How far the metadata was read, and the registration that it holds for this broker id."""

    next_offset: Offset
    """The offset behind the last record in the image."""
    fresh_us: Micros
    """When a Fetch was sent that found nothing committed beyond next_offset; -1: never yet."""
    epoch: int
    """The epoch of the present registration; -1 if there is none."""
    is_fenced: bool
    """Whether that registration is fenced."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The program is ready to act, or not: until it is, heartbeats ask to be kept fenced."""

    is_ready: bool


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The member is to stop in good order, and by this time in any case."""

    deadline_us: Micros


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure that ends the membership."""

    error: FastQuorumError


Event = MemberStarted | MemberTimerFired | Answered | Unanswered | Followed | Ready | StopRequested | Failed

# --- effects ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this to the active controller. It counts as sent now, not when the bytes leave.

    `Answered` or `Unanswered` may follow with its number; both are ignored for a request that was given up.
    """

    number: int
    message: Message


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Notify the program BEFORE any effect behind it: it must not act in a state that is over."""

    state: State
    epoch: int


Effect = Ask | StateChanged
