"""A Produce request with one small record, and its answer: what both sides' codecs take of a CPU, against librdkafka.

librdkafka offers its codec to nobody, so its own rate is taken whole: its producer sends to its own mock broker, both
in C, in this process. What it takes includes queues, threads and loopback sockets; ours is codec and checksum alone:
header and body encoded and decoded in both directions, the record's batch encoded, checked and decoded.
"""

from collections.abc import Iterator
from time import process_time_ns
from typing import Any, Final

from bench import peers
from bench.cases.setting import Setting
from bench.measure import MICROSECONDS, Case, Contender, Role
from fastquorum.kernels import load
from fastquorum.wire import ApiKey, frames_of, request_header
from fastquorum.wire.messages.produce import ProduceRequest, ProduceResponse

TOPIC: Final = "quorum"
VALUE: Final = b"v" * 100
VERSION: Final = 10
"""What librdkafka's producer and its mock broker agree on."""
IN_FLIGHT: Final = 1_000


def cases(setting: Setting) -> Iterator[Case]:
    contenders = [_ours("native", Role.NATIVE), _ours("pure", Role.PURE)]
    if (theirs := _librdkafka()) is not None:
        contenders.append(theirs)
    yield Case("Produce and its answer", "one record of 100 B", MICROSECONDS, contenders)


def _ours(name: Any, role: Role) -> Contender:
    kernels = load(name)
    frames = frames_of(kernels)
    partition = ProduceResponse.TopicProduceResponse.PartitionProduceResponse(base_offset=7)
    answer = ProduceResponse(
        responses=[ProduceResponse.TopicProduceResponse(name=TOPIC, partition_responses=[partition])]
    )

    def exchange() -> list[bytes]:
        batch = kernels.encode_values([VALUE], base_offset=0, leader_epoch=0, timestamp_ms=1_700_000_000_000)
        data = ProduceRequest.TopicProduceData.PartitionProduceData(records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])]
        )
        frame = frames.encode_request(request_header(request, VERSION, 1, "rdkafka"), request)
        header, read = frames.decode_request(frame)
        values = kernels.decode_values(read.topic_data[0].partition_data[0].records)  # type: ignore[attr-defined]
        answered = frames.encode_response(header.correlation_id, ApiKey.PRODUCE, VERSION, answer)
        frames.decode_response(answered, ApiKey.PRODUCE, VERSION)
        return list(values)

    def run(repeat: int) -> float:
        began = process_time_ns()
        for _ in range(repeat):
            exchange()
        return (process_time_ns() - began) / repeat

    return Contender(name, role, run, exchange)


def _librdkafka() -> Contender | None:
    library = peers.module("confluent_kafka")
    if library is None:
        return None
    producer = library.Producer(
        {
            "bootstrap.servers": "mock",
            "test.mock.num.brokers": 1,
            "acks": "all",
            "linger.ms": 0,
            "batch.num.messages": 1,
        }
    )

    def send(count: int) -> list[bytes]:
        """Each in a request of its own, acknowledged when this returns."""
        arrived: list[bytes] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                raise AssertionError(f"librdkafka's mock broker refuses: {error}")
            arrived.append(message.value())

        for number in range(count):
            producer.produce(TOPIC, VALUE, on_delivery=delivered)
            while number - len(arrived) >= IN_FLIGHT:
                producer.poll(1)
        producer.flush()
        return arrived

    def run(repeat: int) -> float:
        began = process_time_ns()
        send(repeat)
        return (process_time_ns() - began) / repeat

    return Contender("librdkafka", Role.PEER, run, lambda: send(1))
