"""An idempotent Kafka client that keeps several Produce requests under way on one connection, as librdkafka does."""

import socket
from collections import deque
from collections.abc import Iterable
from typing import Final

from fastquorum.kernels import load
from fastquorum.storage.format import USER_TOPIC_NAME
from fastquorum.types import Endpoint
from fastquorum.wire import ApiKey, Message, decode_response, encode_request, request_header
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse
from fastquorum.wire.messages.producers import InitProducerIdRequest, InitProducerIdResponse

from .produce_frames import MINUTE_MS, PRODUCE_VERSION, Data

IN_FLIGHT: Final = 5
"""Requests under way at a time: as many batches as are remembered of a producer."""
WAIT_S: Final = 30.0
INIT_VERSION: Final = 4
kernels = load("native")
Answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse


def stamped(
    values: Iterable[bytes], producer_id: int, sequence: int, *, epoch: int = 0, timestamp_ms: int = 1_000
) -> bytes:
    """One batch of a producer."""
    return kernels.encode_values(
        list(values),
        base_offset=0,
        leader_epoch=0,
        timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


class PipeliningClient:
    """One connection to a node."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._socket = socket.create_connection((endpoint.host, endpoint.port), WAIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._number = 0

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> "PipeliningClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_id(self) -> int:
        """A producer id that the quorum gives out; asked for until there is a leader."""
        while True:
            self._send(InitProducerIdRequest(transactional_id=None), INIT_VERSION)
            answer = self._received(ApiKey.INIT_PRODUCER_ID, INIT_VERSION)
            assert isinstance(answer, InitProducerIdResponse)
            if answer.error_code == 0:
                return answer.producer_id

    def send(self, records: bytes) -> None:
        """Produce one batch; the answer comes later, in the order of the requests."""
        partition = Data.PartitionProduceData(index=0, records=records)
        data = Data(name=USER_TOPIC_NAME, partition_data=[partition])
        self._send(ProduceRequest(acks=-1, timeout_ms=MINUTE_MS, topic_data=[data]), PRODUCE_VERSION)

    def answer(self) -> Answer:
        """The next Produce's."""
        message = self._received(ApiKey.PRODUCE, PRODUCE_VERSION)
        assert isinstance(message, ProduceResponse)
        return message.responses[0].partition_responses[0]

    def produce(self, records: bytes) -> Answer:
        self.send(records)
        return self.answer()

    def pipeline(self, batches: Iterable[bytes]) -> list[Answer]:
        """Produce all, IN_FLIGHT of them under way at any moment; the answers."""
        answers: list[Answer] = []
        under_way: deque[None] = deque()
        for records in batches:
            if len(under_way) == IN_FLIGHT:
                under_way.pop()
                answers.append(self.answer())
            self.send(records)
            under_way.append(None)
        return [*answers, *(self.answer() for _ in under_way)]

    def _send(self, message: Message, version: int) -> None:
        self._number += 1
        frame = encode_request(request_header(message, version, self._number, "pipelining"), message)
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def _received(self, key: ApiKey, version: int) -> Message:
        size = int.from_bytes(self._stream.read(4), "big")
        return decode_response(self._stream.read(size), key, version)[1]
