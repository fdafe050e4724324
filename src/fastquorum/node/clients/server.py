"""Kafka's client APIs on the node's listener, beside the quorum's. Sans-IO; belongs to the replica's
thread.

A user log is shown as one topic with one partition, a metadata log as `__cluster_metadata`. Appends go through the
quorum and are answered at the high watermark; reads end there. Answers leave a connection in the order of its requests,
as Kafka's clients expect. Must not know how records get committed. Source: the Kafka protocol guide; KIP-951 (a
follower names the leader).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from fastquorum.controller.image.features import KRAFT_VERSION, SUPPORTED
from fastquorum.kernels.lane import Connection
from fastquorum.node.clients.cluster import ClusterAnswers
from fastquorum.node.clients.configs import ConfigAnswers
from fastquorum.node.clients.context import ClientContext
from fastquorum.node.clients.fetch import Fetches
from fastquorum.node.clients.list_offsets import list_offsets
from fastquorum.node.clients.produce import Produces
from fastquorum.node.clients.producer_ids import ProducerIds
from fastquorum.node.metadata.controller import MetadataController
from fastquorum.node.metadata.forwarding import Forwarding
from fastquorum.node.network.request_reader import QUORUM_APIS
from fastquorum.node.network.requests import Request
from fastquorum.types import Micros, Offset
from fastquorum.wire import API, ApiKey, Message
from fastquorum.wire.messages.cluster import DescribeClusterRequest
from fastquorum.wire.messages.configs import DescribeConfigsRequest
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.list_offsets import ListOffsetsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.messages.producers import FindCoordinatorRequest, InitProducerIdRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest

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


class ClientApis:
    """Serves clients over one replica."""

    def __init__(
        self, context: ClientContext, forwarding: Forwarding, controller: MetadataController | None = None
    ) -> None:
        """`controller`: writes the log, and nobody else does."""
        self.context: Final = context
        self._forwarding = forwarding
        self._produces = Produces(context)
        self._fetches = Fetches(context)
        self._ids = ProducerIds(context, forwarding)
        self._cluster = ClusterAnswers(context, forwarding)
        self._configs = ConfigAnswers(context, controller)
        self._controller = controller
        self._served = SERVED if controller is None else _served_beside_controller(controller.apis)

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due; -1 never."""
        due = (self._produces.deadline_us, self._fetches.deadline_us, self._forwarding.deadline_us)
        return min((each for each in due if each >= 0), default=-1)

    # --- requests in, answers out -------------------------------------------------------------------------------------

    def passes_on(self, api_key: int) -> bool:
        """Is this raft's, and still for the leader to answer, as a Kafka broker has it? If a follower knows no leader,
        raft/ answers, as a controller does."""
        return api_key == ApiKey.DESCRIBE_QUORUM and self._forwarding.has_leader

    def on_request(self, request: Request, now_us: Micros) -> None:
        """Serve it now, or keep it until it can be answered. What is not served here closes the connection, as Kafka
        does."""
        if request.header.request_api_key not in self._served:
            self.context.replica.connections.hang_up(request.connection, now_us)
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
                    self.context.replica.connections.hang_up(request.connection, now_us)
                else:
                    request.reply(answer)

    def _answer_to(self, message: Message, version: int) -> Message | None:
        """To what can be answered at once; None if it is not served here."""
        match message:
            case ApiVersionsRequest():
                replica = self.context.replica
                kraft_version = replica.raft.describe().kraft_version
                levels = None if self._controller is None else self._controller.finalized_features
                return api_versions(version, kraft_version, replica.high_watermark - 1, self._served, levels)
            case MetadataRequest():
                return self._cluster.metadata(message, version)
            case DescribeClusterRequest():
                return self._cluster.describe_cluster(message)
            case DescribeConfigsRequest():
                return self._configs.describe(message)
            case FindCoordinatorRequest():
                return self._cluster.find_coordinator(message, version)
            case ListOffsetsRequest():
                return list_offsets(self.context, message, version)
        return None

    def on_drained(self, connection: Connection) -> None:
        """Its client has read, or was answered, so that more may be made for it."""
        self._fetches.on_drained(connection)

    def forget(self, connection: Connection) -> None:
        """The connection is gone, with requests that were open."""
        self._fetches.forget(connection)

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
        self._forwarding.on_tick(now_us)


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
