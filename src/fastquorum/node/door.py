"""The clients' door: Kafka's client APIs on the node's listener, beside the quorum's. Sans-IO; belongs to the replica's
thread.

A user log is shown as one topic with one partition, a metadata log as `__cluster_metadata`. Appends go through the
quorum and are answered at the high watermark; reads end there. Answers leave a connection in the order of its requests,
as Kafka's clients expect. Must not know how records get committed. Source: the Kafka protocol guide; KIP-951 (a
follower names the leader).
"""

import hashlib
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Connection
from fastquorum.node import door_fetch, door_produce
from fastquorum.node.inbound import Request
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log import Log
from fastquorum.types import METADATA_TOPIC_ID, NO_NODE, TOPIC_NAME, Endpoint, Epoch, Micros, NodeId, Uuid
from fastquorum.wire import API, ApiKey, ErrorCode, Message
from fastquorum.wire.fetch import FetchRequest
from fastquorum.wire.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from fastquorum.wire.metadata import MetadataRequest, MetadataResponse
from fastquorum.wire.produce import ProduceRequest

if TYPE_CHECKING:
    from fastquorum.node.replica import Replica

UNANSWERED_MAX: Final = 256
"""Requests one connection may have open; beyond it the client is hung up on."""
MAX_TIMESTAMP: Final = -3
"""ListOffsets: -1 latest, -2 earliest, -3 the record with the largest timestamp; below it nothing is served."""
EPOCH_VERSION_MIN: Final = 4
"""The first ListOffsets whose answer can carry an epoch."""
SERVED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.API_VERSIONS,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.FETCH_SNAPSHOT,
)


class Leader(NamedTuple):
    """Who leads, for answers that send a client there."""

    id: NodeId
    epoch: Epoch
    endpoint: Endpoint | None


class _Slot:
    """One request's place in its connection's order of answers."""

    __slots__ = ("frame",)

    def __init__(self) -> None:
        self.frame: bytes | None = None


class Door:
    """Serves clients over one replica."""

    def __init__(
        self,
        node_id: NodeId,
        cluster_id: str,
        kind: LogKind,
        topic_name: str,
        *,
        config: QuorumConfig,
        kernels: Kernels,
        log: Log,
    ) -> None:
        self.kernels = kernels
        self.config = config
        self.log = log
        self.kind = kind
        self.topic_name = TOPIC_NAME if kind is LogKind.METADATA else topic_name
        self.topic_id = METADATA_TOPIC_ID if kind is LogKind.METADATA else user_topic_id(cluster_id, topic_name)
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._orders: dict[Connection, deque[_Slot]] = {}
        self._slots: dict[int, tuple[Request, _Slot]] = {}
        self._produces = door_produce.Produces(self)
        self._fetches = door_fetch.Fetches(self)

    def bind(self, replica: "Replica") -> None:
        """The replica behind the door; once, by assembly."""
        self.replica = replica

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due; -1 never."""
        produces, fetches = self._produces.deadline_us, self._fetches.deadline_us
        return produces if fetches < 0 or 0 <= produces < fetches else fetches

    # --- requests in, answers out -------------------------------------------------------------------------------------

    def on_request(self, request: Request, now_us: Micros) -> None:
        """Serve it now, or keep it until it can be answered. What is not served here closes the connection, as Kafka
        does."""
        order = self._orders.setdefault(request.connection, deque())
        if len(order) >= UNANSWERED_MAX or request.header.request_api_key not in SERVED:
            self.replica.hang_up(request.connection, now_us)
            return
        slot = _Slot()
        order.append(slot)
        self._slots[request.token] = (request, slot)
        match request.message:
            case ApiVersionsRequest():
                self.answer(request, api_versions())
            case MetadataRequest() as message:
                self.answer(request, self._metadata(message, request.header.request_api_version))
            case ListOffsetsRequest() as message:
                self.answer(request, self._list_offsets(message, request.header.request_api_version))
            case ProduceRequest() as message:
                self._produces.on_request(request, message, now_us)
            case FetchRequest() as message:
                self._fetches.on_request(request, message, now_us)
            case _:
                self.replica.hang_up(request.connection, now_us)

    def answer(self, request: Request, message: Message | None) -> None:
        """Answer, in the order of the connection's requests; None for a request that wants no answer (acks=0)."""
        kept = self._slots.pop(request.token, None)
        if kept is None:
            return
        kept[1].frame = b"" if message is None else request.answer(message)
        order = self._orders.get(request.connection)
        self.replica.forget_request(request.token)
        while order and order[0].frame is not None:
            frame = order.popleft().frame
            if frame:
                self.replica.send(request.connection, frame)

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        if self._orders.pop(connection, None):
            for token in [token for token, (request, _) in self._slots.items() if request.connection == connection]:
                del self._slots[token]
            self._fetches.forget(connection)

    def is_waiting(self, request: Request) -> bool:
        return request.token in self._slots

    def on_committed(self, now_us: Micros) -> None:
        """The high watermark moved."""
        self._fetches.on_committed(now_us)

    def not_leading(self) -> None:
        """Somebody else leads, or nobody: whoever waits here is sent away."""
        self._fetches.not_leading()

    def on_tick(self, now_us: Micros) -> None:
        self._produces.on_tick(now_us)
        self._fetches.on_tick(now_us)

    # --- who and what -------------------------------------------------------------------------------------------------

    def leader(self) -> Leader:
        raft = self.replica.raft
        leader_id = raft.leader_id
        if leader_id == self._node_id and not self.replica.is_leader:
            leader_id = NO_NODE
        return Leader(leader_id, raft.epoch, raft.endpoint_of(leader_id))

    def partition_error(self, name: str | None, topic_id: Uuid, partition: int, by_id: bool) -> ErrorCode:
        """NONE, or why this topic and partition cannot be served by anybody here."""
        if by_id and topic_id != self.topic_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if (not by_id and name != self.topic_name) or partition != 0:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def _metadata(self, message: MetadataRequest, version: int) -> MetadataResponse:
        leader = self.leader()
        response = MetadataResponse(cluster_id=self._cluster_id, controller_id=leader.id)
        for voter in self.replica.raft.voters:
            for endpoint in voter.endpoints[:1]:
                response.brokers.append(
                    MetadataResponse.MetadataResponseBroker(
                        node_id=voter.key.id, host=endpoint.host, port=endpoint.port
                    )
                )
        everything = message.topics is None or (version == 0 and not message.topics)
        if everything:
            response.topics.append(self._topic(self.topic_name, self.topic_id, leader))
        for asked in () if everything else message.topics or ():
            response.topics.append(self._topic(asked.name, asked.topic_id, leader))
        return response

    def _topic(self, name: str | None, topic_id: Uuid, leader: Leader) -> MetadataResponse.MetadataResponseTopic:
        topic = MetadataResponse.MetadataResponseTopic
        error = self.partition_error(name, topic_id, 0, by_id=name is None)
        if error is not ErrorCode.NONE:
            return topic(error_code=error, name=name if name is not None else "", topic_id=topic_id)
        ids = list(self.replica.raft.voters.ids)
        partition = topic.MetadataResponsePartition(
            error_code=ErrorCode.NONE if leader.id >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
            leader_id=leader.id,
            leader_epoch=leader.epoch,
            replica_nodes=ids,
            isr_nodes=ids,
        )
        internal = self.kind is LogKind.METADATA
        return topic(name=self.topic_name, topic_id=self.topic_id, is_internal=internal, partitions=[partition])

    def _list_offsets(self, message: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        response = ListOffsetsResponse()
        for asked in message.topics:
            topic = ListOffsetsResponse.ListOffsetsTopicResponse(name=asked.name)
            for partition in asked.partitions:
                found = self._offset(asked.name, partition.partition_index, partition.timestamp)
                if version < EPOCH_VERSION_MIN:
                    found.leader_epoch = -1
                topic.partitions.append(found)
            response.topics.append(topic)
        return response

    def _offset(
        self, name: str, index: int, timestamp_ms: int
    ) -> ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse:
        answer = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse
        error = self.partition_error(name, METADATA_TOPIC_ID, index, by_id=False)
        if error is ErrorCode.NONE and not self.replica.is_leader:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        high_watermark = self.replica.high_watermark
        if error is ErrorCode.NONE and high_watermark < 0:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        if error is not ErrorCode.NONE:
            return answer(partition_index=index, error_code=error)
        epoch = self.replica.raft.epoch
        match timestamp_ms:
            case -1:
                return answer(partition_index=index, offset=high_watermark, leader_epoch=epoch)
            case -2:
                return answer(partition_index=index, offset=self.log.start_offset, leader_epoch=epoch)
            case -3:
                found = self.replica.shell.offset_for_timestamp(self.replica.shell.max_timestamp_ms())
            case _:
                found = self.replica.shell.offset_for_timestamp(timestamp_ms) if timestamp_ms >= 0 else None
        if timestamp_ms < MAX_TIMESTAMP:
            return answer(partition_index=index, error_code=ErrorCode.UNSUPPORTED_VERSION)
        if found is None or found.offset >= high_watermark:
            return answer(partition_index=index)
        return answer(
            partition_index=index,
            timestamp=found.timestamp_ms,
            offset=found.offset,
            leader_epoch=self.log.epoch_for(found.offset),
        )


def api_versions() -> ApiVersionsResponse:
    """The APIs served on this listener, and the feature every KRaft peer asks for."""
    keys = [
        ApiVersionsResponse.ApiVersion(
            api_key=key, min_version=API[key].advertised.first, max_version=API[key].advertised.last
        )
        for key in sorted(SERVED)
        if API[key].is_advertised
    ]
    feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    return ApiVersionsResponse(api_keys=keys, supported_features=[feature])


def user_topic_id(cluster_id: str, topic_name: str) -> Uuid:
    """The same on every node and after every restart; never the metadata topic's."""
    return Uuid(hashlib.sha256(f"fastquorum:{cluster_id}:{topic_name}".encode()).digest()[:16])
