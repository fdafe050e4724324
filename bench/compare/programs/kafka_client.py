"""Any node that speaks Kafka's protocol, loaded by librdkafka's producer: topic `quorum`, partition 0, acks=all.

usage: python -m bench.compare.programs.kafka_client HOST:PORT

A batch is as many records as one Produce may carry.
"""

import sys
from collections.abc import Callable
from typing import Any

from bench.compare.programs import loops

TOPIC, PARTITION = "quorum", 0


def producer(bootstrap: str) -> Any:
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 0,
            "max.in.flight.requests.per.connection": 5,
            "batch.num.messages": 1000,
            "queue.buffering.max.messages": 1_000_000,
            "socket.nagle.disable": True,
            "message.timeout.ms": 20_000,
        }
    )


def main(bootstrap: str) -> None:
    running: Any = producer(bootstrap)

    def submit(values: list[bytes], done: Callable[[object], None]) -> None:
        for value in values[1:]:
            running.produce(TOPIC, value, partition=PARTITION)
        running.produce(TOPIC, values[0], partition=PARTITION, on_delivery=lambda error, message: done(error))

    loops.serve(lambda: True, lambda command: loops.run_with_callbacks(command, submit, running.poll))


if __name__ == "__main__":
    main(*sys.argv[1:])
