"""The states of a member, and the one table of all changes between them.

`tests.quality.diagrams` draws it. Source: KIP-343 (Initial, Inactive, Active, Stopping), KIP-631 and its
registration flow (Offline, Fenced, Online, Stopping); Kafka `BrokerState`, `BrokerLifecycleManager`.
"""

import enum
from typing import Final


class State(enum.StrEnum):
    """A member's own state. The controller's view of it may differ for a while."""

    OFFLINE = "offline"
    """Not started: the program is busy with its own start, and no controller knows of it."""
    REGISTERING = "registering"
    """Without a valid broker epoch: it is asking for its first one, or the next."""
    FENCED = "fenced"
    """Registered, but may not act: not caught up, not ready, fenced by the controller, or out of contact."""
    ONLINE = "online"
    """It may act while its lease lasts."""
    STOPPING = "stopping"
    """It has asked to stop; it may act while its leads move away and its lease lasts."""
    GONE = "gone"
    """The end."""


class StateCause(enum.StrEnum):
    """Why a state ends."""

    STARTED = "started"
    REGISTERED = "registered"
    ADMITTED = "unfenced, and the metadata says so"
    FENCED = "fenced by the controller"
    OUT_OF_CONTACT = "no heartbeat acknowledged in time"
    STALE = "its epoch is no longer valid"
    REFUSED = "its registration is refused for good"
    FAILED = "it cannot go on"
    LOST_PLACE = "its epoch is no longer valid, and it is to stop in good order"
    REJOINED = "registered, and stopping"
    STOP_REQUESTED = "asked to stop"
    LET_GO = "let go by the controller"
    OUT_OF_TIME = "not let go in time"


_OFF, _REG, _FEN = State.OFFLINE, State.REGISTERING, State.FENCED
_ON, _STOP, _GONE = State.ONLINE, State.STOPPING, State.GONE

TABLE: Final[dict[tuple[State, StateCause], State]] = {
    (_OFF, StateCause.STARTED): _REG,
    (_REG, StateCause.REGISTERED): _FEN,
    (_REG, StateCause.REFUSED): _GONE,
    (_FEN, StateCause.ADMITTED): _ON,
    (_FEN, StateCause.STALE): _REG,
    (_ON, StateCause.FENCED): _FEN,
    (_ON, StateCause.OUT_OF_CONTACT): _FEN,
    (_ON, StateCause.STALE): _REG,
    (_ON, StateCause.STOP_REQUESTED): _STOP,
    (_STOP, StateCause.LET_GO): _GONE,
    (_STOP, StateCause.OUT_OF_TIME): _GONE,
    (_STOP, StateCause.STALE): _GONE,
    # As KIP-380 has it: it asks to go once more, under its new epoch.
    (_STOP, StateCause.LOST_PLACE): _REG,
    (_REG, StateCause.REJOINED): _STOP,
    (_REG, StateCause.OUT_OF_TIME): _GONE,
    # Nobody counts on it, so there is nothing to hand over first.
    **{(state, StateCause.STOP_REQUESTED): _GONE for state in (_OFF, _REG, _FEN)},
    **{(state, StateCause.FAILED): _GONE for state in (_OFF, _REG, _FEN, _ON, _STOP)},
}


def next_state(state: State, cause: StateCause) -> State:
    """Return the next state. An illegal pair is a bug of ours and asserts."""
    assert (state, cause) in TABLE, f"a member that is {state} cannot change for: {cause}"
    return TABLE[state, cause]
