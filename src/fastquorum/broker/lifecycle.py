"""A broker's lifecycle: it registers, sends heartbeats, fences itself in time, and stops in good order. Sans-IO.

Two things keep a member from acting when it must not.

*The fencing token* is the broker epoch: the offset of the registration in the metadata log, which only grows. Another
process is registered under the same id only with a higher one. The guard of a resource (a store, a device, another
service) that refuses a lower token than it has seen is safe whatever clocks do, even if a holder's clock stands still.
Nothing else is safe against everything.

*The lease* makes that rare. An acknowledged heartbeat lets the member act for `lease_us`, counted from when it was
SENT, on a clock that goes on while the process is stopped and the machine sleeps. The controllers count
`session_timeout_us` from when they RECEIVED it, which was later; and a controller acknowledges a heartbeat only if no
other can have replaced it long before. That gives one inequality (`fastquorum.lease`): the member has given up before
any controller admits another, so that no two act at a time, as long as

* clocks run a tenth too fast or too slow at most, and none stands still (against a virtual machine that is paused, and
  all its clocks with it, only the token helps),
* what the program does after `check()` is over before the slack of the session is,
* the controllers' session timeout is not shorter than the member's (it asks each that leads: `session_check`; a new
  leader with a shorter one than the former may admit another before the member could ask: members are to have the
  shorter one first),
* nobody unregisters a broker that may still act (`fastquorum broker unregister`): the next to register is admitted at
  once.

Kafka's controllers keep the same bound by another means: see there.

KIP-343 has it the other way round: there the broker's timeout (`broker.heartbeat.timeout.ms`) is the longer one, so
that a broker does not fall silent while its partitions have no other leader yet. That keeps availability, and leaves a
time in which a broker that is fenced already thinks it is not: right where every write is checked by an epoch, as
Kafka's are. A `heartbeat_timeout_us` above the session timeout chooses this; the token is then all that protects.

Source: KIP-343, KIP-631; Kafka `BrokerLifecycleManager` (states, retries, controlled shutdown),
`BrokerHeartbeatManager` (what a controller makes of a heartbeat).
"""

from dataclasses import dataclass
from typing import Final

from fastquorum.broker.events import (
    Answered,
    Ask,
    Effect,
    Event,
    Failed,
    Followed,
    MemberStarted,
    MemberTimerFired,
    Ready,
    StateChanged,
    StopRequested,
    Unanswered,
)
from fastquorum.broker.requests import heartbeat, registration
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.broker.states import State, StateCause, next_state
from fastquorum.config import MS
from fastquorum.errors import FastQuorumError, RegistrationRefused
from fastquorum.raft.ports import Random
from fastquorum.types import Micros
from fastquorum.wire.error_codes import ErrorCode, error_name
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)

NO_EPOCH: Final = -1
NEVER: Final = -1
SHUTDOWN_INTERVAL_US: Final = 50 * MS
"""Time from the first answer that does not let it stop to the next heartbeat: leads often move at once. Kafka's
value."""
FINAL_REFUSALS: Final = frozenset(
    (
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
    )
)
"""Final refusals of a registration: asking again would change nothing. Kafka's broker asks on until its time is
over."""


@dataclass(slots=True)
class _InFlight:
    """The request under way: one at a time."""

    number: int
    sent_us: Micros
    is_heartbeat: bool
    asks_to_go: bool


class Lifecycle:
    """The lifecycle of one incarnation of a broker. `step` takes an event and returns its effects, in order."""

    def __init__(
        self, settings: MemberSettings, config: MemberConfig, chance: Random, *, is_ready: bool = True
    ) -> None:
        """Take the settings; `is_ready`: it wants to be unfenced as soon as it has read its registration."""
        self._settings = settings
        self._config = config
        self._chance = chance
        self._is_ready = is_ready
        self.state = State.OFFLINE
        self.epoch = NO_EPOCH
        """The epoch of the last registration; it is valid unless the state is REGISTERING."""
        self.error: FastQuorumError | None = None
        """The error that ended it; None if it stopped in good order."""
        self.reason = "not started"
        """A text for people that states what it waits for."""
        self._contact_us: Micros = NEVER
        """When the last acknowledged heartbeat of this epoch was sent."""
        self._granted_us: Micros = NEVER
        """When the controller first answered that it is not fenced, since it last was fenced."""
        self._followed = Followed(0, NEVER, NO_EPOCH, False)
        self._has_read_itself = False
        """Whether the metadata has shown this epoch's registration."""
        self._in_flight: _InFlight | None = None
        self._number = 0
        self._next_us: Micros = NEVER
        """When to make the next request."""
        self._is_hasty = False
        """Whether to send the next request as soon as the one under way is answered."""
        self._failures = 0
        self._stop_by_us: Micros = NEVER
        self._has_been_kept = False
        """Whether it asked to stop, and was answered to wait."""
        self._effects: list[Effect] = []
        self._now_us: Micros = 0

    # --- where it stands ----------------------------------------------------------------------------------------------

    @property
    def lease_until_us(self) -> Micros:
        """Time up to which it may act, exclusive; NEVER if it may not."""
        if self.state not in (State.ONLINE, State.STOPPING) or self._granted_us == NEVER:
            return NEVER
        return self._contact_us + self._config.lease_us

    def is_active(self, now_us: Micros) -> bool:
        """Return whether it may act. True to the clock even before the next step: a process that was stopped finds out
        so."""
        return now_us < self.lease_until_us

    @property
    def deadline_us(self) -> Micros:
        """When TimerFired is next due; NEVER if there is nothing to wait for."""
        due = [self._stop_by_us, self.lease_until_us if self.state is State.ONLINE else NEVER]
        if self._in_flight is not None:
            due.append(self._in_flight.sent_us + self._config.request_timeout_us)
        else:
            due.append(self._next_us)
        return min((each for each in due if each != NEVER), default=NEVER)

    # --- the step -----------------------------------------------------------------------------------------------------

    def step(self, event: Event, now_us: Micros) -> list[Effect]:
        """Take an event, and the time first: an answer that comes late finds it fenced."""
        self._now_us = max(now_us, self._now_us)
        self._effects = []
        self._look_at_clock()
        if self.state is not State.GONE:
            self._take(event)
            self._go_on()
        effects, self._effects = self._effects, []
        return effects

    def _take(self, event: Event) -> None:
        match event:
            case MemberStarted():
                self.reason = "no controller has answered yet"
                self._become(StateCause.STARTED)
                self._next_us = self._now_us
            case MemberTimerFired():
                pass
            case Answered(number, message):
                self._on_answer(number, message)
            case Unanswered(number, reason):
                if self._take_in_flight(number) is not None:
                    self._try_later(reason)
            case Followed():
                self._on_followed(event)
            case Ready(is_ready):
                self._is_ready = is_ready
                self._hurry()
            case StopRequested(deadline_us):
                self._on_stop(deadline_us)
            case Failed(error):
                self._end(StateCause.FAILED, error)

    def _look_at_clock(self) -> None:
        now_us = self._now_us
        if self.state is State.ONLINE and now_us >= self.lease_until_us:
            self.reason = "no heartbeat was acknowledged in time"
            self._become(StateCause.OUT_OF_CONTACT)
        if self.state is not State.GONE and NEVER != self._stop_by_us <= now_us:
            self._end(StateCause.OUT_OF_TIME)
        in_flight = self._in_flight
        if in_flight is not None and now_us >= in_flight.sent_us + self._config.request_timeout_us:
            self._in_flight = None
            self._try_later("the controller does not answer")

    def _become(self, cause: StateCause) -> None:
        self.state = next_state(self.state, cause)
        if self.state not in (State.ONLINE, State.STOPPING):
            self._granted_us = NEVER
        self._effects.append(StateChanged(self.state, self.epoch))

    def _end(self, cause: StateCause, error: FastQuorumError | None = None) -> None:
        self.error = error
        self._in_flight, self._next_us, self._stop_by_us = None, NEVER, NEVER
        self.reason = str(error) if error is not None else str(cause)
        self._become(cause)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Send the next request, if it is due and none is under way."""
        if self.state in (State.OFFLINE, State.GONE) or self._in_flight is not None:
            return
        if not NEVER < self._next_us <= self._now_us:
            return
        is_heartbeat = self.state is not State.REGISTERING
        self._number += 1
        self._next_us, self._is_hasty = NEVER, False
        self._in_flight = _InFlight(self._number, self._now_us, is_heartbeat, self.state is State.STOPPING)
        self._effects.append(Ask(self._number, self._heartbeat() if is_heartbeat else registration(self._settings)))

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        return heartbeat(
            self._settings.broker_id,
            self.epoch,
            self._followed.next_offset,
            wants_fence=not self._is_ready,
            wants_to_go=self.state is State.STOPPING,
        )

    def _hurry(self) -> None:
        """Send the next request soon: the controller has to know, or to answer, a change."""
        if self._in_flight is not None:
            self._is_hasty = True
        elif self._failures == 0:  # else it is waited for already, and for good reason
            self._next_us = self._now_us

    def _succeeded(self, sent_us: Micros, interval_us: Micros) -> None:
        self._failures = 0
        self._next_us = self._now_us if self._is_hasty else sent_us + interval_us

    def _try_later(self, reason: str) -> None:
        """Send the request again, but not at once."""
        self.reason = reason
        longest_us = self._config.heartbeat_interval_us
        backoff_us = min(self._config.retry_backoff_us << min(self._failures, 16), longest_us)
        self._failures += 1
        self._next_us = self._now_us + backoff_us - self._chance.randrange(backoff_us // 2 + 1)

    def _take_in_flight(self, number: int) -> _InFlight | None:
        """Return the request of this number; None if it was given up."""
        in_flight = self._in_flight
        if in_flight is None or in_flight.number != number:
            return None
        self._in_flight = None
        return in_flight

    # --- answers ------------------------------------------------------------------------------------------------------

    def _on_answer(self, number: int, message: Message) -> None:
        in_flight = self._take_in_flight(number)
        if in_flight is None:
            return
        if in_flight.is_heartbeat != (self.state is not State.REGISTERING):
            self._next_us = self._now_us  # it is about an epoch that does not stand any more
        elif isinstance(message, BrokerRegistrationResponse) and not in_flight.is_heartbeat:
            self._on_registered(message)
        elif isinstance(message, BrokerHeartbeatResponse) and in_flight.is_heartbeat:
            self._on_heartbeat(in_flight, message)
        else:
            self._try_later(f"the controller answers with {type(message).__name__}")

    def _on_registered(self, message: BrokerRegistrationResponse) -> None:
        code = message.error_code
        if code in FINAL_REFUSALS:
            self._end(StateCause.REFUSED, RegistrationRefused("", "", self._settings.broker_id, error_name(code)))
        elif code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            self._try_later(
                f"another process is registered as broker {self._settings.broker_id}, and its session lasts"
            )
        elif code != ErrorCode.NONE:
            self._try_later(f"the registration was answered with {error_name(code)}")
        elif message.broker_epoch < self.epoch:
            self._try_later(f"the controller gave out epoch {message.broker_epoch} after {self.epoch}")
        else:
            self.epoch = message.broker_epoch
            self._has_read_itself = self._followed.epoch == self.epoch
            self.reason = "it has not read the metadata up to its registration yet"
            self._become(StateCause.REGISTERED if self._stop_by_us == NEVER else StateCause.REJOINED)
            self._next_us = self._now_us

    def _on_heartbeat(self, in_flight: _InFlight, message: BrokerHeartbeatResponse) -> None:
        code = message.error_code
        if code == ErrorCode.STALE_BROKER_EPOCH:
            self._on_stale(f"the controller knows no broker {self._settings.broker_id} of epoch {self.epoch}")
            return
        if code != ErrorCode.NONE:
            self._try_later(f"a heartbeat was answered with {error_name(code)}")
            return
        self._contact_us = max(in_flight.sent_us, self._contact_us)
        interval_us = self._config.heartbeat_interval_us
        if self.state is State.STOPPING:
            if message.should_shut_down:
                self._end(StateCause.LET_GO)
                return
            if in_flight.asks_to_go and not self._has_been_kept:
                self._has_been_kept = True
                interval_us = SHUTDOWN_INTERVAL_US
            if message.is_fenced:
                self._on_fenced("the controller has fenced it")
        elif message.is_fenced:
            self._on_fenced("the controller keeps it fenced" if self._is_ready else "it is not ready")
        elif self.state is State.FENCED:
            if self._granted_us == NEVER:
                self._granted_us = self._now_us
            self.reason = "the metadata was not read up to its unfencing yet"
            self._look_admitted()
        self._succeeded(in_flight.sent_us, interval_us)

    def _on_fenced(self, reason: str) -> None:
        self.reason = reason
        self._granted_us = NEVER
        if self.state is State.ONLINE:
            self._become(StateCause.FENCED)

    def _on_stale(self, reason: str) -> None:
        """Register anew: another process has, or had, the id, and nothing that is known of the past counts."""
        is_going = self.state is State.STOPPING
        if is_going and not self._config.control_requests:
            self._end(StateCause.STALE)
            return
        self._become(StateCause.LOST_PLACE if is_going else StateCause.STALE)
        self._contact_us = NEVER
        self._has_read_itself = False
        self._try_later(reason)  # a controller that says this of every epoch must not be asked without end

    # --- the metadata -------------------------------------------------------------------------------------------------

    def _on_followed(self, followed: Followed) -> None:
        self._followed = followed
        if self.state not in (State.FENCED, State.ONLINE, State.STOPPING):
            return
        if followed.epoch > self.epoch or (self._has_read_itself and followed.epoch != self.epoch):
            now = f"has epoch {followed.epoch}" if followed.epoch != NO_EPOCH else "is not registered"
            self._on_stale(f"broker {self._settings.broker_id} of epoch {self.epoch} {now} by now")
            return
        if followed.epoch != self.epoch:
            return  # not read so far yet
        if not self._has_read_itself:
            self._has_read_itself = True
            self._hurry()
        if followed.is_fenced and self.state is not State.FENCED:
            self._on_fenced("the metadata says that it is fenced")
            self._hurry()
        elif self.state is State.FENCED:
            self._look_admitted()

    def _look_admitted(self) -> None:
        """Become ONLINE if it is unfenced and its metadata is as new: it knows what moved away while it was fenced."""
        followed, granted_us = self._followed, self._granted_us
        if granted_us == NEVER or followed.fresh_us < granted_us or followed.is_fenced or followed.epoch != self.epoch:
            return
        if self._now_us >= self._contact_us + self._config.lease_us:
            self._granted_us = NEVER  # that was long ago: let it be said again
            return
        self.reason = ""
        self._become(StateCause.ADMITTED)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _on_stop(self, deadline_us: Micros) -> None:
        """Begin to stop: hand over first, if it may lead partitions."""
        if self._stop_by_us != NEVER:
            self._stop_by_us = min(self._stop_by_us, deadline_us)
        elif self.state is State.ONLINE:
            self._stop_by_us = deadline_us
            self.reason = "its leads are moving away"
            self._become(StateCause.STOP_REQUESTED)
            self._failures = 0
            self._hurry()
        else:
            self._end(StateCause.STOP_REQUESTED)
