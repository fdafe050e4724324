"""Observers that keep nothing: each a connection that fetches as an observer does and notes how far it has come.

usage: python -m bench.figures.observers HOST:PORT-OF-THE-LEADER CLUSTER-ID

Commands on stdin, a JSON object a line: {"do": "join", "count", "epoch", "offset"} lets go of those there are and has
so many new ones read from there on; {"do": "await", "offset"} is answered when all have come so far, with the bytes of
records that they were sent since they joined. The end of stdin ends it.
"""

import json
import os
import selectors
import socket
import struct
import sys
import uuid
from typing import Any, Final

from fastquorum.kernels import load
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Uuid
from fastquorum.wire import decode_response, encode_request, request_header
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse

FIRST_ID: Final = 1000
VERSION: Final = 17
WAIT_MS: Final = 500
BYTES_MAX: Final = 1 << 20
_RECEIVE_BYTES: Final = 1 << 20
_LENGTH: Final = struct.Struct(">i")
kernels = load("native")


class Observer:
    def __init__(self, leader: tuple[str, int], cluster_id: str, number: int, epoch: int, offset: int) -> None:
        self.offset = offset
        self.bytes = 0
        self.socket = socket.create_connection(leader)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._cluster_id, self._epoch, self._id = cluster_id, epoch, FIRST_ID + number
        self._directory_id = Uuid(uuid.uuid4().bytes)
        self._correlation_id = 0
        self._high_watermark = -1
        self._received = bytearray()
        self._fetch()

    def receive(self) -> None:
        """Read what is there; fetch on after each whole answer."""
        part = self.socket.recv(_RECEIVE_BYTES)
        if not part:
            raise ConnectionResetError(f"the leader hung up on observer {self._id}")
        received = self._received
        received += part
        while len(received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(received)[0]
            if len(received) < end:
                return
            self._answered(bytes(received[_LENGTH.size : end]))
            del received[:end]

    def _answered(self, frame: bytes) -> None:
        _, response = decode_response(frame, FetchRequest.__wire__.api_key, VERSION)
        assert isinstance(response, FetchResponse)
        assert response.error_code == 0, response.error_code
        partition = response.responses[0].partitions[0]
        assert partition.error_code == 0, partition.error_code
        self._high_watermark = partition.high_watermark
        if partition.records:
            self.bytes += len(partition.records)
            self.offset = kernels.batch_headers(partition.records, verify_crc=False)[-1].last_offset + 1
        self._fetch()

    def _fetch(self) -> None:
        topic = FetchRequest.FetchTopic
        wanted = topic.FetchPartition(
            current_leader_epoch=self._epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self._epoch,
            replica_directory_id=self._directory_id,
        )
        request = FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=FetchRequest.ReplicaState(replica_id=self._id),
            max_wait_ms=WAIT_MS,
            max_bytes=BYTES_MAX,
            topics=[topic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[wanted])],
        )
        self._correlation_id += 1
        frame = encode_request(request_header(request, VERSION, self._correlation_id, "observer"), request)
        self.socket.sendall(_LENGTH.pack(len(frame)) + frame)


class Crowd:
    """All of them, and whoever commands them."""

    def __init__(self, leader: str, cluster_id: str) -> None:
        host, _, port = leader.rpartition(":")
        self._leader, self._cluster_id = (host, int(port)), cluster_id
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._observers: list[Observer] = []
        self._awaited = -1
        """Where all are to come to, before an answer; -1: none is waited for."""

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    data = os.read(0, 1 << 16)
                    if not data:
                        return
                    self._carry_out(json.loads(data))  # one at a time: each is answered
                elif key.data in self._observers:
                    key.data.receive()
            if self._awaited >= 0 and all(each.offset >= self._awaited for each in self._observers):
                self._awaited = -1
                _say({"bytes": sum(each.bytes for each in self._observers)})

    def _carry_out(self, command: dict[str, Any]) -> None:
        if command["do"] == "await":
            self._awaited = command["offset"]
            return
        for each in self._observers:
            self._selector.unregister(each.socket)
            each.socket.close()
        self._observers = [
            Observer(self._leader, self._cluster_id, number, command["epoch"], command["offset"])
            for number in range(command["count"])
        ]
        for each in self._observers:
            self._selector.register(each.socket, selectors.EVENT_READ, each)
        _say({})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    Crowd(*sys.argv[1:]).run()
