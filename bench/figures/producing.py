"""A raw Kafka producer: Produce requests with acks=all on one connection, one batch of one record each.

usage: python -m bench.figures.producing HOST:PORT

Commands on stdin, a JSON object a line: `bench.compare.workload`'s (one request at a time, whatever is in flight), and
{"do": "record", "seconds"}, which tells when each request was sent and answered (monotonic clock, nanoseconds).
"""

import json
import socket
import struct
import sys
import time
from typing import Any, Final

from bench.compare.programs import loops
from bench.compare.programs.kafka_client import PARTITION, TOPIC
from fastquorum.kernels import load
from fastquorum.wire import ApiKey, decode_response, encode_request, request_header
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse

VERSION: Final = 9
WAIT_MS: Final = 20_000
_LENGTH: Final = struct.Struct(">i")


class Producer:
    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._kernels = load("native")
        self._number = 0

    def append(self, values: list[bytes]) -> int:
        """Its offset, once it is answered. ValueError with the code of an answer that is an error."""
        batch = self._kernels.encode_values(values, base_offset=0, leader_epoch=0, timestamp_ms=1_000)
        topic = ProduceRequest.TopicProduceData
        partition = topic.PartitionProduceData(index=PARTITION, records=batch)
        body = ProduceRequest(acks=-1, timeout_ms=WAIT_MS, topic_data=[topic(name=TOPIC, partition_data=[partition])])
        self._number += 1
        frame = encode_request(request_header(body, VERSION, self._number, "producing"), body)
        self._socket.sendall(_LENGTH.pack(len(frame)) + frame)
        number, found = decode_response(self._answer(), ApiKey.PRODUCE, VERSION)
        assert isinstance(found, ProduceResponse)
        assert number == self._number
        (response,) = found.responses[0].partition_responses
        if response.error_code:
            raise ValueError(f"a Produce is answered with error {response.error_code}")
        return response.base_offset

    def _answer(self) -> bytes:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError("the leader hung up")
            data += part
        return data

    def record(self, seconds: float) -> dict[str, Any]:
        """One after the other for so long."""
        done: list[tuple[int, int]] = []
        end = time.monotonic_ns() + int(seconds * 1e9)
        failed = ""
        while (sent := time.monotonic_ns()) < end:
            try:
                self.append([b"x" * 100])
            except ValueError as error:
                failed = str(error)
                break
            done.append((sent, time.monotonic_ns()))
        return {"done": done, "error": failed}


def main(endpoint: str) -> None:
    producer = Producer(endpoint)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "record":
            answer = producer.record(command["seconds"])
        else:
            answer = loops.run_blocking(command, producer.append, producer.append)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
