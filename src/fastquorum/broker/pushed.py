"""The metadata that control requests push to a member: the partitions it leads and follows, and those that clients see.

LeaderAndIsr and StopReplica name the partitions that it holds, UpdateMetadata all that exist. The first of each under a
broker epoch, and under a controller epoch, is complete: a partition that it does not name is no longer held, or no
longer exists, since neither this process nor the next controller knows what was pushed before. Such requests have no
topic ids. Pure. Source: KIP-380; Kafka 2.2 `ReplicaManager.becomeLeaderOrFollower`, `stopReplicas`, `MetadataCache`.
"""

from typing import Final, NamedTuple

from immutables import Map

from fastquorum.broker.control_gate import Request, Response
from fastquorum.broker.partitions import HeldPartition
from fastquorum.controller.brokers.control_requests import LEADER_DURING_DELETE
from fastquorum.controller.image.registrations import Listener
from fastquorum.types import NO_NODE, ZERO_UUID, Epoch, NodeId
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.inter_broker import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

_State = LeaderAndIsrRequest.LeaderAndIsrTopicState.LeaderAndIsrPartitionState
_Metadata = UpdateMetadataRequest.UpdateMetadataTopicState.UpdateMetadataPartitionState


class TopicPartition(NamedTuple):
    """A partition's topic name and number."""

    topic: str
    partition: int


class PushedPartition(NamedTuple):
    """A partition as clients see it."""

    leader: NodeId
    """-1 if there is none."""
    leader_epoch: int
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    offline_replicas: tuple[NodeId, ...]


class LiveBroker(NamedTuple):
    """A live broker."""

    id: NodeId
    listeners: tuple[Listener, ...]
    rack: str | None


class Told(NamedTuple):
    """All pushed metadata at one moment; immutable."""

    controller_id: NodeId = NO_NODE
    """The controller that pushed last."""
    controller_epoch: Epoch = -1
    held: Map[TopicPartition, HeldPartition] = Map()
    """The partitions with a replica on this broker."""
    partitions: Map[TopicPartition, PushedPartition] = Map()
    brokers: tuple[LiveBroker, ...] = ()


class _Source(NamedTuple):
    """The broker epoch and controller epoch of a request."""

    broker_epoch: int
    controller_epoch: Epoch


_NOBODY: Final = _Source(-1, -1)


class ControlRequestReceiver:
    """The receiver of one member's control requests, once they have passed the gate."""

    def __init__(self, broker_id: NodeId) -> None:
        self._broker_id = broker_id
        self.pushed = Told()
        """Replaced as a whole, never changed in place."""
        self._held_from = _NOBODY
        self._metadata_from = _NOBODY
        self._partition_epochs: dict[TopicPartition, int] = {}
        """The partition epoch of each held partition."""

    @property
    def epoch(self) -> int:
        """The broker epoch of the last LeaderAndIsr; -1 before the first."""
        return self._held_from.broker_epoch

    def act(self, request: Request) -> Response:
        pushed = self.pushed._replace(controller_id=request.controller_id, controller_epoch=request.controller_epoch)
        source = _Source(request.broker_epoch, request.controller_epoch)
        match request:
            case LeaderAndIsrRequest():
                return self._lead(pushed, request, source)
            case StopReplicaRequest():
                return self._stop(pushed, request)
            case UpdateMetadataRequest():
                return self._update(pushed, request, source)

    # --- what it holds ------------------------------------------------------------------------------------------------

    def _lead(self, pushed: Told, request: LeaderAndIsrRequest, source: _Source) -> LeaderAndIsrResponse:
        named = [
            (TopicPartition(topic.topic_name, state.partition_index), state)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        held = pushed.held
        if source != self._held_from:
            self._held_from, held = source, Map()
            self._partition_epochs.clear()
        response = LeaderAndIsrResponse()
        for key, state in named:
            code = self._code(held.get(key), key, state)
            if code is ErrorCode.NONE:
                held = held.set(key, self._partition(key, state))
                self._partition_epochs[key] = state.partition_epoch
            error = LeaderAndIsrResponse.LeaderAndIsrPartitionError
            response.partition_errors.append(
                error(topic_name=key.topic, partition_index=key.partition, error_code=code)
            )
        self.pushed = pushed._replace(held=held)
        return response

    def _code(self, known: HeldPartition | None, key: TopicPartition, state: _State) -> ErrorCode:
        """Return NONE, or why the change is refused. A repeated one is accepted: its first answer may be lost."""
        if self._broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if known is None:
            return ErrorCode.NONE
        then = (known.leader_epoch, self._partition_epochs[key])
        is_older = (state.leader_epoch, state.partition_epoch) < then
        return ErrorCode.STALE_CONTROLLER_EPOCH if is_older else ErrorCode.NONE

    def _partition(self, key: TopicPartition, state: _State) -> HeldPartition:
        return HeldPartition(
            key.topic,
            key.partition,
            state.leader == self._broker_id,
            state.leader,
            state.leader_epoch,
            tuple(state.isr),
            tuple(state.replicas),
            ZERO_UUID,
        )

    def _stop(self, pushed: Told, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop holding partitions, deleted or not. One that is not held is accepted, too."""
        held, response = pushed.held, StopReplicaResponse()
        for topic in request.topics:
            for number in topic.partition_indexes:
                key = TopicPartition(topic.name, number)
                if key in held:
                    held = held.delete(key)
                    del self._partition_epochs[key]
                error = StopReplicaResponse.StopReplicaPartitionError
                response.partition_errors.append(error(topic_name=topic.name, partition_index=number))
        self.pushed = pushed._replace(held=held)
        return response

    # --- what there is ------------------------------------------------------------------------------------------------

    def _update(self, pushed: Told, request: UpdateMetadataRequest, source: _Source) -> UpdateMetadataResponse:
        partitions = pushed.partitions
        if source != self._metadata_from:
            self._metadata_from, partitions = source, Map()
        with partitions.mutate() as changed:
            for topic in request.topic_states:
                for state in topic.partition_states:
                    key = TopicPartition(topic.topic_name, state.partition_index)
                    if state.leader != LEADER_DURING_DELETE:
                        changed[key] = _pushed_partition(state)
                    elif key in changed:
                        del changed[key]
            partitions = changed.finish()
        brokers = tuple(
            LiveBroker(
                each.id,
                tuple(Listener(at.listener, at.host, at.port, at.security_protocol) for at in each.endpoints),
                each.rack,
            )
            for each in request.live_brokers
        )
        self.pushed = pushed._replace(partitions=partitions, brokers=brokers)
        return UpdateMetadataResponse()


def _pushed_partition(state: _Metadata) -> PushedPartition:
    return PushedPartition(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        tuple(state.offline_replicas),
    )
