"""The clients' door: Kafka's client APIs on the node's listener, beside the quorum's. Sans-IO; belongs to the replica's
thread.

A user log is shown as one topic with one partition, a metadata log as `__cluster_metadata`. Appends go through the
quorum and are answered at the high watermark; reads end there. Answers leave a connection in the order of its requests,
as Kafka's clients expect. Must not know how records get committed. Source: the Kafka protocol guide; KIP-951 (a
follower names the leader).
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.controller.image.features import KRAFT_VERSION, SUPPORTED
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Connection
from fastquorum.node import door_fetch, door_produce
from fastquorum.node.answer_order import AnswerOrder
from fastquorum.node.controller_door import Asked
from fastquorum.node.controller_role import ControllerRole
from fastquorum.node.door_cluster import ClusterAnswers
from fastquorum.node.door_configs import ConfigAnswers
from fastquorum.node.door_ids import ProducerIds
from fastquorum.node.door_offsets import list_offsets
from fastquorum.node.door_relays import Relays
from fastquorum.node.inbound import QUORUM_APIS, Request
from fastquorum.raft.events import Token
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.log import Log
from fastquorum.types import METADATA_TOPIC_ID, NO_NODE, TOPIC_NAME, Endpoint, Epoch, Micros, NodeId, Offset, Uuid
from fastquorum.wire import API, ApiKey, ErrorCode, Message
from fastquorum.wire.messages.cluster import DescribeClusterRequest
from fastquorum.wire.messages.configs import DescribeConfigsRequest
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.list_offsets import ListOffsetsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.messages.producers import FindCoordinatorRequest, InitProducerIdRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest

if TYPE_CHECKING:
    from fastquorum.node.replica import Replica

FEATURES_FROM_ZERO_VERSION: Final = 4
"""ApiVersions tells of features that begin at level 0 from here on: older clients cannot read of one (KAFKA-17011)."""
SERVED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.API_VERSIONS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_CLUSTER,
    *sorted(QUORUM_APIS),
)


class Leader(NamedTuple):
    """Who leads, for answers that send a client there."""

    id: NodeId
    epoch: Epoch
    endpoint: Endpoint | None


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
        controller: ControllerRole | None = None,
    ) -> None:
        """`controller`: writes the log, and nobody else does."""
        self.kernels = kernels
        self.config = config
        self.log = log
        self.kind = kind
        self.topic_name = TOPIC_NAME if kind is LogKind.METADATA else topic_name
        self.topic_id = METADATA_TOPIC_ID if kind is LogKind.METADATA else user_topic_id(cluster_id, topic_name)
        self._node_id = node_id
        self.order = AnswerOrder()
        self._asked_raft: dict[Token, Asked] = {}
        self._produces = door_produce.Produces(self)
        self._fetches = door_fetch.Fetches(self)
        self.relays = Relays(self)
        self._ids = ProducerIds(self)
        self._cluster = ClusterAnswers(self, cluster_id)
        self._configs = ConfigAnswers(self, controller)
        self._controller = controller
        self._served = SERVED if controller is None else _served_beside_controller(controller.apis)

    def bind(self, replica: "Replica") -> None:
        """The replica behind the door; once, by assembly."""
        self.replica = replica
        if self._controller is not None:
            self._controller.bind(replica, self.answer, self.ask_raft, self.relays)

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due; -1 never."""
        produces, fetches = self._produces.deadline_us, self._fetches.deadline_us
        return produces if fetches < 0 or 0 <= produces < fetches else fetches

    # --- requests in, answers out -------------------------------------------------------------------------------------

    def passes_on(self, api_key: int) -> bool:
        """Is this raft's, and still for the leader to answer, as a Kafka broker has it? If a follower knows no leader,
        raft/ answers, as a controller does."""
        return api_key == ApiKey.DESCRIBE_QUORUM and self.relays.has_leader

    def on_request(self, request: Request, now_us: Micros) -> None:
        """Serve it now, or keep it until it can be answered. What is not served here closes the connection, as Kafka
        does."""
        if request.header.request_api_key not in self._served or not self.order.add(request):
            self.replica.connections.hang_up(request.connection, now_us)
            return
        if self._controller is not None and request.header.request_api_key in self._controller.apis:
            self._controller.on_request(request, now_us)
            return
        match request.message:
            case ProduceRequest() as message:
                self._produces.on_request(request, message, now_us)
            case FetchRequest() as message:
                self._fetches.on_request(request, message, now_us)
            case InitProducerIdRequest() as message:
                self._ids.on_request(request, message, now_us)
            case DescribeQuorumRequest() as message:
                self._cluster.describe_quorum(request, message, now_us)
            case message:
                answer = self._answer_to(message, request.header.request_api_version)
                if answer is None:
                    self.replica.connections.hang_up(request.connection, now_us)
                else:
                    self.answer(request, answer)

    def _answer_to(self, message: Message, version: int) -> Message | None:
        """To what can be answered at once; None if it is not served here."""
        match message:
            case ApiVersionsRequest():
                kraft_version = self.replica.raft.describe().kraft_version
                levels = None if self._controller is None else self._controller.finalized_features
                return api_versions(version, kraft_version, self.replica.high_watermark - 1, self._served, levels)
            case MetadataRequest():
                return self._cluster.metadata(message, version)
            case DescribeClusterRequest():
                return self._cluster.describe_cluster(message)
            case DescribeConfigsRequest():
                return self._configs.describe(message)
            case FindCoordinatorRequest():
                return self._cluster.find_coordinator(message, version)
            case ListOffsetsRequest():
                return list_offsets(self, message, version)
        return None

    def ask_raft(self, asked: Asked, now_us: Micros) -> None:
        """Have raft/ answer what a broker passed on."""
        self._asked_raft[asked.token] = asked
        self.replica.ask_raft(asked.token, asked.message, asked.version, now_us)

    def respond(self, token: Token, message: Message) -> None:
        """What raft/ answers."""
        asked = self._asked_raft.pop(token, None)
        if asked is None:
            self.replica.connections.respond(token, message)
        else:
            asked.answer(message)

    def on_relayed(self, number: int, answer: Message | None) -> None:
        """What the leader answered to a request that was passed on to it; None if it did not."""
        self.relays.on_relayed(number, answer)

    def answer(self, request: Request, message: Message | None) -> None:
        """Answer, in the order of the connection's requests; None for a request that wants no answer (acks=0)."""
        if request.token not in self.order:
            return
        frames = self.order.answer(request, b"" if message is None else request.answer(message))
        self.replica.connections.forget_request(request.token)
        for frame in frames:
            if frame:
                self.replica.connections.send(request.connection, frame)
            self.replica.connections.answered(request.connection)

    def on_drained(self, connection: Connection) -> None:
        """Its client has read, or was answered, so that more may be made for it."""
        self._fetches.on_drained(connection)

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        if self.order.forget(connection):
            self._fetches.forget(connection)

    def is_waiting(self, request: Request) -> bool:
        return request.token in self.order

    @property
    def watches_commits(self) -> bool:
        """Does a consumer wait for more?"""
        return self._fetches.are_parked

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

    def reader_error(self, known_epoch: Epoch) -> ErrorCode:
        """NONE, or why this node serves no reads now; `known_epoch` is the reader's, -1 if it knows none (KIP-320)."""
        if not self.replica.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        epoch = self.replica.raft.epoch
        if known_epoch >= 0 and known_epoch != epoch:
            return ErrorCode.FENCED_LEADER_EPOCH if known_epoch < epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.replica.high_watermark >= 0 else ErrorCode.LEADER_NOT_AVAILABLE


def _served_beside_controller(apis: frozenset[ApiKey]) -> tuple[ApiKey, ...]:
    """A controller's APIs; and none by which somebody else would append to its log."""
    return tuple(sorted({*SERVED, *apis} - {ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID}))


def api_versions(
    version: int = 4,
    kraft_version: int = 0,
    committed: Offset = -1,
    served: Sequence[ApiKey] = SERVED,
    levels: Mapping[str, int] | None = None,
) -> ApiVersionsResponse:
    """The APIs served on this listener, the features that are supported, and their levels as of the last committed
    record: the quorum's own, for which every KRaft peer asks, and, by name, those of the controller, if there is one.
    Source: KIP-584; KIP-853 (kraft.version)."""
    keys = [
        ApiVersionsResponse.ApiVersion(
            api_key=key, min_version=API[key].advertised.first, max_version=API[key].advertised.last
        )
        for key in sorted(served)
        if API[key].is_advertised
    ]
    supported = {KRAFT_VERSION: SUPPORTED[KRAFT_VERSION]} if levels is None else SUPPORTED
    finalized = {**(levels or {}), KRAFT_VERSION: kraft_version}
    return ApiVersionsResponse(
        api_keys=keys,
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(supported.items())
            if low > 0 or version >= FEATURES_FROM_ZERO_VERSION
        ],
        finalized_features_epoch=max(committed, -1),
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in sorted(finalized.items())
            if level > 0
        ],
    )


def user_topic_id(cluster_id: str, topic_name: str) -> Uuid:
    """The same on every node and after every restart; never the metadata topic's."""
    return Uuid(hashlib.sha256(f"fastquorum:{cluster_id}:{topic_name}".encode()).digest()[:16])
