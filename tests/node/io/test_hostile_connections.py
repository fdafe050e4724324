"""Connections that lie, dawdle, never read, or only open: each ends at its deadline, and the node goes on."""

import contextlib
import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.api.options import OpenOptions
from fastquorum.kernels import load
from fastquorum.node.network.request_reader import ELEMENTS_MAX
from fastquorum.wire import Message, decode_response, encode_request, request_header
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.handshake import ApiVersionsRequest
from fastquorum.wire.messages.metadata import MetadataRequest
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.messages.quorum import VoteRequest
from tests.api.nodes import QUICK, WAIT_S, stalled


@pytest.fixture
def node(tmp_path: Path) -> Iterator[sync.Quorum]:
    with sync.open(
        str(tmp_path),
        **QUICK,
        node_id=1,
        partial_frame_us_max=150_000,
        connection_idle_us_max=400_000,
        connections_max=8,
    ) as quorum:
        quorum.wait_ready(WAIT_S)
        yield quorum
        # Whatever was done to it: it still commits, in the epoch it began with.
        epoch = quorum.epoch
        quorum.append(b"still here", timeout=WAIT_S)
        assert quorum.epoch == epoch == 1


def connect(node: sync.Quorum) -> socket.socket:
    host, _, port = node.endpoint.address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=WAIT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def api_versions_frame(correlation_id: int = 7) -> bytes:
    body = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return framed(encode_request(request_header(body, 4, correlation_id, "test"), body))


def read_frame(sock: socket.socket) -> bytes:
    def exactly(size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = sock.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    return exactly(int.from_bytes(exactly(4), "big"))


def assert_closed_by_peer(sock: socket.socket) -> None:
    """Blocks until the node hangs up; a reset counts as well."""
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(65536):
            pass


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, 100 * 1024 * 1024 + 1])
def test_an_impossible_length_ends_the_connection_from_its_4_bytes(node: sync.Quorum, length: int) -> None:
    with connect(node) as sock:
        sock.sendall(length.to_bytes(4, "big", signed=True))
        assert_closed_by_peer(sock)


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\xff" * 8, b"\x00\x12\x00\x63" + bytes(20), b"\x7f\xff" + bytes(30)])
def test_a_frame_that_is_no_request_ends_the_connection(node: sync.Quorum, frame: bytes) -> None:
    with connect(node) as sock:
        sock.sendall(framed(frame))
        with contextlib.suppress(EOFError, ConnectionResetError):
            # ApiVersions of an unknown version is answered in version 0's form; everything else is hung up on.
            assert read_frame(sock)[4:6] == b"\x00\x23"


REQUESTS: dict[str, Callable[[int], tuple[Message, int]]] = {
    "client's": lambda count: (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="")] * count), 1),
    "quorum's": lambda count: (VoteRequest(topics=[VoteRequest.TopicData()] * count), 1),
    "producer's": lambda count: (ProduceRequest(acks=-1, topic_data=[ProduceRequest.TopicProduceData()] * count), 9),
}


@pytest.mark.parametrize("elements", [ELEMENTS_MAX + 1, 30_000])
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_request_of_too_many_elements_ends_the_connection(node: sync.Quorum, kind: str, elements: int) -> None:
    """Well-formed; half a million would keep a node busy for seconds, and take 300 MB."""
    message, version = REQUESTS[kind](elements)
    with connect(node) as sock:
        sock.sendall(framed(encode_request(request_header(message, version, 1, "t"), message)))
        with pytest.raises((EOFError, ConnectionResetError)):
            read_frame(sock)


def test_a_request_of_as_many_elements_as_may_be_is_answered(node: sync.Quorum) -> None:
    message = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="")] * ELEMENTS_MAX)
    with connect(node) as sock:
        sock.sendall(framed(encode_request(request_header(message, 1, 1, "t"), message)))
        _, answer = decode_response(read_frame(sock), 3, 1)
        assert len(answer.topics) == ELEMENTS_MAX


def test_random_bytes_harm_nobody(node: sync.Quorum) -> None:
    chance = random.Random(7)
    for _ in range(30):
        with connect(node) as sock, contextlib.suppress(OSError):
            body = chance.randbytes(chance.randrange(1, 200))
            sock.sendall(framed(body) if chance.randrange(2) else body)
            sock.shutdown(socket.SHUT_WR)
            assert_closed_by_peer(sock)


def test_a_frame_that_dribbles_in_is_given_up_at_its_deadline(node: sync.Quorum) -> None:
    with connect(node) as sock:
        sock.sendall((1000).to_bytes(4, "big"))
        sock.settimeout(0.02)
        for _ in range(990):  # a byte now and then: always alive, never done
            try:
                if not sock.recv(1):
                    return
            except TimeoutError:
                with contextlib.suppress(OSError):
                    sock.sendall(b"x")
            except ConnectionResetError:
                return
        raise AssertionError("never closed")


def test_a_connection_that_says_nothing_is_closed(node: sync.Quorum) -> None:
    with connect(node) as sock:
        assert_closed_by_peer(sock)


def test_an_idle_connection_is_closed_after_its_time(node: sync.Quorum) -> None:
    with connect(node) as sock:
        sock.sendall(api_versions_frame())
        read_frame(sock)
        assert_closed_by_peer(sock)


def test_a_half_closed_connection_is_let_go(node: sync.Quorum) -> None:
    with connect(node) as sock:
        sock.sendall(api_versions_frame())
        read_frame(sock)
        sock.sendall(api_versions_frame()[:10])  # in the middle of a frame
        sock.shutdown(socket.SHUT_WR)
        assert_closed_by_peer(sock)


def test_a_frame_in_pieces_and_two_in_one_are_understood(node: sync.Quorum) -> None:
    frame = api_versions_frame(1)
    with connect(node) as sock:
        for at in range(len(frame)):
            sock.sendall(frame[at : at + 1])
        assert read_frame(sock)[:4] == (1).to_bytes(4, "big")
        sock.sendall(api_versions_frame(2) + api_versions_frame(3))
        assert [read_frame(sock)[:4] for _ in range(2)] == [(2).to_bytes(4, "big"), (3).to_bytes(4, "big")]


def test_a_client_that_never_reads_is_closed_and_owes_nothing_more(tmp_path: Path) -> None:
    with sync.open(str(tmp_path), **QUICK, node_id=1, partial_frame_us_max=300_000) as node:
        node.wait_ready(WAIT_S)
        for _ in range(4):
            node.append(b"x" * 4_000_000, timeout=WAIT_S)
        with connect(node) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            metadata = MetadataRequest(topics=None)
            sock.sendall(framed(encode_request(request_header(metadata, 12, 1, "t"), metadata)))
            _, answer = decode_response(read_frame(sock), 3, 12)
            topic = FetchRequest.FetchTopic(
                topic_id=answer.topics[0].topic_id,
                partitions=[FetchRequest.FetchTopic.FetchPartition(fetch_offset=1, partition_max_bytes=2**24)],
            )
            fetch = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=2**24, topics=[topic])
            request = framed(encode_request(request_header(fetch, 16, 2, "t"), fetch))
            with contextlib.suppress(OSError):
                for _ in range(50):
                    sock.sendall(request)
            # Not read until the node has given up on us: then what is left is cut short.
            while len(node._node._transport):  # a quorum of one has no other connection
                node.append(b"meanwhile", timeout=WAIT_S)


def client_request(message: Message, version: int, number: int) -> bytes:
    return framed(encode_request(request_header(message, version, number, "t"), message))


def a_fetch(number: int, fetch_offset: int = 0, **fields: int) -> bytes:
    """A consumer's, of the log of the topic `quorum` from this offset on."""
    part = FetchRequest.FetchTopic.FetchPartition(fetch_offset=fetch_offset, partition_max_bytes=1 << 24)
    topic = FetchRequest.FetchTopic(topic="quorum", partitions=[part])
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24, **fields}
    return client_request(FetchRequest(replica_id=-1, topics=[topic], **limits), 11, number)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


REQUESTS_BEHIND = 100


@pytest.mark.parametrize(("first", "kernels"), [("produce", "native"), ("fetch", "native"), ("fetch", "pure")])
def test_answers_that_wait_behind_another_have_a_bound(tmp_path: Path, kernels: str, first: str) -> None:
    """100 answers of 4 MB each, behind a request that waits: few of them are made before it is answered."""
    options: OpenOptions = {**QUICK, "fetch_timeout_us": 20_000_000, "kernels": kernels}
    with sync.open(str(tmp_path), node_id=1, **options) as node:
        node.wait_ready(WAIT_S)
        for _ in range(2):
            node.append(b"x" * 2_000_000, timeout=WAIT_S)
        batch = load(kernels).encode_values([b"waits"], base_offset=0, leader_epoch=0, timestamp_ms=1_000)
        part = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=batch)
        data = ProduceRequest.TopicProduceData(name="quorum", partition_data=[part])
        waits = {
            "produce": client_request(ProduceRequest(acks=-1, timeout_ms=600_000, topic_data=[data]), 8, 0),
            "fetch": a_fetch(0, max_wait_ms=2**31 - 1, min_bytes=5_000_000),
        }
        held = stalled(node) if first == "produce" else contextlib.nullcontext()
        with connect(node) as client, connect(node) as other:
            with held:
                before = resident_bytes()
                client.sendall(waits[first] + b"".join(a_fetch(number) for number in range(1, REQUESTS_BEHIND)))
                other.sendall(client_request(ApiVersionsRequest(), 0, 7))
                assert read_frame(other)[:4] == (7).to_bytes(4, "big")
                client.settimeout(1.0)
                with pytest.raises(TimeoutError):
                    client.recv(1)
                assert resident_bytes() - before < 100_000_000
            client.settimeout(WAIT_S)
            if first == "fetch":
                node.append(b"x" * 2_000_000, timeout=WAIT_S)
            for number in range(REQUESTS_BEHIND):
                assert read_frame(client)[:4] == number.to_bytes(4, "big")


def test_at_the_limit_of_connections_the_silent_make_room(node: sync.Quorum) -> None:
    with contextlib.ExitStack() as held:
        idle = [held.enter_context(connect(node)) for _ in range(20)]
        # Twelve of them wait in the backlog or were let in after others had to go; a client still gets through.
        with connect(node) as sock:
            sock.sendall(api_versions_frame())
            assert read_frame(sock)[:4] == (7).to_bytes(4, "big")
        assert len(idle) == 20


NO_MEMORY = """
import pathlib, resource, socket, sys
from fastquorum import sync
quick = dict(election_timeout_us=150_000, fetch_timeout_us=400_000, preallocate_bytes=65_536, kernels=sys.argv[2])
with sync.open(sys.argv[1], node_id=1, **quick) as node:
    node.wait_ready(20)
    host, port = node.endpoint.host, node.endpoint.port
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 48 * 2**20, resource.RLIM_INFINITY))
    for length in (40, 90):
        with socket.create_connection((host, port), timeout=20) as sock:
            part = bytes(2**20)
            try:
                sock.sendall((length * 2**20).to_bytes(4, "big"))
                for _ in range(length):
                    sock.sendall(part)
                while sock.recv(1):
                    pass
            except ConnectionError:
                pass
        node.append(b"goes on", timeout=20)
    print("served", node.epoch)
"""


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_frame_for_which_there_is_no_memory_costs_its_connection(tmp_path: Path, kernels: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_MEMORY, str(tmp_path / "data"), kernels],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
        check=False,
    )
    assert done.stdout == "served 1\n", done.stderr


EMFILE = """
import os, pathlib, resource, socket, sys, time
from fastquorum import sync
mark = pathlib.Path(sys.argv[1], "__cluster_metadata-0", "durable-mark")
quick = dict(election_timeout_us=150_000, fetch_timeout_us=400_000, mark_interval_us=20_000)
with sync.open(sys.argv[1], node_id=1, **quick) as node:
    node.wait_ready(20)
    host, _, port = node.endpoint.address.rpartition(":")
    used = max(int(fd) for fd in os.listdir("/proc/self/fd"))
    outside = [socket.socket() for _ in range(30)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 34, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for sock in outside:
        sock.connect((host, int(port)))
    until = time.monotonic() + 0.5  # the mark is due often in that time
    while time.monotonic() < until:
        node.append(b"x", timeout=20)
    until = time.monotonic() + 20
    while True:  # while the mark is written, the node's reserve is lent, a part of it to whoever is faster
        try:
            os.close(os.dup(0))
        except OSError:
            break
        assert time.monotonic() < until, "there were descriptors left"
    starved = mark.stat().st_mtime_ns
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with socket.create_connection((host, int(port)), timeout=20) as late:
        late.sendall(bytes.fromhex(sys.argv[2]))
        assert late.recv(4)
    until = time.monotonic() + 20
    while mark.stat().st_mtime_ns == starved:
        assert time.monotonic() < until, "the mark is never written again"
        node.append(b"x", timeout=20)
    print("served", node.epoch)
"""


NO_SEGMENT = """
import contextlib, os, resource, sys
from fastquorum import sync, errors
quick = dict(election_timeout_us=150_000, fetch_timeout_us=400_000, mark_interval_us=20_000)
with sync.open(sys.argv[1], node_id=1, segment_bytes=1 << 20, preallocate_bytes=1 << 18, **quick) as node:
    node.wait_ready(20)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 5, hard))
    held = []
    with contextlib.suppress(OSError):
        while True:
            held.append(os.dup(0))
    try:
        for _ in range(300):
            node.append(bytes(10_000), timeout=20)
    except errors.NotLeader as refused:
        assert "raise its limit" in str(refused), refused
    else:
        raise SystemExit("there were descriptors left")
    for fd in held:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    while True:
        with contextlib.suppress(errors.NotLeader):
            node.wait_ready(20)
            node.append(b"again", timeout=20)
            break
    print("goes on")
"""


def test_without_a_descriptor_for_a_segment_it_gives_up_the_lead_and_goes_on_when_there_is_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_SEGMENT, str(tmp_path / "data")],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
        check=False,
    )
    assert done.stdout == "goes on\n", done.stderr


def test_without_descriptors_it_pauses_accepting_and_goes_on_committing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EMFILE, str(tmp_path / "data"), api_versions_frame().hex()],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
        check=False,
    )
    assert done.stdout == "served 1\n", done.stderr
