"""A member as KIP-380 has it: told by control requests what it leads, and what there is. Sans-IO.

Its life is that of any member: it registers, beats (as KIP-343 has it), fences itself in time. What differs: it looks
for the controller only, and reads no log; what it is told first under an epoch stands for having read its registration;
and it goes by ControlledShutdown, again with its new epoch if it has lost its place meanwhile. Then a last heartbeat
has it fenced. What moved while it was out of contact it may hear a moment after it acts again, as in KIP-380's days:
that is what leader epochs are for. Source: KIP-343, KIP-380; Kafka 2.2 `KafkaServer.controlledShutdown`.
"""

from collections.abc import Sequence
from dataclasses import replace

from fastquorum.broker.agent import Agent, Effect, Link, View
from fastquorum.broker.control_door import ControlDoor
from fastquorum.broker.controller_finder import ControllerFinder
from fastquorum.broker.events import Followed, TimerFired
from fastquorum.broker.lifecycle import NEVER, NO_EPOCH
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Connection
from fastquorum.raft.ports import Random
from fastquorum.types import Micros
from fastquorum.wire import frames_of
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from fastquorum.wire.messages.inter_broker import ControlledShutdownRequest, ControlledShutdownResponse


class ToldAgent(Agent):
    """Of one incarnation. As Agent, and with a door of its own."""

    def __init__(
        self, settings: MemberSettings, config: MemberConfig, kernels: Kernels, chance: Random, *, is_ready: bool = True
    ) -> None:
        config = replace(config, metadata_heartbeats=True)
        self._finder = ControllerFinder(settings, config, kernels, chance)
        super().__init__(settings, config, kernels, chance, is_ready=is_ready, follower=self._finder)
        self._door = ControlDoor(settings.broker_id, frames_of(kernels))
        self._handed_over = NO_EPOCH
        """Under which epoch the controller has moved all its leads away."""

    @property
    def view(self) -> View:
        return super().view._replace(told=self._door.told)

    # --- what happens -------------------------------------------------------------------------------------------------

    def on_control(self, connection: Connection, frame: bytes, now_us: Micros) -> Sequence[Effect]:
        """Somebody asks at its door."""
        replies = self._door.on_frame(connection, frame)
        return [*replies, *self._turn(TimerFired(), now_us)]

    def forget(self, connection: Connection, now_us: Micros) -> Sequence[Effect]:
        """A connection to its door is gone."""
        replies = self._door.forget(connection)
        return [*replies, *self._turn(TimerFired(), now_us)]

    def on_answer(self, link: Link, number: int, message: Message, now_us: Micros) -> Sequence[Effect]:
        if link is Link.CONTROLLER and getattr(message, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER:
            self._not_there(number, "it is not the controller", now_us)
        if isinstance(message, ControlledShutdownResponse) and self._is_asked(number):
            message = self._shutdown_heard(message)
        return super().on_answer(link, number, message, now_us)

    def on_unanswered(
        self, link: Link, number: int, reason: str, now_us: Micros, *, unsupported: bool = False
    ) -> Sequence[Effect]:
        if link is Link.CONTROLLER and not (unsupported and self._is_unchecked(number)):
            self._not_there(number, reason, now_us)
        return super().on_unanswered(link, number, reason, now_us, unsupported=unsupported)

    def _not_there(self, number: int, reason: str, now_us: Micros) -> None:
        if self._asked is not None and self._is_asked(number):
            self._finder.not_there(self._asked[1], reason, now_us)

    def _is_asked(self, number: int) -> bool:
        """That was the last thing asked of the controller, and so under the present epoch."""
        return self._asked is not None and self._asked[0] == number

    # --- the turn -----------------------------------------------------------------------------------------------------

    def _tell_followed(self, now_us: Micros) -> None:
        """Its first LeaderAndIsr says that it is registered and unfenced; it is always told what there is."""
        if self._lifecycle.epoch > self._door.epoch:
            self._effects += self._door.registered(self._lifecycle.epoch)
        if self._door.is_told:
            self._step(Followed(0, now_us, self._door.epoch, False), now_us)
        else:
            self._step(Followed(0, NEVER, NO_EPOCH, False), now_us)

    # --- its end ------------------------------------------------------------------------------------------------------

    def _in_words(self, message: Message) -> Message:
        """First its leads are to move; then it is to be fenced."""
        wants_to_go = isinstance(message, BrokerHeartbeatRequest) and message.want_shut_down
        if wants_to_go and self._handed_over != self._lifecycle.epoch:
            return ControlledShutdownRequest(broker_id=self._broker_id, broker_epoch=self._lifecycle.epoch)
        return super()._in_words(message)

    def _shutdown_heard(self, answer: ControlledShutdownResponse) -> BrokerHeartbeatResponse:
        """As its life is to hear it. Whoever is not there for the controller may go: nobody counts on it."""
        if answer.error_code == ErrorCode.BROKER_NOT_AVAILABLE:
            return BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True)
        if answer.error_code == ErrorCode.NONE and not answer.remaining_partitions:
            self._handed_over = self._lifecycle.epoch
        return BrokerHeartbeatResponse(error_code=answer.error_code, is_caught_up=True)
