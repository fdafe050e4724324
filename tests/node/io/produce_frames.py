"""Produce requests and responses, written by wire/, and the native path that serves them."""

from functools import cache
from typing import Any, Final

from fastquorum.node.lane.produce_answers import produce_answers
from fastquorum.node.network.requests import UNANSWERED_MAX
from fastquorum.types import Uuid
from fastquorum.wire import encode_request, encode_response, frames_of, request_header
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse

from .native_rig import kernels, native

TOPIC: Final = "things"
TOPIC_ID: Final = Uuid(bytes(range(16)))
BATCH_BYTES_MAX: Final = 1 << 16
PRODUCE_VERSION: Final = 9
MINUTE_MS: Final = 60_000
Data = ProduceRequest.TopicProduceData


@cache
def produce_api(topic: str = TOPIC, unanswered_max: int = UNANSWERED_MAX) -> Any:
    answers = produce_answers(frames_of(kernels), topic, TOPIC_ID)
    return native.ProduceApi(
        topic, bytes(TOPIC_ID), answers, batch_bytes_max=BATCH_BYTES_MAX, unanswered_max=unanswered_max
    )


def a_batch(*values: bytes) -> bytes:
    return kernels.encode_values(values or (b"x",), base_offset=0, leader_epoch=0, timestamp_ms=1_000)


def produce_request(
    records: bytes | None,
    *,
    version: int = PRODUCE_VERSION,
    number: int = 1,
    acks: int = -1,
    timeout_ms: int = MINUTE_MS,
    client_id: str | None = "tests",
    topic: str = TOPIC,
    topic_id: Uuid = TOPIC_ID,
    index: int = 0,
    transactional_id: str | None = None,
) -> bytes:
    partition = Data.PartitionProduceData(index=index, records=records)
    data = Data(name=topic, topic_id=topic_id, partition_data=[partition])
    body = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=[data])
    return encode_request(request_header(body, version, number, client_id), body)


def produce_response(
    version: int, number: int, error: int = 0, base_offset: int = -1, log_start_offset: int = -1
) -> bytes:
    """Return the response as the clients' APIs would have it encoded."""
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse(
        error_code=error, base_offset=base_offset, log_start_offset=log_start_offset
    )
    body = ProduceResponse(responses=[topic(name=TOPIC, topic_id=TOPIC_ID, partition_responses=[partition])])
    return encode_response(number, 0, version, body)
