"""What a member knows that is told by control requests: what it leads and follows, and what clients are to hear.

LeaderAndIsr and StopReplica say what it holds, UpdateMetadata what there is. Their first ones under a broker epoch, and
under a controller's, are whole: what they do not name is not held, or is not, any more; for neither this process nor
the next controller knows what was told before. Such requests have no topic ids. Pure. Source: KIP-380; Kafka 2.2
`ReplicaManager.becomeLeaderOrFollower`, `stopReplicas`, `MetadataCache`.
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
    """Which one, by name."""

    topic: str
    partition: int


class ToldPartition(NamedTuple):
    """A partition as clients are to hear of it."""

    leader: NodeId
    """-1 if there is none."""
    leader_epoch: int
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    offline_replicas: tuple[NodeId, ...]


class LiveBroker(NamedTuple):
    """A broker that is there."""

    id: NodeId
    listeners: tuple[Listener, ...]
    rack: str | None


class Told(NamedTuple):
    """All of it, at one moment; immutable."""

    controller_id: NodeId = NO_NODE
    """Who said so last."""
    controller_epoch: Epoch = -1
    held: Map[TopicPartition, HeldPartition] = Map()
    """Those with a replica on this broker."""
    partitions: Map[TopicPartition, ToldPartition] = Map()
    brokers: tuple[LiveBroker, ...] = ()


class _Source(NamedTuple):
    """Under which epochs something was told."""

    broker_epoch: int
    controller_epoch: Epoch


_NOBODY: Final = _Source(-1, -1)


class Telling:
    """Of one member: takes in what the gate lets through."""

    def __init__(self, broker_id: NodeId) -> None:
        self._broker_id = broker_id
        self.told = Told()
        """Replaced as a whole, never changed."""
        self._held_from = _NOBODY
        self._metadata_from = _NOBODY
        self._partition_epochs: dict[TopicPartition, int] = {}
        """Of what is held."""

    @property
    def epoch(self) -> int:
        """The broker epoch under which the last LeaderAndIsr came; -1 if none has."""
        return self._held_from.broker_epoch

    def act(self, request: Request) -> Response:
        """Do it; the answer."""
        told = self.told._replace(controller_id=request.controller_id, controller_epoch=request.controller_epoch)
        source = _Source(request.broker_epoch, request.controller_epoch)
        match request:
            case LeaderAndIsrRequest():
                return self._lead(told, request, source)
            case StopReplicaRequest():
                return self._stop(told, request)
            case UpdateMetadataRequest():
                return self._update(told, request, source)

    # --- what it holds ------------------------------------------------------------------------------------------------

    def _lead(self, told: Told, request: LeaderAndIsrRequest, source: _Source) -> LeaderAndIsrResponse:
        named = [
            (TopicPartition(topic.topic_name, state.partition_index), state)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        held = told.held
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
        self.told = told._replace(held=held)
        return response

    def _code(self, known: HeldPartition | None, key: TopicPartition, state: _State) -> ErrorCode:
        """NONE, or why this is not done. The same is done again: its first answer may be lost."""
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

    def _stop(self, told: Told, request: StopReplicaRequest) -> StopReplicaResponse:
        """To be deleted or not, it is not to be acted on any more. What is not held need not be stopped."""
        held, response = told.held, StopReplicaResponse()
        for topic in request.topics:
            for number in topic.partition_indexes:
                key = TopicPartition(topic.name, number)
                if key in held:
                    held = held.delete(key)
                    del self._partition_epochs[key]
                error = StopReplicaResponse.StopReplicaPartitionError
                response.partition_errors.append(error(topic_name=topic.name, partition_index=number))
        self.told = told._replace(held=held)
        return response

    # --- what there is ------------------------------------------------------------------------------------------------

    def _update(self, told: Told, request: UpdateMetadataRequest, source: _Source) -> UpdateMetadataResponse:
        partitions = told.partitions
        if source != self._metadata_from:
            self._metadata_from, partitions = source, Map()
        with partitions.mutate() as changed:
            for topic in request.topic_states:
                for state in topic.partition_states:
                    key = TopicPartition(topic.topic_name, state.partition_index)
                    if state.leader != LEADER_DURING_DELETE:
                        changed[key] = _told_partition(state)
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
        self.told = told._replace(partitions=partitions, brokers=brokers)
        return UpdateMetadataResponse()


def _told_partition(state: _Metadata) -> ToldPartition:
    return ToldPartition(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        tuple(state.offline_replicas),
    )
