"""Crowds of hostile connections of one kind after the other, against the leader of three real nodes.

Each crowd is there for some seconds. Meanwhile a client appends, the leader's memory is looked at, and in the end the
same node must lead the same epoch: whatever a crowd makes a node keep or do has a bound, and the quorum goes first.
"""

import argparse
import os
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastquorum.errors import NotReady
from fastquorum.wire import Message, encode_request, request_header
from fastquorum.wire.fetch import FetchRequest
from fastquorum.wire.handshake import ApiVersionsRequest
from fastquorum.wire.list_offsets import ListOffsetsRequest
from fastquorum.wire.quorum import VoteRequest
from fastquorum.wire.quorum_admin import DescribeQuorumRequest

from .fuzz.nodes_time import MIB, complaints, resident_bytes
from .nodes import TOPIC, Nodes, running

Say = Callable[[str], None]
GROWTH_MIB_MAX: Final = 450
"""More memory of a node than before the first crowd: what may be kept for all (README), and what one turn takes."""
RECORD_BYTES: Final = 500_000
PIPELINED: Final = 200
"""Requests that one connection sends at once."""
TURN_S: Final = 0.1
DESCRIPTORS: Final = 8_192


class Kind(NamedTuple):
    """What each connection of a crowd does."""

    begins_with: bytes = b""
    trickles: bytes = b""
    """Sent a byte at a time, over and over."""
    reconnects: bool = False
    """Closed and made anew all the time."""
    reads: bool = False


def _frame(message: Message, version: int) -> bytes:
    frame = encode_request(request_header(message, version, 7, "hostile"), message)
    return len(frame).to_bytes(4, "big") + frame


def _fetch(*, offset: int, wait_ms: int, min_bytes: int) -> bytes:
    part = FetchRequest.FetchTopic.FetchPartition(fetch_offset=offset, partition_max_bytes=8 * MIB)
    topic = FetchRequest.FetchTopic(topic=TOPIC, partitions=[part])
    request = FetchRequest(replica_id=-1, max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=2**31 - 1, topics=[topic])
    return _frame(request, 11)


def _describe_quorum() -> bytes:
    topic = DescribeQuorumRequest.TopicData
    part = topic.PartitionData(partition_index=0)
    return _frame(DescribeQuorumRequest(topics=[topic(topic_name="__cluster_metadata", partitions=[part])]), 2)


def _list_offsets() -> bytes:
    topic = ListOffsetsRequest.ListOffsetsTopic
    part = topic.ListOffsetsPartition(partition_index=0, timestamp=1)
    return _frame(ListOffsetsRequest(replica_id=-1, topics=[topic(name=TOPIC, partitions=[part])]), 7)


def kinds() -> dict[str, Kind]:
    """By name."""
    wait_ms = 2**31 - 1
    waiting = _fetch(offset=0, wait_ms=wait_ms, min_bytes=2**31 - 1)
    end = _fetch(offset=1, wait_ms=wait_ms, min_bytes=2**31 - 1)
    whole = _fetch(offset=0, wait_ms=0, min_bytes=1)
    return {
        "silent": Kind(),
        "one byte": Kind(b"\0"),
        "a length and nothing": Kind((MIB).to_bytes(4, "big")),
        "much of a frame that is announced as huge": Kind((90 * MIB).to_bytes(4, "big") + bytes(MIB // 2)),
        "bytes that trickle": Kind((1_000).to_bytes(4, "big"), trickles=b"\0"),
        "lengths that no frame has": Kind(b"\x7f\xff\xff\xff", reconnects=True),
        "garbage": Kind(b"\0\0\0\x20" + bytes(range(200, 232)), reconnects=True),
        "an unknown API": Kind(b"\0\0\0\x08\x7f\xff\0\0\0\0\0\x07", reconnects=True),
        "connected and closed": Kind(reconnects=True),
        "requests whose answers nobody reads": Kind(whole * PIPELINED),
        "requests that wait for ever": Kind(waiting * PIPELINED),
        "requests behind one that waits": Kind(end + whole * PIPELINED),
        "questions about the quorum": Kind(_describe_quorum() * PIPELINED, reads=True),
        "offsets by time": Kind(_list_offsets() * PIPELINED, reads=True),
        "handshakes": Kind(_frame(ApiVersionsRequest(), 0) * PIPELINED, reads=True),
        "votes of another cluster": Kind(_frame(VoteRequest(cluster_id="another"), 1) * PIPELINED, reads=True),
    }


class Crowd:
    """So many connections of one kind to one port."""

    def __init__(self, port: int, kind: Kind, connections: int) -> None:
        self._port = port
        self._kind = kind
        self._sockets = [self._connected() for _ in range(connections)]

    def _connected(self) -> tuple[socket.socket, bytearray]:
        sock = socket.socket()
        sock.setblocking(False)
        with suppress(BlockingIOError):
            sock.connect(("127.0.0.1", self._port))
        return sock, bytearray(self._kind.begins_with)

    def turn(self) -> None:
        """A little of everything."""
        for number, (sock, unsent) in enumerate(self._sockets):
            try:
                if unsent:
                    del unsent[: sock.send(unsent)]
                elif self._kind.trickles:
                    sock.send(self._kind.trickles)
                if self._kind.reads and sock.recv(MIB) and not unsent:
                    unsent += self._kind.begins_with
            except BlockingIOError:
                continue
            except OSError:
                pass  # it was hung up on
            else:
                if not self._kind.reconnects:
                    continue
            sock.close()
            with suppress(OSError):  # nobody has a port left for it: the next turn
                self._sockets[number] = self._connected()

    def close(self) -> None:
        for sock, _ in self._sockets:
            sock.close()


@contextmanager
def many_descriptors() -> Iterator[None]:
    """For this process, and the nodes that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def withstand(nodes: Nodes, name: str, connections: int, seconds: float, growth_mib_max: float) -> dict[str, Any]:
    """One crowd at the leader; what came of it, and `problems`."""
    before = nodes.wait_caught_up()
    leader_id, pid = before.leader_id, nodes.pid(before.leader_id)
    at_first = most = resident_bytes(pid)
    worst_s, appended, unanswered = 0.0, 0, 0
    crowd = Crowd(nodes.ports[leader_id], kinds()[name], connections)
    with ExitStack() as stack:
        stack.callback(crowd.close)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            crowd.turn()
            began = time.monotonic()
            try:
                nodes.append(b"while they are there")
                appended += 1
            except NotReady:  # a client waits a moment only, and a thousand others have their turns: slow is no fault
                unanswered += 1
            worst_s = max(worst_s, time.monotonic() - began)
            most = max(most, resident_bytes(pid))
    after = nodes.wait_caught_up()
    problems = []
    if (after.leader_id, after.epoch) != (leader_id, before.epoch):
        problems.append(f"{name}: node {after.leader_id} leads epoch {after.epoch}, no more {leader_id} {before.epoch}")
    if most - at_first > growth_mib_max * MIB:
        problems.append(f"{name}: the leader grew by {(most - at_first) // MIB} MiB")
    problems += [f"{name}: node {each} says {line}" for each in nodes.ids for line in complaints(nodes.stderr(each))]
    return {
        "kind": name,
        "appended": appended,
        "unanswered": unanswered,
        "worst_append_ms": round(1000 * worst_s),
        "grew_mib": (most - at_first) // MIB,
        "problems": problems,
    }


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--connections", type=int, default=1000, metavar="N", help="of each kind at once (1000)")
    parser.add_argument("--seconds", type=float, default=8.0, metavar="S", help="for each kind (8)")
    parser.add_argument("--only", action="append", default=[], choices=list(kinds()), help="one kind")
    parser.add_argument("--growth-mib", type=float, default=GROWTH_MIB_MAX, metavar="MIB", help="at most (450)")


def campaign(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """Every kind after the other, at the same nodes."""
    found: list[dict[str, Any]] = []
    with many_descriptors(), tempfile.TemporaryDirectory() as scratch, running(Path(scratch)) as nodes:
        for _ in range(8):
            nodes.append(os.urandom(RECORD_BYTES))
        for name in options.only or kinds():
            done = withstand(nodes, name, options.connections, options.seconds, options.growth_mib)
            say(f"{name}: {done}")
            found.append(done)
    return {
        "connections": options.connections,
        "kinds": found,
        "problems": [p for each in found for p in each["problems"]],
    }
