"""A Kafka client in a process of its own: produces one batch after the other until its standard input ends, and prints
for each when it was sent and answered (CLOCK_MONOTONIC) and its offset. Arguments: port, producer id (-1: none)."""

import json
import socket
import sys
import threading
import time

from fastquorum.kernels import load
from fastquorum.storage.format import USER_TOPIC_NAME
from fastquorum.wire import ApiKey, decode_response, encode_request, request_header
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse

VERSION = 9
WAIT_MS = 20_000
BEGUN = 20
"""Batches until it is in its stride: what comes first from a producer or on a connection is for the node's Python."""
kernels = load("native")


def exchange(sock: socket.socket, frame: bytes) -> bytes:
    sock.sendall(len(frame).to_bytes(4, "big") + frame)
    with sock.makefile("rb", buffering=0) as stream:
        head = stream.read(4)
        answer = b""
        while len(answer) < int.from_bytes(head, "big"):
            answer += stream.read(int.from_bytes(head, "big") - len(answer))
    return answer


def produce(sock: socket.socket, number: int, producer_id: int) -> int:
    """The batch's offset."""
    stamp = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": number} if producer_id >= 0 else {}
    records = kernels.encode_values([b"%d" % number], base_offset=0, leader_epoch=0, timestamp_ms=1_000, **stamp)
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=0, records=records)
    data = [topic(name=USER_TOPIC_NAME, partition_data=[partition])]
    body = ProduceRequest(acks=-1, timeout_ms=WAIT_MS, topic_data=data)
    answer = exchange(sock, encode_request(request_header(body, VERSION, number, "client"), body))
    _, found = decode_response(answer, ApiKey.PRODUCE, VERSION)
    assert isinstance(found, ProduceResponse)
    (partition,) = found.responses[0].partition_responses
    assert partition.error_code == 0, partition
    return partition.base_offset


def main() -> None:
    port, producer_id = map(int, sys.argv[1:])
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    done = []
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not over.is_set():
            sent = time.monotonic()
            offset = produce(sock, len(done), producer_id)
            done.append((sent, time.monotonic(), offset))
            if len(done) == BEGUN:
                print("begun", flush=True)
    print(json.dumps(done), flush=True)


main()
