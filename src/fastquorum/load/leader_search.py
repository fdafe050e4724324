"""Who leads, asked of any node by Kafka's Metadata request. Source: the Kafka protocol guide."""

import socket
import struct
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.errors import NotReady, PeerProtocolError
from fastquorum.types import LISTENER_NAME, Endpoint, Epoch, NodeId
from fastquorum.wire import decode_response, encode_request, request_header
from fastquorum.wire.metadata import MetadataRequest, MetadataResponse

CLIENT_ID: Final = "fastquorum-load"
METADATA_VERSION: Final = 12
ANSWER_S: Final = 1.0
ANSWER_BYTES_MAX: Final = 1 << 20
LOOK_AGAIN_S: Final = 0.02


class Found(NamedTuple):
    """A leader, as some node told, and what it calls the log."""

    node_id: NodeId
    epoch: Epoch
    endpoint: Endpoint
    topic: str


def find_leader(bootstrap: Sequence[Endpoint], timeout_s: float) -> Found:
    """Ask one after the other, each once at least, until somebody knows. NotReady."""
    deadline = time.monotonic() + timeout_s
    while True:
        reasons = []
        for endpoint in bootstrap:
            where = f"{endpoint.host}:{endpoint.port}"
            try:
                found = _ask(endpoint)
            except OSError as error:
                reasons.append(f"{where}: {error.strerror or error}")
                continue
            if found is not None:
                return found
            reasons.append(f"{where} knows no leader")
        if time.monotonic() > deadline:
            raise NotReady("; ".join(reasons))
        time.sleep(LOOK_AGAIN_S)


def _ask(endpoint: Endpoint) -> Found | None:
    request = MetadataRequest(topics=None)
    frame = encode_request(request_header(request, METADATA_VERSION, 1, CLIENT_ID), request)
    with socket.create_connection((endpoint.host, endpoint.port), ANSWER_S) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        (length,) = struct.unpack(">i", _exactly(connection, 4))
        if not 0 <= length <= ANSWER_BYTES_MAX:
            raise PeerProtocolError(f"{endpoint.host}:{endpoint.port} answers with {length} bytes: no Kafka protocol")
        _, response = decode_response(_exactly(connection, length), type(request).__wire__.api_key, METADATA_VERSION)
    assert isinstance(response, MetadataResponse)
    for topic in response.topics:
        for partition in topic.partitions:
            for node in response.brokers:
                if node.node_id == partition.leader_id and topic.name is not None:
                    at = Endpoint(LISTENER_NAME, node.host, node.port)
                    return Found(node.node_id, partition.leader_epoch, at, topic.name)
    return None


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError("it closed the connection")
        data += part
    return data
