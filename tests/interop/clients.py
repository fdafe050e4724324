"""Other people's clients, each made to write, or to read the whole of, a quorum's user log: librdkafka (confluent-kafka
and kcat), kafka-python, aiokafka, Apache Kafka's console tools, and our own command."""

import asyncio
import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import aiokafka
import confluent_kafka

from .directories import fastquorum
from .kafka import Kafka
from .nodes import TOPIC

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it loads its schemas in a way that Python 3.11 deprecates
    import kafka as kafka_python

CLIENT_S: Final = 120.0
"""A client that takes longer hangs."""

Read = list[tuple[int, bytes]]
"""Offsets and values, in the order in which they came."""


class ClientFailed(Exception):
    """What a client said when it gave up."""


# --- reading: everything below end_offset -----------------------------------------------------------------------------


def read_by_confluent(bootstrap: str, end_offset: int) -> Read:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, confluent_kafka.OFFSET_BEGINNING)])
    found: Read = []
    try:
        while True:
            message = consumer.poll(CLIENT_S)
            if message is None:
                raise ClientFailed(f"nothing within {CLIENT_S:.0f} s")
            error = message.error()
            if error is None:
                found.append((int(message.offset() or 0), bytes(message.value() or b"")))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                assert int(message.offset() or 0) >= end_offset
                return found
            else:
                raise ClientFailed(str(error))
    finally:
        consumer.close()


def read_by_kafka_python(bootstrap: str, end_offset: int) -> Read:
    consumer = kafka_python.KafkaConsumer(bootstrap_servers=bootstrap.split(","), group_id=None)
    partition = kafka_python.TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found: Read = []
    try:
        while consumer.position(partition) < end_offset:
            for records in consumer.poll(timeout_ms=1_000).values():
                found += [(record.offset, record.value) for record in records]
    finally:
        consumer.close()
    return found


def read_by_aiokafka(bootstrap: str, end_offset: int) -> Read:
    async def read() -> Read:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
        partition = aiokafka.TopicPartition(TOPIC, 0)
        await consumer.start()
        found: Read = []
        try:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            while await consumer.position(partition) < end_offset:
                for records in (await consumer.getmany(timeout_ms=1_000)).values():
                    found += [(record.offset, record.value) for record in records]
        finally:
            await consumer.stop()
        return found

    return asyncio.run(asyncio.wait_for(read(), CLIENT_S))


def read_by_kcat(bootstrap: str, end_offset: int) -> Read:
    where = ("-b", bootstrap, "-t", TOPIC, "-p", "0", "-o", "beginning")
    return _lines(run(["kcat", "-C", *where, "-e", "-q", "-f", "%o\t%s\n"]), b"")


def read_by_console(kafka: Kafka, bootstrap: str, count: int) -> Read:
    """kafka-console-consumer, which is told how many records there are."""
    printed = kafka.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", TOPIC, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", str(count), "--timeout-ms", "60000", "--formatter-property", "print.offset=true"),
    )
    return _lines(printed.encode(), b"Offset:")


def read_by_us(bootstrap: str, end_offset: int = -1) -> Read:
    return _lines(fastquorum("read", "--bootstrap", bootstrap).encode(), b"")


def _lines(printed: bytes, before: bytes) -> Read:
    found: Read = []
    for line in printed.splitlines():
        offset, _, value = line.removeprefix(before).partition(b"\t")
        found.append((int(offset), value))
    return found


READERS: Final[dict[str, Callable[[str, int], Read]]] = {
    "fastquorum read": read_by_us,
    "confluent-kafka": read_by_confluent,
    "kafka-python": read_by_kafka_python,
    "aiokafka": read_by_aiokafka,
    "kcat": read_by_kcat,
}


def read_all(kafka: Kafka, bootstrap: str, end_offset: int, count: int) -> Iterator[tuple[str, Callable[[], Read]]]:
    """Every reader, by name. There are `count` records: kafka-console-consumer has to be told."""
    for name, read in READERS.items():
        yield name, lambda read=read: read(bootstrap, end_offset)  # type: ignore[misc]
    yield "kafka-console-consumer", lambda: read_by_console(kafka, bootstrap, count)


def read_by_all(kafka: Kafka, bootstrap: str, end_offset: int, count: int) -> dict[str, Read]:
    """What each reader finds."""
    return {name: read() for name, read in read_all(kafka, bootstrap, end_offset, count)}


# --- writing ----------------------------------------------------------------------------------------------------------


def write_by_confluent(bootstrap: str, values: Iterable[bytes], **settings: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **settings})
    failures: list[Any] = []
    for value in values:
        producer.produce(TOPIC, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    left = producer.flush(CLIENT_S)
    if left or failures:
        raise ClientFailed(f"{left} not delivered: {failures[:3]}")


def write_by_kafka_python(bootstrap: str, values: Iterable[bytes], **settings: Any) -> None:
    producer = kafka_python.KafkaProducer(bootstrap_servers=bootstrap.split(","), acks="all", **settings)
    try:
        for sent in [producer.send(TOPIC, value) for value in values]:
            sent.get(CLIENT_S)
    finally:
        producer.close()


def write_by_aiokafka(bootstrap: str, values: Iterable[bytes], **settings: Any) -> None:
    async def write() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, **settings)
        await producer.start()
        try:
            for sent in [await producer.send(TOPIC, value) for value in values]:
                await sent
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(write(), CLIENT_S))


def kcat_command(bootstrap: str, *settings: str) -> list[str]:
    """An idempotent kcat that takes a record a line."""
    words = [word for setting in ("enable.idempotence=true", "acks=all", *settings) for word in ("-X", setting)]
    return ["kcat", "-P", "-b", bootstrap, "-t", TOPIC, "-p", "0", *words]


def write_by_kcat(bootstrap: str, values: Iterable[bytes], *settings: str) -> None:
    run(kcat_command(bootstrap, *settings), b"".join(value + b"\n" for value in values))


def write_by_console(kafka: Kafka, bootstrap: str, values: Iterable[bytes]) -> None:
    """kafka-console-producer."""
    kafka.run(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", bootstrap, "--topic", TOPIC),
        stdin=b"".join(value + b"\n" for value in values).decode(),
    )


def run(command: Sequence[str], stdin: bytes = b"") -> bytes:
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=CLIENT_S, check=False)
    if done.returncode != 0:
        raise ClientFailed(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout
