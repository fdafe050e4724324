"""A member of KIP-380: control requests push to it what it leads, and what exists. Sans-IO.

Its lifecycle is that of any member: it registers, sends heartbeats (KIP-343's), fences itself in time. The differences:
it only looks for the controller, and reads no log; the first push under an epoch counts as having read its
registration; and it stops by ControlledShutdown, again with its new epoch if it has lost its place meanwhile. Then a
last heartbeat fences it. It may learn of partitions that moved while it was out of contact a moment after it acts
again, as in KIP-380: leader epochs protect against that. Source: KIP-343, KIP-380; Kafka 2.2
`KafkaServer.controlledShutdown`.
"""

from collections.abc import Sequence
from dataclasses import replace

from fastquorum.broker.agent import Agent, Effect, MemberLink, View
from fastquorum.broker.control_server import ControlRequestServer
from fastquorum.broker.events import Followed, MemberTimerFired
from fastquorum.broker.follower import FollowerRequest, MetadataFollower
from fastquorum.broker.lifecycle import NEVER, NO_EPOCH
from fastquorum.broker.settings import MemberConfig, MemberSettings
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Connection
from fastquorum.raft.ports import Random
from fastquorum.types import Endpoint, Micros
from fastquorum.wire import frames_of
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.message import Message
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from fastquorum.wire.messages.inter_broker import ControlledShutdownRequest, ControlledShutdownResponse


class ControllerFinder(MetadataFollower):
    """A follower that stops once it knows the leader, and reads no metadata. A server that is not the controller any
    more, or does not answer, is not asked again: the bootstrap servers are. Source: KIP-595 (discovery); KIP-380, whose
    brokers found it in ZooKeeper."""

    @property
    def deadline_us(self) -> Micros:
        return NEVER if self.controller is not None else super().deadline_us

    def poll(self, now_us: Micros) -> FollowerRequest | None:
        return None if self.controller is not None else super().poll(now_us)

    def on_answer(self, number: int, message: Message, now_us: Micros) -> None:
        super().on_answer(number, message, now_us)
        if self.controller is not None:
            self._failures, self.reason = 0, ""

    def not_there(self, endpoint: Endpoint, reason: str, now_us: Micros) -> None:
        """Note that the active controller is not at this endpoint."""
        if self.controller is not None and self.controller.endpoint == endpoint:
            self._lose_leader(reason, now_us)


class PushedMetadataAgent(Agent):
    """The agent of one incarnation, with its own server for control requests."""

    def __init__(
        self, settings: MemberSettings, config: MemberConfig, kernels: Kernels, chance: Random, *, is_ready: bool = True
    ) -> None:
        config = replace(config, metadata_heartbeats=True)
        self._finder = ControllerFinder(settings, config, kernels, chance)
        super().__init__(settings, config, kernels, chance, is_ready=is_ready, follower=self._finder)
        self._server = ControlRequestServer(settings.broker_id, frames_of(kernels))
        self._handed_over = NO_EPOCH
        """The epoch under which the controller has moved all its leads away."""

    @property
    def view(self) -> View:
        return super().view._replace(told=self._server.pushed)

    # --- what happens -------------------------------------------------------------------------------------------------

    def on_control(self, connection: Connection, frame: bytes, now_us: Micros) -> Sequence[Effect]:
        """Take a frame that came at its own port."""
        replies = self._server.on_frame(connection, frame)
        return [*replies, *self._turn(MemberTimerFired(), now_us)]

    def forget(self, connection: Connection, now_us: Micros) -> Sequence[Effect]:
        """Note that a connection to its own port is gone."""
        replies = self._server.forget(connection)
        return [*replies, *self._turn(MemberTimerFired(), now_us)]

    def on_answer(self, link: MemberLink, number: int, message: Message, now_us: Micros) -> Sequence[Effect]:
        if link is MemberLink.CONTROLLER and getattr(message, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER:
            self._not_there(number, "it is not the controller", now_us)
        if isinstance(message, ControlledShutdownResponse) and self._is_last_request(number):
            message = self._heartbeat_response(message)
        return super().on_answer(link, number, message, now_us)

    def on_unanswered(
        self, link: MemberLink, number: int, reason: str, now_us: Micros, *, unsupported: bool = False
    ) -> Sequence[Effect]:
        if link is MemberLink.CONTROLLER and not (unsupported and self._is_unchecked(number)):
            self._not_there(number, reason, now_us)
        return super().on_unanswered(link, number, reason, now_us, unsupported=unsupported)

    def _not_there(self, number: int, reason: str, now_us: Micros) -> None:
        if self._last_request is not None and self._is_last_request(number):
            self._finder.not_there(self._last_request[1], reason, now_us)

    def _is_last_request(self, number: int) -> bool:
        """Return whether this number is the last request to the controller, and so of the present epoch."""
        return self._last_request is not None and self._last_request[0] == number

    # --- the turn -----------------------------------------------------------------------------------------------------

    def _tell_followed(self, now_us: Micros) -> None:
        """Report to the lifecycle that it is registered and unfenced, once its first LeaderAndIsr has come."""
        if self._lifecycle.epoch > self._server.epoch:
            self._effects += self._server.registered(self._lifecycle.epoch)
        if self._server.is_initialized:
            self._step(Followed(0, now_us, self._server.epoch, False), now_us)
        else:
            self._step(Followed(0, NEVER, NO_EPOCH, False), now_us)

    # --- its end ------------------------------------------------------------------------------------------------------

    def _in_words(self, message: Message) -> Message:
        """Translate a request: first ControlledShutdown moves the leads away; then a heartbeat fences it."""
        wants_to_go = isinstance(message, BrokerHeartbeatRequest) and message.want_shut_down
        if wants_to_go and self._handed_over != self._lifecycle.epoch:
            return ControlledShutdownRequest(broker_id=self._broker_id, broker_epoch=self._lifecycle.epoch)
        return super()._in_words(message)

    def _heartbeat_response(self, answer: ControlledShutdownResponse) -> BrokerHeartbeatResponse:
        """Return an answer as the lifecycle takes it. A broker that the controller does not know may stop at once."""
        if answer.error_code == ErrorCode.BROKER_NOT_AVAILABLE:
            return BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True)
        if answer.error_code == ErrorCode.NONE and not answer.remaining_partitions:
            self._handed_over = self._lifecycle.epoch
        return BrokerHeartbeatResponse(error_code=answer.error_code, is_caught_up=True)
