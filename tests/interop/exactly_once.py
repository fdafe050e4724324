"""Idempotent clients write while the leader is killed twice: every record is there once, in order, for every reader.

kcat and confluent-kafka are fed in turn by one thread, so that both have records under way whenever a leader dies. The
short form is a test, the long one `python -m tests.interop.campaign`; both run `write_while_leaders_die`.
"""

import contextlib
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import confluent_kafka

from .clients import CLIENT_S, ClientFailed, Read, kcat_command
from .nodes import TOPIC, Nodes

KILLS: Final = 2
CHUNK: Final = 50
"""Records given to one client before it is the other's turn."""
WAITING_MAX: Final = 1_000
"""Records a client keeps for itself: then it takes no more."""
PAD: Final = b"." * 40

Progress = Callable[[str], None]


def value_of(producer: str, number: int) -> bytes:
    return b"%s %d %s" % (producer.encode(), number, PAD)


@dataclass
class Written:
    """What was written, and what became of it as far as the writers were told."""

    records: dict[str, int]
    """How many, by producer."""
    offsets: dict[int, int] = field(default_factory=dict)
    """Offsets of confluent-kafka's records, as reported to it."""
    epochs: list[int] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)
    seconds: float = 0.0
    under_way: list[int] = field(default_factory=list)
    """How many records confluent-kafka had not been answered at each kill."""


class Confluent:
    """One confluent-kafka producer."""

    name: Final = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self.offsets: dict[int, int] = {}
        self.given = 0
        self._failures: list[str] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "queue.buffering.max.messages": WAITING_MAX,
                "log_level": 2,  # that a leader is gone is no news here
            }
        )

    @property
    def under_way(self) -> int:
        return self.given - len(self.offsets)

    def give(self, first: int, end: int) -> None:
        for number in range(first, end):
            while True:
                try:
                    self._producer.produce(TOPIC, value_of(self.name, number), on_delivery=self._delivered(number))
                    break
                except BufferError:
                    self._producer.poll(1.0)
            self.given += 1
        self._producer.poll(0)

    def finish(self) -> None:
        left = self._producer.flush(CLIENT_S)
        if left or self._failures:
            raise ClientFailed(f"{self.name}: {left} not delivered, {self._failures[:3]}")

    def _delivered(self, number: int) -> Callable[[Any, Any], None]:
        def reported(error: Any, message: Any) -> None:
            if error is not None:
                self._failures.append(f"{number}: {error}")
            else:
                assert number not in self.offsets
                self.offsets[number] = message.offset()

        return reported


class Kcat:
    """One kcat, fed by its stdin: which blocks when it has enough."""

    name: Final = "kcat"

    def __init__(self, bootstrap: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `finish` or with the process
        command = kcat_command(bootstrap, f"queue.buffering.max.messages={WAITING_MAX}")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=self._errors)

    def give(self, first: int, end: int) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.writelines(value_of(self.name, number) + b"\n" for number in range(first, end))
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise ClientFailed(self._printed()) from error

    def finish(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.wait(CLIENT_S) != 0:
            raise ClientFailed(self._printed())
        self._errors.close()

    def close(self) -> None:
        """It does not outlive a failure."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # what it was given and did not take
            self._process.stdin.close()
        self._errors.close()

    def _printed(self) -> str:
        self._process.wait(CLIENT_S)
        self._errors.seek(0)
        return f"{self.name} ended with {self._process.returncode}: {self._errors.read().decode(errors='replace')}"


def write_while_leaders_die(nodes: Nodes, records: int, progress: Progress = lambda _: None) -> Written:
    """So many records by each of both. A leader dies in the middle of them, and is back before the next one dies."""
    began = time.monotonic()
    confluent, kcat = Confluent(nodes.bootstrap), Kcat(nodes.bootstrap)
    written = Written({confluent.name: records, kcat.name: records}, confluent.offsets)
    given = 0

    def give(end: int) -> None:
        nonlocal given
        while given < end:
            chunk_end = min(given + CHUNK, end)
            confluent.give(given, chunk_end)
            kcat.give(given, chunk_end)
            given = chunk_end

    try:
        for number in range(KILLS):
            give(records * (2 * number + 1) // (2 * KILLS + 1))
            before = nodes.describe()
            confluent.give(given, given + 1)  # at least this one has no answer yet
            kcat.give(given, given + 1)
            given += 1
            nodes.kill(before.leader_id)
            written.under_way.append(confluent.under_way)
            progress(f"{given:,} of {records:,} records given to each; node {before.leader_id}, the leader, is killed")
            give(records * (2 * number + 2) // (2 * KILLS + 1))
            after = nodes.wait_epoch(before.epoch)
            written.epochs += [before.epoch] if not written.epochs else []
            written.epochs.append(after.epoch)
            written.killed.append(before.leader_id)
            nodes.start(before.leader_id)
            progress(f"{given:,} of {records:,}; node {after.leader_id} leads epoch {after.epoch}")
            nodes.wait_caught_up()
        give(records)
        confluent.finish()
        kcat.finish()
    finally:
        kcat.close()
    written.seconds = time.monotonic() - began
    return written


def problems(written: Written, found: dict[str, Read], first_offset: int) -> list[str]:
    """Return the faults in what the readers found from an offset on; empty if there is none."""
    wrong: list[str] = []
    by_reader = iter(found.items())
    first_reader, read = next(by_reader)
    wrong += [f"{name} reads something else than {first_reader}" for name, other in by_reader if other != read]
    offsets = [offset for offset, _ in read]
    if offsets != sorted(set(offsets)):
        wrong.append(f"{first_reader}: offsets do not ascend")
    records = [(offset, value) for offset, value in read if offset >= first_offset]
    for producer, count in written.records.items():
        name = producer.encode() + b" "
        mine = [(offset, value) for offset, value in records if value.startswith(name)]
        expected = [value_of(producer, number) for number in range(count)]
        if [value for _, value in mine] != expected:
            counts = Counter(value for _, value in mine)
            lost = sum(value not in counts for value in expected)
            doubled = sum(times > 1 for times in counts.values())
            wrong.append(f"{producer}: {lost} lost, {doubled} doubled, {len(mine)} of {count} there, or out of order")
    if len(records) != sum(written.records.values()):
        wrong.append(f"{len(records)} records, {sum(written.records.values())} were written")
    reported = {offset: value_of(Confluent.name, number) for number, offset in written.offsets.items()}
    there = dict(records)
    moved = [offset for offset, value in reported.items() if there.get(offset) != value]
    if moved or len(reported) != written.records[Confluent.name]:
        wrong.append(f"{Confluent.name} was told of offsets {moved[:5]} what is not so")
    return wrong


def as_json(written: Written) -> dict[str, Any]:
    report = asdict(written)
    del report["offsets"]
    report["seconds"] = round(written.seconds, 1)
    return report
