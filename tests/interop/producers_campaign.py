"""Idempotent producers of librdkafka, five requests under way each, while segments end every 64 KiB and, if asked for,
leaders die: nobody is refused for good, and each record is there once, in its producer's order.

The short form is a test, the long one `python -m tests.interop.campaign producers`; both run `produce_over_segments`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import confluent_kafka

from .clients import CLIENT_S, Read, read_by_us
from .nodes import TOPIC, Nodes, running

PRODUCERS: Final = 6
IN_FLIGHT: Final = 5
SEGMENT_BYTES: Final = 65_536
BATCH_BYTES: Final = 4_000
"""Size of a request: a segment ends after some sixteen."""
WAITING_MAX: Final = 500
PAD: Final = b"." * 300
ENVIRONMENT: Final = {
    "FASTQUORUM_METADATA_LOG_SEGMENT_BYTES": str(SEGMENT_BYTES),
    "FASTQUORUM_LOG_PREALLOCATE_BYTES": str(SEGMENT_BYTES),
}

Progress = Callable[[str], None]


def value_of(producer: int, number: int) -> bytes:
    return b"%d %d %s" % (producer, number, PAD)


@dataclass
class Produced:
    """What became of it as far as the producers were told."""

    records: int
    """Records of each producer."""
    offsets: dict[tuple[int, int], int] = field(default_factory=dict)
    """By producer and number."""
    errors: list[str] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)
    segments: int = 0
    seconds: float = 0.0


class _Writer(threading.Thread):
    """One producer."""

    def __init__(self, number: int, bootstrap: str, produced: Produced) -> None:
        super().__init__(name=f"producer {number}")
        self.given = 0
        self._number = number
        self._produced = produced
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "max.in.flight": IN_FLIGHT,
                "batch.size": BATCH_BYTES,
                "linger.ms": 0,
                "queue.buffering.max.messages": WAITING_MAX,
                "error_cb": self._erred,
                "log_level": 2,
            }
        )

    def run(self) -> None:
        for number in range(self._produced.records):
            while not self._produced.errors:
                try:
                    self._producer.produce(TOPIC, value_of(self._number, number), on_delivery=self._delivered(number))
                    break
                except BufferError:
                    self._producer.poll(0.1)
                except confluent_kafka.KafkaException as error:
                    self._produced.errors.append(f"producer {self._number}: {error}")
            self.given += 1
            self._producer.poll(0)
        left = self._producer.flush(CLIENT_S)
        if left:
            self._produced.errors.append(f"producer {self._number}: {left} not delivered")

    def _erred(self, error: confluent_kafka.KafkaError) -> None:
        if error.fatal():
            self._produced.errors.append(f"producer {self._number}: fatal: {error.str()}")

    def _delivered(self, number: int) -> Callable[[Any, Any], None]:
        def reported(error: Any, message: Any) -> None:
            if error is not None:
                self._produced.errors.append(f"producer {self._number}, record {number}: {error}")
            else:
                self._produced.offsets[self._number, number] = message.offset()

        return reported


def produce_over_segments(nodes: Nodes, records: int, kills: int = 0, progress: Progress = lambda _: None) -> Produced:
    """So many records by each producer at the same time, and so many leaders killed meanwhile."""
    began = time.monotonic()
    produced = Produced(records)
    writers = [_Writer(number, nodes.bootstrap, produced) for number in range(PRODUCERS)]
    for writer in writers:
        writer.start()
    for kill in range(kills):
        due = PRODUCERS * records * (kill + 1) // (kills + 1)
        while sum(writer.given for writer in writers) < due and not produced.errors:
            writers[0].join(0.05)
        before = nodes.describe()
        nodes.kill(before.leader_id)
        produced.killed.append(before.leader_id)
        after = nodes.wait_epoch(before.epoch)
        nodes.start(before.leader_id)
        nodes.wait_caught_up()
        progress(f"node {before.leader_id}, the leader, was killed; node {after.leader_id} leads epoch {after.epoch}")
    for writer in writers:
        writer.join()
    produced.seconds = time.monotonic() - began
    produced.segments = len(list(nodes.data(nodes.describe().leader_id).rglob("*.log")))
    return produced


def problems(produced: Produced, read: Read) -> list[str]:
    """Return the faults in what was read; empty if there is none."""
    wrong = produced.errors[:5]
    for producer in range(PRODUCERS):
        prefix = b"%d " % producer
        mine = [(offset, value) for offset, value in read if value.startswith(prefix) and value.endswith(PAD)]
        expected = [value_of(producer, number) for number in range(produced.records)]
        if [value for _, value in mine] != expected:
            there = {value for _, value in mine}
            lost = len(set(expected) - there)
            wrong.append(f"producer {producer}: {lost} lost, {len(mine) - len(there)} doubled, or out of order")
            continue
        reported = [produced.offsets.get((producer, number), -1) for number in range(produced.records)]
        if reported != [offset for offset, _ in mine]:
            wrong.append(f"producer {producer} was told of offsets what is not so")
    return wrong


def campaign(root: Path, records: int, kills: int, progress: Progress) -> dict[str, Any]:
    with running(root, environment=ENVIRONMENT) as nodes:
        produced = produce_over_segments(nodes, records, kills, progress)
        progress(f"all is written after {produced.seconds:.1f} s, over {produced.segments} segments")
        nodes.wait_caught_up()
        found = problems(produced, read_by_us(nodes.bootstrap))
    return {
        "producers": PRODUCERS,
        "in_flight": IN_FLIGHT,
        "records_each": records,
        "segments": produced.segments,
        "killed": produced.killed,
        "seconds": round(produced.seconds, 1),
        "problems": found,
    }
