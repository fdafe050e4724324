"""Strangers on a live quorum's port: nodes and voters of another cluster, and 200 connections that misbehave."""

import contextlib
import os
import random
import socket
import struct
import threading
from pathlib import Path

import pytest

from fastquorum.client.connection import Connection, Deadline, NoAnswer
from fastquorum.types import Uuid
from fastquorum.wire import ErrorCode, Message, encode_request, request_header
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from tests.process.cluster import CLUSTER_ID, Cluster, cluster
from tests.process.load import batch_of, produce, produce_request

OTHER_CLUSTER = "BBBBBBBBBBBBBBBBBBBBBQ"
TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
FAR_EPOCH = 1_000_000
HOSTILE_COUNT = 200


def vote(cluster_id: str, epoch: int, *, pre_vote: bool = False) -> VoteRequest:
    topic = VoteRequest.TopicData
    wanted = topic.PartitionData(
        replica_epoch=epoch, replica_id=2, last_offset_epoch=epoch, last_offset=1 << 40, pre_vote=pre_vote
    )
    return VoteRequest(cluster_id=cluster_id, topics=[topic(topic_name=TOPIC, partitions=[wanted])])


def begin(cluster_id: str, epoch: int) -> BeginQuorumEpochRequest:
    topic = BeginQuorumEpochRequest.TopicData
    begun = topic.PartitionData(leader_id=2, leader_epoch=epoch)
    endpoint = BeginQuorumEpochRequest.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=9)
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id, topics=[topic(topic_name=TOPIC, partitions=[begun])], leader_endpoints=[endpoint]
    )


def end(cluster_id: str, epoch: int) -> EndQuorumEpochRequest:
    topic = EndQuorumEpochRequest.TopicData
    ended = topic.PartitionData(leader_id=2, leader_epoch=epoch)
    return EndQuorumEpochRequest(cluster_id=cluster_id, topics=[topic(topic_name=TOPIC, partitions=[ended])])


def fetch(cluster_id: str, epoch: int) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    wanted = topic.FetchPartition(current_leader_epoch=epoch, fetch_offset=0, last_fetched_epoch=0)
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=-1),
        max_wait_ms=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic(topic_id=METADATA_TOPIC_ID, partitions=[wanted])],
    )


@pytest.mark.parametrize(("make", "version"), [(vote, 2), (begin, 1), (end, 1), (fetch, 17)])
@pytest.mark.parametrize("whom", ["leader", "follower"])
def test_a_peer_of_another_cluster_is_told_so_and_changes_nothing(
    steady: Cluster, make: object, version: int, whom: str
) -> None:
    leader = steady.leader()
    node_id = leader if whom == "leader" else next(each for each in steady.ids if each != leader)
    connection = Connection(steady.endpoint(node_id), Deadline(10))
    try:
        answer = connection.request(make(OTHER_CLUSTER, FAR_EPOCH), version, Deadline(10))  # type: ignore[operator]
        assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID  # type: ignore[attr-defined]
    finally:
        connection.close()
    assert steady.nodes[node_id].status()["role"] == whom
    steady.nodes[leader].append(f"after {type(answer).__name__}", 10)
    assert "offset" in steady.nodes[leader].appended(f"after {type(answer).__name__}")


def test_a_node_of_another_cluster_never_joins_and_disturbs_nobody(tmp_path: Path) -> None:
    with cluster(tmp_path) as quorum:
        leader, epoch = quorum.leader(), quorum.epoch()
        stranger = next(node_id for node_id in quorum.ids if node_id != leader)
        quorum.stop(stranger)
        quorum.root.joinpath(f"node{stranger}").rename(tmp_path / "kept")
        quorum.start(stranger, settings={"cluster.id": OTHER_CLUSTER})
        process = quorum.nodes[stranger]
        process.wait_event("opened")
        process.wait_role("prospective", "candidate")  # it has asked the others in vain
        quorum.nodes[leader].append("undisturbed", 10)
        assert "offset" in quorum.nodes[leader].appended("undisturbed")
        assert process.reported("ready") == []
        assert (quorum.leader(), quorum.epoch()) == (leader, epoch)


def whole(message: Message, version: int) -> bytes:
    frame = encode_request(request_header(message, version, 1, "hostile"), message)
    return struct.pack(">i", len(frame)) + frame


def misbehave(index: int, port: int, random_bytes: random.Random) -> socket.socket | None:
    """Open a connection and do one bad thing with it. Left open where that is the bad thing."""
    sock = socket.create_connection(("127.0.0.1", port), 10)
    valid = whole(vote(CLUSTER_ID, 1, pre_vote=True), 2)
    with contextlib.suppress(OSError):
        match index % 8:
            case 0:
                sock.sendall(random_bytes.randbytes(4096))
            case 1:
                sock.sendall(struct.pack(">i", 0x7FFFFFFF) + b"x" * 100)
            case 2:
                sock.sendall(struct.pack(">i", -1))
            case 3:
                sock.sendall(valid[:7])  # slow loris: the rest never comes
            case 4:
                sock.sendall(valid)
                sock.shutdown(socket.SHUT_WR)  # half closed
            case 5:
                sock.sendall(whole(fetch(OTHER_CLUSTER, 5), 17) * 20)  # never reads the answers
            case 6:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.sendall(valid[: len(valid) // 2])
                sock.close()  # reset in the middle of a frame
                return None
            case _:
                sock.sendall(struct.pack(">i", 12) + os.urandom(12))
    return sock


def test_the_leader_stays_while_200_connections_misbehave(steady: Cluster) -> None:
    leader = steady.leader()
    connection = Connection(steady.endpoint(leader), Deadline(10))
    over = threading.Event()
    acked: list[int] = []

    def append() -> None:
        while not over.is_set():
            answer, _ = produce(connection, batch_of(steady.kernels, [b"meanwhile"]))
            assert answer.error_code == 0, ErrorCode(answer.error_code)
            acked.append(answer.base_offset)

    writer = threading.Thread(target=append)
    writer.start()
    held: list[socket.socket] = []
    try:
        seeded = random.Random(7)
        ports = [steady.ports[node_id] for node_id in steady.ids]
        for index in range(HOSTILE_COUNT):
            sock = misbehave(index, ports[index % 3], seeded)
            if sock is not None:
                held.append(sock)
        for index in range(HOSTILE_COUNT):  # and all once more, while the first ones hang
            sock = misbehave(index, ports[index % 3], seeded)
            if sock is not None:
                held.append(sock)
        for number in range(50):
            steady.nodes[leader].append(f"in spite of all {number}", 20)
            assert "offset" in steady.nodes[leader].appended(f"in spite of all {number}")
    finally:
        over.set()
        writer.join(20)
        connection.close()
        for sock in held:
            sock.close()
    assert acked
    assert acked == sorted(set(acked))


def test_requests_with_offsets_and_epochs_out_of_range_change_nothing(steady: Cluster) -> None:
    """The requests are of this cluster, but absurd: only a vote may name a future epoch, and no vote is sent here."""
    leader = steady.leader()
    epoch = steady.epoch()
    topic = FetchRequest.FetchTopic
    for fetch_epoch, offset, expected in (
        (epoch + 7, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (epoch - 1, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (epoch, 1 << 40, ErrorCode.OFFSET_OUT_OF_RANGE),
        (epoch, -5, ErrorCode.OFFSET_OUT_OF_RANGE),
    ):
        wanted = topic.FetchPartition(current_leader_epoch=fetch_epoch, fetch_offset=offset, last_fetched_epoch=-1)
        request = FetchRequest(
            replica_id=-1, max_bytes=1 << 20, session_epoch=-1, topics=[topic(topic="quorum", partitions=[wanted])]
        )
        connection = Connection(steady.endpoint(leader), Deadline(10))
        try:
            answer = connection.request(request, 12, Deadline(10))
        except NoAnswer as error:
            pytest.fail(f"epoch {fetch_epoch}, offset {offset}: {error}")
        finally:
            connection.close()
        found = ErrorCode(answer.responses[0].partitions[0].error_code)  # type: ignore[attr-defined]
        assert found is expected, (fetch_epoch, offset)


@pytest.mark.parametrize(("api", "versions"), [("fetch", range(4, 13)), ("produce", range(3, 13))])
def test_a_follower_refuses_in_every_version_without_hanging_up(steady: Cluster, api: str, versions: range) -> None:
    """Old answers have no room for the new leader's address: they are to be sent without it."""
    follower = next(node_id for node_id in steady.ids if node_id != steady.leader())
    topic = FetchRequest.FetchTopic
    wanted = topic.FetchPartition(fetch_offset=0, partition_max_bytes=1)
    connection = Connection(steady.endpoint(follower), Deadline(10))
    try:
        for version in versions:
            if api == "fetch":
                fetching = FetchRequest(
                    replica_id=-1, max_bytes=1, session_epoch=-1, topics=[topic(topic="quorum", partitions=[wanted])]
                )
                answer = connection.request(fetching, version, Deadline(10)).responses[0].partitions[0]  # type: ignore[attr-defined]
            else:
                producing = produce_request(batch_of(steady.kernels, [b"refused"]))
                answer = connection.request(producing, version, Deadline(10)).responses[0].partition_responses[0]  # type: ignore[attr-defined]
            assert ErrorCode(answer.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER, version
    finally:
        connection.close()
