"""Clients that go on whatever happens to a cluster, and remember what they were told: producers, consumer groups."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, cycle, islice
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from .brokers import QUIET, wait_for

BATCH_PARTITIONS: Final = 6
BATCH_RECORDS: Final = 10
"""For each of so many partitions, before the next batch, or in one transaction. librdkafka makes a request of each
partition, and a broker answers one after the other: more of them would only be slower."""
PACE_S: Final = 0.02
"""Between batches: the clients are to be there throughout, not to fill the machine."""
ASK_S: Final = 60.0
"""For one request of a client, with all its attempts."""
PATIENCE_MS: Final = 300_000

Partition = tuple[str, int]


class Client:
    """Something that goes on in a thread of its own until it is told to stop."""

    def __init__(self) -> None:
        self.done = 0
        """Records written or read so far."""
        self.problems: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def tell_to_stop(self) -> None:
        self._stopping.set()

    def join(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._go_on()
        except KafkaException as error:
            self.problems.append(f"{self}: {error}")

    def _go_on(self) -> None:
        raise NotImplementedError


class Writer(Client):
    """An idempotent producer with acks=all, over every partition in turn."""

    def __init__(self, bootstrap: str, name: str, partitions: Sequence[Partition]) -> None:
        super().__init__()
        self.acknowledged: list[bytes] = []
        self._name = name
        self._where = cycle(partitions)
        self._number = count()
        settings = {"enable.idempotence": True, "acks": "all", "message.timeout.ms": PATIENCE_MS, "linger.ms": 5}
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings, **QUIET, **self._more()})

    def __repr__(self) -> str:
        return f"producer {self._name}"

    def _more(self) -> dict[str, Any]:
        return {}

    def _go_on(self) -> None:
        while not self._stopping.wait(PACE_S):
            self._write_batch(self._on_delivered)

    def _write_batch(self, on_delivery: Callable[[KafkaError | None, Message], None]) -> None:
        """Returns when every record is acknowledged, or failed."""
        for topic, number in islice(self._where, BATCH_PARTITIONS):
            for _ in range(BATCH_RECORDS):
                value = b"%s:%d" % (self._name.encode(), next(self._number))
                self._producer.produce(topic, value=value, partition=number, on_delivery=on_delivery)
        self._producer.flush()

    def _on_delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.problems.append(f"{self}: {error}")
        else:
            self.acknowledged.append(message.value())
            self.done += 1


class Transactor(Writer):
    """A transactional producer: every third transaction is aborted, the others are committed."""

    def __init__(self, bootstrap: str, name: str, partitions: Sequence[Partition]) -> None:
        super().__init__(bootstrap, name, partitions)
        self.aborted: list[bytes] = []
        self._open: list[bytes] = []

    def _more(self) -> dict[str, Any]:
        return {"transactional.id": self._name, "transaction.timeout.ms": PATIENCE_MS}

    def _go_on(self) -> None:
        self._until_done(self._producer.init_transactions)
        for number in count(1):
            if self._stopping.wait(PACE_S):
                return
            self._producer.begin_transaction()
            self._open = []
            self._write_batch(self._written)
            if number % 3 == 0 or not self._commit():
                self._until_done(self._producer.abort_transaction)
                self.aborted += self._open
            else:
                self.acknowledged += self._open
                self.done += len(self._open)

    def _written(self, error: KafkaError | None, message: Message) -> None:
        self._open.append(message.value())

    def _commit(self) -> bool:
        """False if the broker would have it aborted."""
        try:
            self._until_done(self._producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            return False
        return True

    def _until_done(self, ask: Callable[[float], None]) -> None:
        """Again, as long as the answer is that this may be tried again."""
        until = time.monotonic() + PATIENCE_MS / 1000
        while True:
            try:
                return ask(ASK_S)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise


class Reader(Client):
    """A member of a consumer group that reads what is committed, of all topics."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], values: set[bytes]) -> None:
        """`values`: of the whole group."""
        super().__init__()
        self._group = group
        self._values = values
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "auto.commit.interval.ms": 1000,
                **QUIET,
            }
        )
        self._consumer.subscribe(list(topics))

    def __repr__(self) -> str:
        return f"reader of {self._group}"

    def _go_on(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(1000, 0.5):
                # Errors are of brokers that are away: they are asked again.
                if message.error() is None:
                    self._values.add(message.value())
                    self.done += 1
        self._consumer.close()


class Traffic:
    """Producers, transactional producers and consumer groups of two members each; use as `with traffic(...)`."""

    def __init__(self, bootstrap: str, partitions: Sequence[Partition], clients: int) -> None:
        """So many of each."""
        topics = sorted({topic for topic, _ in partitions})
        self._bootstrap = bootstrap
        self._partitions = partitions
        self.writers = [Writer(bootstrap, f"plain-{number}", partitions) for number in range(clients)]
        self.transactors = [Transactor(bootstrap, f"transaction-{number}", partitions) for number in range(clients)]
        self.groups: dict[str, set[bytes]] = {f"group-{number}": set() for number in range(clients)}
        self.readers = [
            Reader(bootstrap, group, topics, values) for group, values in self.groups.items() for _ in range(2)
        ]

    @property
    def clients(self) -> list[Client]:
        return [*self.writers, *self.transactors, *self.readers]

    @property
    def problems(self) -> list[str]:
        return [problem for each in self.clients for problem in each.problems]

    def acknowledged(self) -> set[bytes]:
        return {value for each in (*self.writers, *self.transactors) for value in each.acknowledged}

    def aborted(self) -> set[bytes]:
        return {value for each in self.transactors for value in each.aborted}

    def goes_on(self, within_s: float) -> None:
        """Wait until each producer has written, and each group has read, more than by now."""
        writers = [*self.writers, *self.transactors]
        written = {each: each.done for each in writers}
        read = {group: len(values) for group, values in self.groups.items()}

        def has_gone_on() -> bool:
            assert not self.problems, self.problems
            return all(each.done > written[each] for each in writers) and all(
                len(self.groups[group]) > count for group, count in read.items()
            )

        wait_for("every producer to write and every group to read on", has_gone_on, within_s)

    def finish(self, within_s: float) -> None:
        """The producers stop, the groups read all that was acknowledged, and stop."""
        for each in (*self.writers, *self.transactors):
            each.tell_to_stop()
        for each in (*self.writers, *self.transactors):
            each.join()
        there = self.acknowledged()
        wait_for("each group to read all", lambda: all(there <= read for read in self.groups.values()), within_s)
        self.stop()

    def stop(self) -> None:
        for each in self.clients:
            each.tell_to_stop()
        for each in self.clients:
            each.join()

    def wrong(self) -> list[str]:
        """Return what a reader of all committed records finds lost, doubled, out of order or unexpected."""
        found = list(self._committed())
        times = Counter(value for _, value in found)
        lost = self.acknowledged() - times.keys()
        doubled = [value for value, number in times.items() if number > 1]
        aborted = self.aborted() & times.keys()
        of_groups = {value for values in self.groups.values() for value in values}
        report = {
            "acknowledged records are lost": lost,
            "records are there more than once": doubled,
            "aborted records are read": aborted,
            "records are read that nobody was told are written": times.keys() - self.acknowledged() - aborted,
            "aborted records were read by a group": of_groups & self.aborted(),
            "records follow later ones of their producer": _out_of_order(found),
        }
        return [*self.problems, *(f"{len(values)} {what}" for what, values in report.items() if values)]

    def _committed(self) -> Iterator[tuple[Partition, bytes]]:
        """Every partition from its beginning to its end."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "audit",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                **QUIET,
            }
        )
        unread = set(self._partitions)
        consumer.assign([TopicPartition(topic, number, 0) for topic, number in unread])
        try:
            until = time.monotonic() + PATIENCE_MS / 1000
            while unread:
                assert time.monotonic() < until, f"{len(unread)} partitions are not read to their ends"
                for message in consumer.consume(1000, 1.0):
                    error = message.error()
                    if error is None:
                        yield (message.topic(), message.partition()), message.value()
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unread.discard((message.topic(), message.partition()))
        finally:
            consumer.close()


def _out_of_order(found: Sequence[tuple[Partition, bytes]]) -> list[bytes]:
    """Return the values that are out of a producer's order in one partition."""
    last: dict[tuple[Partition, bytes], int] = {}
    late = []
    for partition, value in found:
        name, _, number = value.partition(b":")
        if int(number) < last.get((partition, name), -1):
            late.append(value)
        last[partition, name] = int(number)
    return late


@contextmanager
def traffic(bootstrap: str, partitions: Sequence[Partition], clients: int) -> Iterator[Traffic]:
    """Under way; whatever happens, no thread is left."""
    made = Traffic(bootstrap, partitions, clients)
    try:
        for each in made.clients:
            each.start()
        yield made
    finally:
        made.stop()
