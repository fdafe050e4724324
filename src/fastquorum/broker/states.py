"""What a member of the cluster is, and why it becomes something else: the one table that every change goes through.

`tests.quality.diagrams` draws it. Source: KIP-343 (Initial, Inactive, Active, Stopping), KIP-631 and its
registration flow (Offline, Fenced, Online, Stopping); Kafka `BrokerState`, `BrokerLifecycleManager`.
"""

import enum
from typing import Final


class State(enum.StrEnum):
    """A member's state, as it knows itself. What the controller holds of it may differ for a while."""

    OFFLINE = "offline"
    """Not started: the program is busy with a start of its own, and no controller hears of it."""
    REGISTERING = "registering"
    """It has no broker epoch that stands: its first one, or the next, is asked for."""
    FENCED = "fenced"
    """Registered, and may do nothing: not caught up, not ready, fenced by the controller, or out of contact."""
    ONLINE = "online"
    """It may act, while the lease lasts that goes with it."""
    STOPPING = "stopping"
    """It has asked to go; it may act while its leads move away, and its lease lasts."""
    GONE = "gone"
    """The end."""


class Cause(enum.StrEnum):
    """Why a state ends."""

    STARTED = "started"
    REGISTERED = "registered"
    ADMITTED = "unfenced, and the metadata says so"
    FENCED = "fenced by the controller"
    OUT_OF_CONTACT = "no heartbeat acknowledged in time"
    STALE = "its epoch stands no more"
    REFUSED = "never to be registered"
    FAILED = "it cannot go on"
    LOST_PLACE = "its epoch stands no more, and it is to go in good order"
    REJOINED = "registered, and on its way out"
    STOP_ASKED = "asked to stop"
    LET_GO = "let go by the controller"
    OUT_OF_TIME = "not let go in time"


_OFF, _REG, _FEN = State.OFFLINE, State.REGISTERING, State.FENCED
_ON, _STOP, _GONE = State.ONLINE, State.STOPPING, State.GONE

TABLE: Final[dict[tuple[State, Cause], State]] = {
    (_OFF, Cause.STARTED): _REG,
    (_REG, Cause.REGISTERED): _FEN,
    (_REG, Cause.REFUSED): _GONE,
    (_FEN, Cause.ADMITTED): _ON,
    (_FEN, Cause.STALE): _REG,
    (_ON, Cause.FENCED): _FEN,
    (_ON, Cause.OUT_OF_CONTACT): _FEN,
    (_ON, Cause.STALE): _REG,
    (_ON, Cause.STOP_ASKED): _STOP,
    (_STOP, Cause.LET_GO): _GONE,
    (_STOP, Cause.OUT_OF_TIME): _GONE,
    (_STOP, Cause.STALE): _GONE,
    # As KIP-380 has it: it asks to go once more, under its new epoch.
    (_STOP, Cause.LOST_PLACE): _REG,
    (_REG, Cause.REJOINED): _STOP,
    (_REG, Cause.OUT_OF_TIME): _GONE,
    # Nobody counts on it, so there is nothing to hand over first.
    **{(state, Cause.STOP_ASKED): _GONE for state in (_OFF, _REG, _FEN)},
    **{(state, Cause.FAILED): _GONE for state in (_OFF, _REG, _FEN, _ON, _STOP)},
}


def next_state(state: State, cause: Cause) -> State:
    """The state that follows. An illegal pair is a bug of ours and asserts."""
    assert (state, cause) in TABLE, f"a member that is {state} cannot change for: {cause}"
    return TABLE[state, cause]
