"""Requests that cost their senders nothing: floods for a node of a user log, for a controller, and for both.

Some are from strangers, some bear voters' ids; none of them is what a voter would send that should be believed. Who may
ask what is for authentication to say, which is another matter: here a node has to live with whatever it is asked.
"""

from functools import cache

from fastquorum.kernels import BATCH_HEADER_BYTES, Compression, load
from fastquorum.kernels.compression import compress
from fastquorum.kernels.pure.varint import encode_varint
from fastquorum.types import Uuid
from fastquorum.wire import Message, encode_request, request_header
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerRegistrationRequest
from fastquorum.wire.messages.cluster import DescribeClusterRequest
from fastquorum.wire.messages.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from fastquorum.wire.messages.handshake import ApiVersionsRequest
from fastquorum.wire.messages.list_offsets import ListOffsetsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.partitions import AlterPartitionRequest
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.messages.producers import InitProducerIdRequest
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from fastquorum.wire.messages.quorum_admin import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from fastquorum.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest

from .nodes import CLUSTER_ID, DIRECTORY_IDS, TOPIC

_METADATA = "__cluster_metadata"
_STRANGER_ID = 77
_STRANGER_DIRECTORY = Uuid.parse(CLUSTER_ID)
_BROKER_DEFAULTS = 4
"""Resource type of brokers' configurations; of all of them without a name."""


def frame(message: Message, version: int) -> bytes:
    """With its length."""
    request = encode_request(request_header(message, version, 7, "hostile"), message)
    return len(request).to_bytes(4, "big") + request


def of_any_log(epoch: int) -> dict[str, bytes]:
    """What any node is asked. `epoch`: the leader's."""
    topic = DescribeQuorumRequest.TopicData
    quorum = DescribeQuorumRequest(
        topics=[topic(topic_name=_METADATA, partitions=[topic.PartitionData(partition_index=0)])]
    )
    named = [MetadataRequest.MetadataRequestTopic(name=f"topic-{number}") for number in range(500)]
    resource = DescribeConfigsRequest.DescribeConfigsResource
    nodes = [
        resource(resource_type=_BROKER_DEFAULTS, resource_name=str(node_id), configuration_keys=None)
        for node_id in DIRECTORY_IDS
    ]
    return {
        "questions about the quorum": frame(quorum, 2),
        "handshakes": frame(ApiVersionsRequest(), 0),
        "SASL's handshakes": frame(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        "SASL's tokens": frame(SaslAuthenticateRequest(auth_bytes=bytes(1_000)), 2),
        "votes of another cluster": frame(VoteRequest(cluster_id="another"), 1),
        "votes of voters and strangers": _votes(epoch),
        "epochs that were": _epochs(epoch),
        "updates of voters": _voter_updates(epoch),
        "voters added and removed": _voter_changes(),
        "snapshots that are not there": frame(_fetch_snapshot(epoch), 1),
        "many topics' metadata": frame(MetadataRequest(topics=named), 12),
        "questions about the cluster": frame(DescribeClusterRequest(endpoint_type=2), 1),
        "configurations": frame(DescribeConfigsRequest(resources=nodes), 4),
    }


def of_user_logs() -> dict[str, bytes]:
    """What a node of a user log is asked beside."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    part = topic.ListOffsetsPartition(partition_index=0, timestamp=1)
    offsets = ListOffsetsRequest(replica_id=-1, topics=[topic(name=TOPIC, partitions=[part])])
    ids = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    return {
        "offsets by time": frame(offsets, 7),
        "producers' ids": frame(ids, 4),
        "small batches that hold much": frame(_much_in_little(), 9),
    }


@cache
def _much_in_little() -> ProduceRequest:
    """A batch of some hundred bytes, in which there is one record with four million headers."""
    count = 4_000_000
    record = bytes(3) + encode_varint(-1) * 2 + encode_varint(count) + (b"\0" + encode_varint(-1)) * count
    section = compress(Compression.ZSTD, encode_varint(len(record)) + record)
    kernels = load("native")
    place = {"base_offset": 0, "leader_epoch": 0, "timestamp_ms": 1, "attributes": Compression.ZSTD}
    batch = kernels.encode_values([b""], **place)[:BATCH_HEADER_BYTES] + section
    sealed = batch[:8] + (len(batch) - 12).to_bytes(4, "big") + batch[12:17]
    sealed += kernels.crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]
    topic = ProduceRequest.TopicProduceData
    part = topic.PartitionProduceData(index=0, records=sealed)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic(name=TOPIC, partition_data=[part])])


def of_controllers() -> dict[str, bytes]:
    """What a controller is asked beside. Some of it is written, over and over."""
    return {
        "brokers that register again": b"".join(frame(_registration(1000 + n % 20, n), 4) for n in range(1, 100)),
        "heartbeats of nobody": frame(BrokerHeartbeatRequest(broker_id=1000, broker_epoch=5), 1),
        "ISRs of nobody": frame(_isrs(), 3),
        "changed configurations": b"".join(frame(_configuration(1 + n), 1) for n in range(7)),
    }


def _votes(epoch: int) -> bytes:
    """Return votes of voters, in past and present epochs, and pre-votes of a stranger in any epoch."""
    of_voters = [_vote(each, voter, pre_vote) for each in (0, epoch) for voter in DIRECTORY_IDS for pre_vote in (0, 1)]
    of_a_stranger = [_vote(each, _STRANGER_ID, True) for each in (0, epoch, epoch + 1, 2**31 - 1)]
    return b"".join(frame(each, 2) for each in (*of_voters, *of_a_stranger))


def _vote(epoch: int, replica_id: int, pre_vote: bool) -> VoteRequest:
    topic = VoteRequest.TopicData
    part = topic.PartitionData(
        replica_epoch=epoch,
        replica_id=replica_id,
        replica_directory_id=_directory(replica_id),
        last_offset_epoch=epoch,
        last_offset=2**40,
        pre_vote=bool(pre_vote),
    )
    return VoteRequest(cluster_id=CLUSTER_ID, topics=[topic(topic_name=_METADATA, partitions=[part])])


def _directory(replica_id: int) -> Uuid:
    return Uuid.parse(DIRECTORY_IDS[replica_id]) if replica_id in DIRECTORY_IDS else _STRANGER_DIRECTORY


def _epochs(epoch: int) -> bytes:
    """Epochs before the leader's begin and end, by voters and a stranger."""
    frames = []
    begun, ended = BeginQuorumEpochRequest.TopicData, EndQuorumEpochRequest.TopicData
    for leader_id in (*DIRECTORY_IDS, _STRANGER_ID):
        begins = begun.PartitionData(leader_id=leader_id, leader_epoch=epoch - 1)
        ends = ended.PartitionData(leader_id=leader_id, leader_epoch=epoch - 1)
        begin = BeginQuorumEpochRequest(
            cluster_id=CLUSTER_ID, topics=[begun(topic_name=_METADATA, partitions=[begins])]
        )
        end = EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=[ended(topic_name=_METADATA, partitions=[ends])])
        frames += [frame(begin, 1), frame(end, 1)]
    return b"".join(frames)


def _voter_updates(epoch: int) -> bytes:
    """A stranger says much of where it listens, and nothing."""
    versions = UpdateRaftVoterRequest.KRaftVersionFeature(min_supported_version=0, max_supported_version=1)
    long = [UpdateRaftVoterRequest.Listener(name="CONTROLLER", host="h" * 200, port=1) for _ in range(16)]
    updates = [
        UpdateRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            current_leader_epoch=epoch,
            voter_id=_STRANGER_ID,
            voter_directory_id=_STRANGER_DIRECTORY,
            listeners=listeners,
            kraft_version_feature=versions,
        )
        for listeners in (long, [])
    ]
    return b"".join(frame(each, 0) for each in updates)


def _voter_changes() -> bytes:
    """A voter is removed, and a stranger added. Neither is served here."""
    removed = RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=1, voter_directory_id=Uuid.parse(DIRECTORY_IDS[1]))
    added = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1000,
        voter_id=_STRANGER_ID,
        voter_directory_id=_STRANGER_DIRECTORY,
        listeners=[AddRaftVoterRequest.Listener(name="CONTROLLER", host="x", port=1)],
    )
    return frame(removed, 0) + frame(added, 1)


def _fetch_snapshot(epoch: int) -> FetchSnapshotRequest:
    topic = FetchSnapshotRequest.TopicSnapshot
    which = topic.PartitionSnapshot.SnapshotId(end_offset=1, epoch=1)
    part = topic.PartitionSnapshot(partition=0, current_leader_epoch=epoch, snapshot_id=which, position=0)
    return FetchSnapshotRequest(
        cluster_id=CLUSTER_ID, replica_id=_STRANGER_ID, topics=[topic(name=_METADATA, partitions=[part])]
    )


def _registration(broker_id: int, incarnation: int) -> BrokerRegistrationRequest:
    of = BrokerRegistrationRequest
    return of(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=Uuid(incarnation.to_bytes(16, "big")),
        listeners=[of.Listener(name="PLAINTEXT", host="broker", port=9092, security_protocol=0)],
        features=[of.Feature(name="metadata.version", min_supported_version=1, max_supported_version=30)],
        rack=None,
        log_dirs=[Uuid(broker_id.to_bytes(16, "big"))],
    )


def _isrs() -> AlterPartitionRequest:
    topic = AlterPartitionRequest.TopicData
    member = topic.PartitionData.BrokerState(broker_id=1, broker_epoch=1)
    parts = [topic.PartitionData(partition_index=number, new_isr_with_epochs=[member] * 3) for number in range(300)]
    return AlterPartitionRequest(
        broker_id=1, broker_epoch=1, topics=[topic(topic_id=Uuid(b"t" * 16), partitions=parts)]
    )


def _configuration(threads: int) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = resource.AlterableConfig(name="log.cleaner.threads", config_operation=0, value=str(threads))
    return IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=_BROKER_DEFAULTS, resource_name="", configs=[config])]
    )
