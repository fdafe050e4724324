"""Produce responses to a batch that was taken, as the codec writes them, for whoever fills in the numbers that differ.

Source: the Kafka protocol guide (Produce).
"""

from typing import Final, NamedTuple

from fastquorum.types import Uuid
from fastquorum.wire import API, ApiKey, Frames
from fastquorum.wire.messages.produce import ProduceResponse

_LOG_START_VERSION_MIN: Final = 5
"""The first Produce whose response tells where the log starts (KIP-107)."""
NOWHERE: Final = -1


class ProduceAnswer(NamedTuple):
    """A response frame without its length; its correlation id comes first. The rest are positions, in bytes."""

    frame: bytes
    error_at: int
    base_offset_at: int
    log_start_offset_at: int


def produce_answers(frames: Frames, topic_name: str, topic_id: Uuid) -> dict[int, ProduceAnswer]:
    """By version, for partition 0 of this topic."""
    known = API[ApiKey.PRODUCE].versions
    return {version: _answer(frames, version, topic_name, topic_id) for version in range(known.first, known.last + 1)}


def _answer(frames: Frames, version: int, topic_name: str, topic_id: Uuid) -> ProduceAnswer:
    def encode(error_code: int = 0, base_offset: int = 0, log_start_offset: int = 0) -> bytes:
        topic = ProduceResponse.TopicProduceResponse
        partition = topic.PartitionProduceResponse(
            error_code=error_code, base_offset=base_offset, log_start_offset=log_start_offset
        )
        body = ProduceResponse(responses=[topic(name=topic_name, topic_id=topic_id, partition_responses=[partition])])
        return frames.encode_response(0, ApiKey.PRODUCE, version, body)

    has_start = version >= _LOG_START_VERSION_MIN
    return ProduceAnswer(
        encode(),
        _place(encode(), encode(error_code=-1), 2),
        _place(encode(), encode(base_offset=-1), 8),
        _place(encode(), encode(log_start_offset=-1), 8) if has_start else NOWHERE,
    )


def _place(zeros: bytes, ones: bytes, size_bytes: int) -> int:
    """Where the number stands that is 0 in one and -1 in the other."""
    at = next(at for at, (zero, one) in enumerate(zip(zeros, ones, strict=True)) if zero != one)
    assert ones[at : at + size_bytes] == b"\xff" * size_bytes
    assert ones[at + size_bytes :] == zeros[at + size_bytes :]
    return at
