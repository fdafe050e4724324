"""Drives a quorum, or a topic of any Kafka, with Kafka's C client (confluent-kafka, an extra). See `generating.Driver`.

As its users have it: acks=all, idempotent, no linger. librdkafka batches and retries by itself, through elections too,
so that what it reports as failed is final. Its callbacks run in a thread of their own, which waits for them.
"""

import importlib
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from fastquorum.errors import UsageError
from fastquorum.load.driving.payloads import Payload
from fastquorum.load.driving.tally import LoadTally
from fastquorum.types import Endpoint

_POLL_S: Final = 0.1


def load_client() -> Any:
    """The client's module. UsageError if it is not installed."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError as error:
        raise UsageError(
            "--driver kafka needs the package confluent-kafka, which is not installed",
            "pip install 'fastquorum[bench]'",
        ) from error


class KafkaDriver:
    """One idempotent producer."""

    def __init__(self, bootstrap: Sequence[Endpoint], topic: str, tally: LoadTally, timeout_ns: int) -> None:
        self._kafka = load_client()
        self._topic = topic
        self._tally = tally
        self.in_flight = 0
        self._fates: deque[int | str] = deque()
        """A latency, or an error's kind; from the callbacks' thread."""
        self._came = threading.Event()
        self._producer = self._kafka.Producer(
            {
                "bootstrap.servers": ",".join(each.address for each in bootstrap),
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                # What is in flight is bounded already: no bound in records, and the largest that there is in bytes.
                "queue.buffering.max.messages": 0,
                "queue.buffering.max.kbytes": 2**31 - 1,
                "delivery.timeout.ms": max(timeout_ns // 1_000_000, 1),
                "log_level": 3,
            }
        )
        self._is_over = False
        self._thread = threading.Thread(target=self._poll, name="kafka-callbacks", daemon=True)
        self._thread.start()

    def retarget(self, tally: LoadTally) -> None:
        """Tell this tally from now on. Nothing may be in flight."""
        assert not self.in_flight
        self._tally = tally

    def offer(self, appends: list[Payload], intended_ns: int) -> None:
        tally, produce, topic = self._tally, self._producer.produce, self._topic
        for each in appends:
            delivered = _Delivery(self._fates, self._came, intended_ns, len(each.values))
            keys: Sequence[bytes | None] = each.keys or (None,) * len(each.values)
            try:
                for key, value in zip(keys, each.bare_values, strict=True):
                    produce(topic, value, key, partition=0, on_delivery=delivered)
            except BufferError:
                # The part that was accepted is on its way: it is one append that failed, as not all of it was taken.
                delivered.forget()
                tally.errors["queue_full"] += 1
                continue
            tally.sent += 1
            self.in_flight += 1
        self._settle()

    def collect(self, until_ns: int) -> None:
        self._came.wait(max(until_ns - time.monotonic_ns(), 0) / 1e9)
        self._came.clear()
        self._settle()

    def abandon(self, kind: str) -> None:
        self._settle()
        if self.in_flight:
            self._tally.errors[kind] += self.in_flight
            self.in_flight = 0
            self._fates = deque()  # the old one is written to by those that were given up
            self._producer.purge()

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._thread.join()

    def _settle(self) -> None:
        fates, tally = self._fates, self._tally
        while fates:
            fate = fates.popleft()
            self.in_flight -= 1
            if isinstance(fate, int):
                tally.latencies.append(fate)
            else:
                tally.errors[fate] += 1

    def _poll(self) -> None:
        while not self._is_over:
            self._producer.poll(_POLL_S)


class _Delivery:
    """Counts an append's records home. In the callbacks' thread."""

    __slots__ = ("_came", "_fates", "_intended_ns", "_kind", "_left")

    def __init__(self, fates: deque[int | str], came: threading.Event, intended_ns: int, records: int) -> None:
        self._fates = fates
        self._came = came
        self._intended_ns = intended_ns
        self._left = records
        self._kind = ""

    def forget(self) -> None:
        """Forget an append that is not waited for any more."""
        self._left = -1

    def __call__(self, error: Any, message: object) -> None:
        self._left -= 1
        if error is not None:
            self._kind = str(error.name()).strip("_").lower()
        if self._left == 0:
            self._fates.append(self._kind or time.monotonic_ns() - self._intended_ns)
            self._came.set()
