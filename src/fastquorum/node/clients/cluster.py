"""Answers to Metadata, DescribeCluster, DescribeQuorum and FindCoordinator. Sans-IO.

Every voter is shown as a broker and as a controller: it is both to whoever asks. Source: the Kafka protocol guide;
KIP-919 (endpoint types).
"""

from typing import Final, NamedTuple

from fastquorum.controller.configs.describing import LEGAL_NAME
from fastquorum.node.clients.context import ClientContext
from fastquorum.node.metadata.forwarding import Forwarding
from fastquorum.node.network.requests import Request
from fastquorum.node.view import KnownLeader
from fastquorum.storage.identity import LogKind
from fastquorum.types import TOPIC_NAME, ZERO_UUID, Endpoint, Micros, NodeId, Uuid
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from fastquorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from fastquorum.wire.messages.producers import FindCoordinatorRequest, FindCoordinatorResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse

BROKERS: Final = 1
CONTROLLERS: Final = 2
"""The endpoint types of DescribeCluster."""
_SEVERAL_KEYS_VERSION_MIN: Final = 4
"""The first FindCoordinator that asks for several keys (KIP-699)."""
_DIRECTORIES_VERSION_MIN: Final = 2
"""The first DescribeQuorum that tells directory ids and endpoints."""
_NO_GROUPS: Final = "there are no consumer groups or transactions here: assign partition 0 yourself"


class VoterAddress(NamedTuple):
    """One voter, where clients reach it."""

    id: NodeId
    endpoint: Endpoint


class ClusterAnswers:
    """Responses about the cluster, of one node."""

    def __init__(self, context: ClientContext, forwarding: Forwarding) -> None:
        self._context = context
        self._forwarding = forwarding

    def _nodes(self) -> list[VoterAddress]:
        voters = self._context.replica.raft.voters
        return [VoterAddress(voter.key.id, endpoint) for voter in voters for endpoint in voter.endpoints[:1]]

    # --- Metadata -----------------------------------------------------------------------------------------------------

    def metadata(self, message: MetadataRequest, version: int) -> MetadataResponse:
        leader = self._context.leader()
        response = MetadataResponse(cluster_id=self._context.cluster_id, controller_id=leader.id)
        for node in self._nodes():
            broker = MetadataResponse.MetadataResponseBroker(
                node_id=node.id, host=node.endpoint.host, port=node.endpoint.port
            )
            response.brokers.append(broker)
        everything = message.topics is None or (version == 0 and not message.topics)
        if everything:
            response.topics.append(self._topic(self._context.topic_name, self._context.topic_id, leader))
        for requested in () if everything else message.topics or ():
            response.topics.append(self._topic(requested.name, requested.topic_id, leader))
        return response

    def _topic(self, name: str | None, topic_id: Uuid, leader: KnownLeader) -> MetadataResponse.MetadataResponseTopic:
        context, topic = self._context, MetadataResponse.MetadataResponseTopic
        error = context.partition_error(name, topic_id, 0, by_id=name is None)
        if name is not None and LEGAL_NAME.fullmatch(name) is None:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        if error is not ErrorCode.NONE:
            return topic(error_code=error, name=name if name is not None else "", topic_id=topic_id)
        ids = list(context.replica.raft.voters.ids)
        partition = topic.MetadataResponsePartition(
            error_code=ErrorCode.NONE if leader.id >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
            leader_id=leader.id,
            leader_epoch=leader.epoch,
            replica_nodes=ids,
            isr_nodes=ids,
        )
        internal = context.kind is LogKind.METADATA
        return topic(name=context.topic_name, topic_id=context.topic_id, is_internal=internal, partitions=[partition])

    # --- DescribeCluster ----------------------------------------------------------------------------------------------

    def describe_cluster(self, message: DescribeClusterRequest) -> DescribeClusterResponse:
        response = DescribeClusterResponse(endpoint_type=message.endpoint_type, cluster_id=self._context.cluster_id)
        if message.endpoint_type not in (BROKERS, CONTROLLERS):
            response.error_code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            response.error_message = f"endpoint type {message.endpoint_type}: 1 asks for brokers, 2 for controllers"
            return response
        response.controller_id = self._context.leader().id
        response.brokers = [
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=node.id, host=node.endpoint.host, port=node.endpoint.port
            )
            for node in self._nodes()
        ]
        return response

    # --- DescribeQuorum -----------------------------------------------------------------------------------------------

    def describe_quorum(self, request: Request, message: DescribeQuorumRequest, now_us: Micros) -> None:
        """A follower has the leader answer."""
        leader = self._context.leader()
        partition = DescribeQuorumResponse.TopicData.PartitionData(
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=leader.id, leader_epoch=leader.epoch
        )
        topic = DescribeQuorumResponse.TopicData(topic_name=TOPIC_NAME, partitions=[partition])
        refusal = DescribeQuorumResponse(topics=[topic])
        version = request.header.request_api_version
        self._forwarding.forward(request, message, refusal, now_us, lambda answer: _without_news(answer, version))

    # --- FindCoordinator ----------------------------------------------------------------------------------------------

    def find_coordinator(self, message: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        """There is none: no group protocol, no transactions. COORDINATOR_NOT_AVAILABLE, as clients know it."""
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if version < _SEVERAL_KEYS_VERSION_MIN:
            return FindCoordinatorResponse(error_code=code, error_message=_NO_GROUPS, node_id=-1, port=-1)
        coordinator = FindCoordinatorResponse.Coordinator
        none = [
            coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=_NO_GROUPS)
            for key in message.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=none)


def _without_news(answer: Message, version: int) -> Message:
    """DescribeQuorum in the asker's version: the leader was asked in the newest."""
    if isinstance(answer, DescribeQuorumResponse) and version < _DIRECTORIES_VERSION_MIN:
        answer.nodes = []
        for topic in answer.topics:
            for partition in topic.partitions:
                for row in (*partition.current_voters, *partition.observers):
                    row.replica_directory_id = ZERO_UUID
    return answer
