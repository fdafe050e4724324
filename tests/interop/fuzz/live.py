"""A quorum as mutants may know it, and well-formed requests of every version that its nodes serve."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from fastquorum.kernels import Compression
from fastquorum.node.clients.context import user_topic_id
from fastquorum.node.clients.server import SERVED
from fastquorum.storage.identity import LogKind
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Uuid
from fastquorum.wire import API, ApiKey, Message, encode_request, request_header
from fastquorum.wire.messages.cluster import DescribeClusterRequest
from fastquorum.wire.messages.configs import DescribeConfigsRequest
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.handshake import ApiVersionsRequest
from fastquorum.wire.messages.list_offsets import ListOffsetsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.messages.producers import FindCoordinatorRequest, InitProducerIdRequest
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, UpdateRaftVoterRequest
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.interop.faults import batch
from tests.interop.nodes import CLUSTER_ID, DIRECTORY_IDS, TOPIC

CLIENT_ID: Final = "fuzz"
OBSERVER_ID: Final = 77


class Live(NamedTuple):
    """The roles of the nodes. `victim` and `quiet` follow; the package says why they differ."""

    kind: LogKind
    epoch: int
    leader: int
    victim: int
    quiet: int
    ports: dict[int, int]

    @property
    def topic(self) -> str:
        """The log's name for clients."""
        return TOPIC_NAME if self.kind is LogKind.METADATA else TOPIC

    @property
    def topic_id(self) -> Uuid:
        return METADATA_TOPIC_ID if self.kind is LogKind.METADATA else user_topic_id(CLUSTER_ID, TOPIC)

    def directory_id(self, node_id: int) -> Uuid:
        return Uuid.parse(DIRECTORY_IDS[node_id])


def value(live: Live, text: str) -> bytes:
    """What a record of this log may hold."""
    if live.kind is LogKind.USER:
        return text.encode()
    return encode_metadata_record(ConfigRecord(resource_type=4, resource_name="", name="fuzz", value=text), 0)


def requests(live: Live) -> Iterator[tuple[Message, int]]:
    """Some of every API and version that is served, as their senders would put them."""
    for key in SERVED:
        versions = API[key].versions
        for version in range(versions.first, versions.last + 1):
            for message in _MADE[key](live, version):
                yield message, version


def frame(message: Message, version: int, correlation_id: int = 7) -> bytes:
    return encode_request(request_header(message, version, correlation_id, CLIENT_ID), message)


def produce(live: Live, version: int, records: bytes | None, acks: int = -1) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=records)
    topic = data(name=live.topic, topic_id=live.topic_id, partition_data=[part])
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])


def consumer_fetch(live: Live, offset: int, *, max_wait_ms: int = 0, bytes_max: int = 1 << 20) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    part = topic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    wanted = topic(topic=live.topic, topic_id=live.topic_id, partitions=[part])
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=bytes_max, topics=[wanted])


def replica_fetch(live: Live, version: int, node_id: int) -> FetchRequest:
    """A follower's or an observer's, from the log's beginning."""
    topic = FetchRequest.FetchTopic
    directory_id = live.directory_id(node_id) if node_id in DIRECTORY_IDS else Uuid(b"observer's place")
    part = topic.FetchPartition(
        partition=0,
        current_leader_epoch=live.epoch,
        fetch_offset=0,
        last_fetched_epoch=0,
        log_start_offset=0,
        replica_directory_id=directory_id,
        high_watermark=0,
    )
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        max_wait_ms=100,
        max_bytes=1 << 20,
        topics=[topic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[part])],
    )
    if version < 15:
        request.replica_id = node_id
    else:
        request.replica_state = FetchRequest.ReplicaState(replica_id=node_id)
    return request


def _produces(live: Live, version: int) -> Iterator[Message]:
    values = [value(live, "one"), value(live, "two")]
    for codec in Compression:
        yield produce(live, version, batch(*values, compression=codec))
    yield produce(live, version, batch(*values), acks=1)
    yield produce(live, version, batch(*values), acks=0)
    yield produce(live, version, batch(*values, producer=(9, 0, 0)))


def _fetches(live: Live, version: int) -> Iterator[Message]:
    yield consumer_fetch(live, 0)
    yield consumer_fetch(live, 1 << 40)
    yield consumer_fetch(live, 2, max_wait_ms=50, bytes_max=1)
    if version >= 12:
        for node_id in (live.victim, live.quiet, OBSERVER_ID):
            yield replica_fetch(live, version, node_id)


def _list_offsets(live: Live, version: int) -> Iterator[Message]:
    topic = ListOffsetsRequest.ListOffsetsTopic
    for timestamp in (-1, -2, -3, 1_795_000_000_000):
        part = topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        yield ListOffsetsRequest(replica_id=-1, topics=[topic(name=live.topic, partitions=[part])])


def _metadata(live: Live, version: int) -> Iterator[Message]:
    topic = MetadataRequest.MetadataRequestTopic
    yield MetadataRequest(topics=[topic(name=live.topic)])
    yield MetadataRequest(topics=None if version >= 1 else [])
    if version >= 12:
        yield MetadataRequest(topics=[topic(name=None, topic_id=live.topic_id)])


def _find_coordinator(live: Live, version: int) -> Iterator[Message]:
    if version >= 4:
        yield FindCoordinatorRequest(key_type=1, coordinator_keys=["one", "two"])
    else:
        yield FindCoordinatorRequest(key="one")


def _api_versions(live: Live, version: int) -> Iterator[Message]:
    yield ApiVersionsRequest()
    if version >= 3:
        yield ApiVersionsRequest(client_software_name="fuzz", client_software_version="1.0")


def _init_producer_id(live: Live, version: int) -> Iterator[Message]:
    yield InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    yield InitProducerIdRequest(transactional_id="one", transaction_timeout_ms=1000)


def _describe_configs(live: Live, version: int) -> Iterator[Message]:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    for kind, name in ((2, live.topic), (4, str(live.leader)), (4, "")):
        yield DescribeConfigsRequest(
            resources=[resource(resource_type=kind, resource_name=name, configuration_keys=None)]
        )


def _describe_cluster(live: Live, version: int) -> Iterator[Message]:
    yield DescribeClusterRequest()
    if version >= 1:
        yield DescribeClusterRequest(endpoint_type=2)


def _votes(live: Live, version: int) -> Iterator[Message]:
    topic = VoteRequest.TopicData
    for candidate in (live.victim, live.quiet, OBSERVER_ID):
        for pre_vote in (False, True)[: version // 2 + 1]:
            part = topic.PartitionData(
                replica_epoch=live.epoch,
                replica_id=candidate,
                replica_directory_id=live.directory_id(candidate) if candidate != OBSERVER_ID else Uuid(bytes(16)),
                last_offset_epoch=live.epoch - (0 if pre_vote else 1),
                last_offset=1 << 40,
                pre_vote=pre_vote,
            )
            yield VoteRequest(cluster_id=CLUSTER_ID, topics=[topic(topic_name=TOPIC_NAME, partitions=[part])])


def _begins(live: Live, version: int) -> Iterator[Message]:
    topic, endpoint = BeginQuorumEpochRequest.TopicData, BeginQuorumEpochRequest.LeaderEndpoint
    for leader in (live.leader, live.victim):
        part = topic.PartitionData(leader_id=leader, leader_epoch=live.epoch)
        at = endpoint(name="CONTROLLER", host="127.0.0.1", port=live.ports[leader])
        yield BeginQuorumEpochRequest(
            cluster_id=CLUSTER_ID, topics=[topic(topic_name=TOPIC_NAME, partitions=[part])], leader_endpoints=[at]
        )


def _ends(live: Live, version: int) -> Iterator[Message]:
    topic = EndQuorumEpochRequest.TopicData
    for leader in (live.leader, live.victim):
        heirs = (live.victim, live.quiet)
        part = topic.PartitionData(
            leader_id=leader,
            leader_epoch=live.epoch,
            preferred_successors=list(heirs),
            preferred_candidates=[
                topic.PartitionData.ReplicaInfo(candidate_id=each, candidate_directory_id=live.directory_id(each))
                for each in heirs
            ],
        )
        yield EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=[topic(topic_name=TOPIC_NAME, partitions=[part])])


def _describe_quorum(live: Live, version: int) -> Iterator[Message]:
    topic = DescribeQuorumRequest.TopicData
    yield DescribeQuorumRequest(
        topics=[topic(topic_name=TOPIC_NAME, partitions=[topic.PartitionData(partition_index=0)])]
    )


def _fetch_snapshots(live: Live, version: int) -> Iterator[Message]:
    topic = FetchSnapshotRequest.TopicSnapshot
    part = topic.PartitionSnapshot(
        current_leader_epoch=live.epoch, snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=3, epoch=1)
    )
    yield FetchSnapshotRequest(
        cluster_id=CLUSTER_ID, replica_id=live.victim, topics=[topic(name=TOPIC_NAME, partitions=[part])]
    )


def _update_voters(live: Live, version: int) -> Iterator[Message]:
    wanted = UpdateRaftVoterRequest
    for voter in (live.victim, live.quiet):
        yield wanted(
            cluster_id=CLUSTER_ID,
            current_leader_epoch=live.epoch,
            voter_id=voter,
            voter_directory_id=live.directory_id(voter),
            listeners=[wanted.Listener(name="CONTROLLER", host="127.0.0.1", port=live.ports[voter])],
            kraft_version_feature=wanted.KRaftVersionFeature(max_supported_version=1),
        )


_MADE: Final[dict[ApiKey, Callable[[Live, int], Iterator[Message]]]] = {
    ApiKey.PRODUCE: _produces,
    ApiKey.FETCH: _fetches,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.API_VERSIONS: _api_versions,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.VOTE: _votes,
    ApiKey.BEGIN_QUORUM_EPOCH: _begins,
    ApiKey.END_QUORUM_EPOCH: _ends,
    ApiKey.DESCRIBE_QUORUM: _describe_quorum,
    ApiKey.FETCH_SNAPSHOT: _fetch_snapshots,
    ApiKey.UPDATE_RAFT_VOTER: _update_voters,
}
