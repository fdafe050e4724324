"""Who leads, asked of any node by Kafka's Metadata request. Source: the Kafka protocol guide."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

from fastquorum.client.connection import Deadline, NotSent, connect
from fastquorum.errnos import reason
from fastquorum.errors import NotReady, PeerProtocolError, UsageError
from fastquorum.types import LISTENER_NAME, Endpoint, Epoch, NodeId
from fastquorum.wire import ErrorCode, decode_response, encode_request, request_header
from fastquorum.wire.metadata import MetadataRequest, MetadataResponse

CLIENT_ID: Final = "fastquorum-load"
METADATA_VERSION: Final = 12
READY_S: Final = 30.0
ANSWER_S: Final = 1.0
WATCH_S: Final = 0.1
ANSWER_BYTES_MAX: Final = 1 << 20
LOOK_AGAIN_S: Final = 0.02
_NO_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


class Found(NamedTuple):
    """The leader of partition 0, as some node told."""

    node_id: NodeId
    epoch: Epoch
    endpoint: Endpoint


def find_leader(bootstrap: Sequence[Endpoint], topic: str, timeout_s: float) -> Found:
    """Ask one after the other, each once at least, until somebody knows. NotReady; UsageError: there is no such topic,
    and nothing is written into another."""
    deadline = time.monotonic() + timeout_s
    while True:
        reasons = []
        for endpoint in bootstrap:
            where = endpoint.address
            try:
                found = _ask(endpoint, topic)
            except NotSent as error:
                reasons.append(str(error))
                continue
            except OSError as error:
                reasons.append(f"{where}: {reason(error)}")
                continue
            if found is not None:
                return found
            reasons.append(f"{where} knows no leader")
        if time.monotonic() > deadline:
            raise NotReady("; ".join(reasons))
        time.sleep(LOOK_AGAIN_S)


class LeaderWatch:
    """Asks again and again, in a thread of its own, and tells of every new epoch's leader: for a client that keeps that
    to itself. A context manager."""

    def __init__(self, bootstrap: Sequence[Endpoint], topic: str, led_by: Callable[[Found], None]) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._led_by = led_by
        self._epoch: Epoch = -1
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="leader-watch", daemon=True)

    def __enter__(self) -> Self:
        """Once somebody leads. NotReady, UsageError."""
        self._tell(find_leader(self._bootstrap, self._topic, READY_S))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(WATCH_S):
            # While nobody leads, or nobody can be asked, there is nothing to tell: the client says what it costs.
            with contextlib.suppress(NotReady, PeerProtocolError, UsageError):
                self._tell(find_leader(self._bootstrap, self._topic, 0.0))

    def _tell(self, found: Found) -> None:
        if found.epoch > self._epoch:
            self._epoch = found.epoch
            self._led_by(found)


def _ask(endpoint: Endpoint, topic: str) -> Found | None:
    wanted = MetadataRequest.MetadataRequestTopic(name=topic)
    request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
    frame = encode_request(request_header(request, METADATA_VERSION, 1, CLIENT_ID), request)
    with connect(endpoint, Deadline(ANSWER_S)) as connection:
        connection.settimeout(ANSWER_S)
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        (length,) = struct.unpack(">i", _exactly(connection, 4))
        if not 0 <= length <= ANSWER_BYTES_MAX:
            raise PeerProtocolError(f"{endpoint.address} answers with {length} bytes: no Kafka protocol")
        _, response = decode_response(_exactly(connection, length), type(request).__wire__.api_key, METADATA_VERSION)
    assert isinstance(response, MetadataResponse)
    for told in response.topics:
        if told.error_code in _NO_TOPIC:
            where = endpoint.address
            raise UsageError(f"{where} has no topic {topic!r}", "--topic NAME is the log to load")
        for partition in told.partitions:
            for node in response.brokers:
                if partition.partition_index == 0 and node.node_id == partition.leader_id:
                    return Found(node.node_id, partition.leader_epoch, Endpoint(LISTENER_NAME, node.host, node.port))
    return None


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError("it closed the connection")
        data += part
    return data
