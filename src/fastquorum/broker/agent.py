"""A whole member: its lifecycle, and the metadata it follows. `io` drives it: answers in, requests out. Sans-IO.

It has two links, so that a long Fetch never holds up a heartbeat: one to follow the log, one to the active controller,
which is the log's leader. For heartbeats of KIP-343, requests and answers are translated here; the lifecycle is the
same.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fastquorum.broker import metadata_heartbeat
from fastquorum.broker.control_server import HangUp, Reply
from fastquorum.broker.events import (
    Answered,
    Ask,
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
from fastquorum.broker.follower import ActiveController, MetadataFollower
from fastquorum.broker.lifecycle import NEVER, NO_EPOCH, Lifecycle
from fastquorum.broker.pushed import Told
from fastquorum.broker.session_check import SessionCheck
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.broker.states import State
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Place
from fastquorum.controller.state.broker_info import INTER_BROKER_PROTOCOL_MIN, broker_info_feature
from fastquorum.errors import ConfigError, FastQuorumError, FatalError, UsageError
from fastquorum.kernels import Kernels
from fastquorum.raft.ports import Random
from fastquorum.types import Endpoint, Micros, Offset, OffsetAndEpoch
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.configs import DescribeConfigsResponse
from fastquorum.wire.messages.controller_heartbeat import MetadataHeartbeatResponse


class MemberLink(enum.IntEnum):
    """The purpose of a connection."""

    METADATA = 0
    CONTROLLER = 1


@dataclass(frozen=True, slots=True)
class MemberSend:
    """Send a request to this server; the answer comes back with link and number."""

    link: MemberLink
    number: int
    endpoint: Endpoint
    message: Message


@dataclass(frozen=True, slots=True)
class Keep:
    """Store the metadata, if the program keeps it: durable BEFORE any Send behind it."""


Effect = MemberSend | StateChanged | Keep | Reply | HangUp


class View(NamedTuple):
    """A member at one moment; immutable."""

    state: State
    epoch: int
    """The last broker epoch; -1 before the first registration."""
    admission: int
    """How many times it was admitted so far: work that began under one admission ends with it, even in the same
    epoch."""
    lease_until_us: Micros
    """Time up to which it may act, exclusive, in microseconds; -1 if it may not."""
    image: Image
    metadata_offset: Offset
    """Offset of the last record in the image; -1 if there is none."""
    controller: ActiveController | None
    reason: str
    """A text that states what it waits for; empty while it is online."""
    error: FastQuorumError | None
    told: Told | None = None
    """The metadata that control requests pushed, in place of the image (KIP-380); None for a member that follows the
    log."""

    def is_news_after(self, other: "View") -> bool:
        """Return whether the program has to be notified: not of a longer lease, nor of a no-op."""
        if (self.state, self.epoch, self.error) != (other.state, other.epoch, other.error):
            return True
        if self.told is not other.told:
            return True
        return any(mine is not theirs for mine, theirs in zip(self.image, other.image, strict=True))


class Agent:
    """The agent of one incarnation. Every method returns effects, in order; then look at `deadline_us`."""

    def __init__(
        self,
        settings: MemberSettings,
        config: MemberConfig,
        kernels: Kernels,
        chance: Random,
        *,
        is_ready: bool = True,
        follower: MetadataFollower | None = None,
    ) -> None:
        """Take another `follower` than one of the whole log, if one is given."""
        self._broker_id = settings.broker_id
        self._beats_as_kip_343 = config.metadata_heartbeats
        self._wanted_to_stop = False
        """Whether the last heartbeat asked to stop."""
        self._admission = 0
        self._was = State.OFFLINE
        """The state before the last change."""
        if config.metadata_heartbeats:
            feature = broker_info_feature(INTER_BROKER_PROTOCOL_MIN)
            settings = replace(settings, features=(*settings.features, feature))
        self._lifecycle = Lifecycle(settings, config, chance, is_ready=is_ready)
        self._follower = follower or MetadataFollower(settings, config, kernels, chance)
        self._followed = Followed(0, NEVER, NO_EPOCH, False)
        self._waiting: Ask | None = None
        """The request that waits for a known controller."""
        self._last_request: tuple[int, Endpoint] | None = None
        """Number and endpoint of the last request to a controller."""
        self._session_check = SessionCheck(config)
        self._unchecked: tuple[Ask, ActiveController] | None = None
        """The request that is sent to this controller once it has answered the session check."""
        self._effects: list[Effect] = []

    @property
    def view(self) -> View:
        life, copy = self._lifecycle, self._follower.copy
        return View(
            state=life.state,
            epoch=life.epoch,
            admission=self._admission,
            lease_until_us=life.lease_until_us,
            image=copy.image,
            metadata_offset=copy.next_offset - 1,
            controller=self._follower.controller,
            reason=self._reason,
            error=life.error,
        )

    @property
    def _reason(self) -> str:
        life = self._lifecycle
        if life.state in (State.REGISTERING, State.FENCED) and self._follower.reason:
            return f"{life.reason} ({self._follower.reason})"
        return life.reason

    @property
    def standing(self) -> tuple[Image, Place] | None:
        """The image to store and its place; None if there is nothing to store."""
        copy = self._follower.copy
        place = copy.place
        return None if place is None else (copy.image, place)

    @property
    def is_over(self) -> bool:
        return self._lifecycle.state is State.GONE

    @property
    def _is_offline(self) -> bool:
        return self._lifecycle.state is State.OFFLINE

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due; NEVER before the start and after the end."""
        if self.is_over or self._is_offline:
            return NEVER
        due = (self._lifecycle.deadline_us, self._follower.deadline_us)
        return min((each for each in due if each != NEVER), default=NEVER)

    # --- what happens -------------------------------------------------------------------------------------------------

    def load(self, snapshot: OffsetAndEpoch, data: bytes) -> None:
        """Load stored, checked metadata before the start. ImageFailed if a record does not fit."""
        self._follower.copy.load(snapshot, data)

    def start(self, now_us: Micros) -> Sequence[Effect]:
        return self._turn(MemberStarted(), now_us)

    def on_tick(self, now_us: Micros) -> Sequence[Effect]:
        return self._turn(MemberTimerFired(), now_us)

    def set_ready(self, is_ready: bool, now_us: Micros) -> Sequence[Effect]:
        return self._turn(Ready(is_ready), now_us)

    def stop(self, deadline_us: Micros, now_us: Micros) -> Sequence[Effect]:
        return self._turn(StopRequested(deadline_us), now_us)

    def fail(self, error: FastQuorumError, now_us: Micros) -> Sequence[Effect]:
        return self._turn(Failed(error), now_us)

    def on_answer(self, link: MemberLink, number: int, message: Message, now_us: Micros) -> Sequence[Effect]:
        if self.is_over:  # what came with the answer that let it go: its metadata stays where it was kept
            return ()
        if link is MemberLink.CONTROLLER:
            if isinstance(message, DescribeConfigsResponse):
                return self._on_session(number, message, now_us)
            if isinstance(message, MetadataHeartbeatResponse):
                message = metadata_heartbeat.response_of(message, wanted_to_stop=self._wanted_to_stop)
            return self._turn(Answered(number, message), now_us)
        event: Event = MemberTimerFired()
        try:
            self._follower.on_answer(number, message, now_us)
        except (UsageError, FatalError) as error:
            event = Failed(error)
        return self._turn(event, now_us)

    def on_unanswered(
        self, link: MemberLink, number: int, reason: str, now_us: Micros, *, unsupported: bool = False
    ) -> Sequence[Effect]:
        """Note that a request will not be answered; `unsupported`: the server answers, but does not know the
        request."""
        if self.is_over:
            return ()
        if link is MemberLink.CONTROLLER and unsupported and self._is_unchecked(number):
            return self._on_session(number, DescribeConfigsResponse(), now_us)
        if link is MemberLink.CONTROLLER:
            return self._turn(Unanswered(number, reason), now_us)
        self._follower.on_unanswered(number, reason, now_us)
        return self._turn(MemberTimerFired(), now_us)

    # --- the turn -----------------------------------------------------------------------------------------------------

    def _turn(self, event: Event, now_us: Micros) -> list[Effect]:
        self._effects = []
        self._step(event, now_us)
        if not self.is_over and not self._is_offline:
            request = self._follower.poll(now_us)
            self._tell_followed(now_us)
            self._leader_changed(now_us)
            if request is not None:
                self._effects.append(MemberSend(MemberLink.METADATA, request.number, request.endpoint, request.message))
        effects, self._effects = self._effects, []
        return effects

    def _step(self, event: Event, now_us: Micros) -> None:
        for effect in self._lifecycle.step(event, now_us):
            if isinstance(effect, Ask):
                self._ask(effect)
            else:
                self._effects.append(effect)
                self._changed(effect.state)

    def _changed(self, state: State) -> None:
        was, self._was = self._was, state
        self._admission += state is State.ONLINE
        is_registered = (was, state) == (State.REGISTERING, State.FENCED)
        if is_registered or (state is State.GONE and self._lifecycle.error is None):
            self._effects.append(Keep())

    def _ask(self, ask: Ask) -> None:
        leader = self._follower.controller
        self._waiting, self._unchecked = ask, None
        if leader is None:
            return
        self._waiting, self._last_request = None, (ask.number, leader.endpoint)
        if self._session_check.is_due(leader):
            self._unchecked = ask, leader
            message: Message = self._session_check.request(leader)
        else:
            message = self._in_words(ask.message)
        self._effects.append(MemberSend(MemberLink.CONTROLLER, ask.number, leader.endpoint, message))

    def _is_unchecked(self, number: int) -> bool:
        return self._unchecked is not None and self._unchecked[0].number == number

    def _on_session(self, number: int, response: DescribeConfigsResponse, now_us: Micros) -> Sequence[Effect]:
        """Send the waiting request: the controller has answered the session check. It counts as sent before."""
        if self._unchecked is None or not self._is_unchecked(number):
            return ()  # that was given up meanwhile
        ask, leader = self._unchecked
        try:
            self._session_check.answered(leader, response)
        except ConfigError as error:
            return self._turn(Failed(error), now_us)
        self._waiting, self._unchecked = ask, None
        return self._turn(MemberTimerFired(), now_us)

    def _in_words(self, message: Message) -> Message:
        if not self._beats_as_kip_343 or not isinstance(message, BrokerHeartbeatRequest):
            return message
        self._wanted_to_stop = message.want_shut_down
        return metadata_heartbeat.request_of(message)

    def _tell_followed(self, now_us: Micros) -> None:
        """Report to the lifecycle what the metadata now holds of this id."""
        follower = self._follower
        broker = follower.copy.image.brokers.get(self._broker_id)
        now = Followed(
            follower.copy.next_offset,
            follower.fresh_us,
            NO_EPOCH if broker is None else broker.epoch,
            broker is not None and broker.fenced,
        )
        if now != self._followed:
            self._followed = now
            self._step(now, now_us)

    def _leader_changed(self, now_us: Micros) -> None:
        """Give up a request to a former controller, and send the waiting one to the new controller."""
        leader = self._follower.controller
        if leader is None:
            return
        if self._last_request is not None and self._last_request[1] != leader.endpoint:
            number, self._last_request, self._unchecked = self._last_request[0], None, None
            self._step(Unanswered(number, "it is not the controller any more"), now_us)
        if self._waiting is not None:
            self._ask(self._waiting)
