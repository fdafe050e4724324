"""The appends of a run, made before it from a seed, and used over and over.

`values` are incompressible bytes; `keys` the same with a key, a quarter of the keys taking three quarters of the
records. The others have the shapes and sizes of a Kafka controller's records: `topics` creates topics (one append is a
TopicRecord and its PartitionRecords), `isr` shrinks and grows in-sync replicas as a failing and returning broker makes
them, `heartbeats` fences and unfences brokers, `golden` are the packaged records of a real Kafka controller, in order.
"""

import random
from collections.abc import Iterator
from itertools import count, cycle, islice
from typing import Final, NamedTuple

from fastquorum.data import carried_records
from fastquorum.errors import UsageError
from fastquorum.load.plan import LoadPlan
from fastquorum.types import Uuid
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord

APPENDS_MAX: Final = 4096
BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes that are made ahead."""
APPEND_BYTES_MAX: Final = 64 * 1024 * 1024
"""Largest append: eight times a log's default batch limit. All that is made ahead stays in memory."""
RECORD_BYTES_LEAST: Final = 7
"""Bytes of an empty record in a batch."""
KEYS: Final = 1024
KEY_BYTES: Final = 16
BROKERS: Final = 12
_DEFAULT_RECORDS: Final = {"topics": 9, "isr": 20}
"""Records of an append where nothing else was asked for: a topic of 8 partitions; a broker's partitions, in parts."""


class Payload(NamedTuple):
    """One append, all its records in one batch. `keys` where the records have some, for drivers that send keys; a
    driver that knows only values sends `values`, in which the key's bytes then come first.
    """

    values: tuple[bytes, ...]
    keys: tuple[bytes, ...] = ()

    @property
    def as_appended(self) -> bytes | tuple[bytes, ...]:
        """What to call `append` with: a single value as such, as users do."""
        return self.values[0] if len(self.values) == 1 else self.values

    @property
    def bare_values(self) -> tuple[bytes, ...]:
        """Without the keys."""
        return tuple(value[KEY_BYTES:] for value in self.values) if self.keys else self.values


class Payloads:
    """Appends, without end."""

    def __init__(self, appends: list[Payload]) -> None:
        self.appends: Final = appends
        self._twice = appends + appends
        self._at = 0

    def take(self, wanted: int) -> list[Payload]:
        """The next so many."""
        size, at = len(self.appends), self._at
        if wanted > size:
            taken = list(islice(cycle(self.appends), at, at + wanted))
        else:
            taken = self._twice[at : at + wanted]
        self._at = (at + wanted) % size
        return taken


def default_records_per_append(workload: str) -> int:
    return _DEFAULT_RECORDS.get(workload, 1)


def check_plan(plan: LoadPlan) -> None:
    """UsageError if records are too small for what they are to hold, or an append is larger than memory is for."""
    if plan.workload == "keys" and plan.record_bytes < KEY_BYTES:
        raise UsageError(f"records of {plan.record_bytes} bytes have no room for keys of {KEY_BYTES}")
    size = plan.records_per_append * max(plan.record_bytes, RECORD_BYTES_LEAST)
    if size > APPEND_BYTES_MAX:
        raise UsageError(
            f"--batch {plan.records_per_append}: an append of {size / 1e6:,.0f} MB, one batch, is more than "
            f"{APPEND_BYTES_MAX / 1e6:,.0f} MB",
            "make it smaller",
        )


def make_payloads(plan: LoadPlan) -> Payloads:
    """Make the payloads of a plan: the same plan makes the same bytes. Raises like `check_plan`."""
    check_plan(plan)
    chance = random.Random(plan.seed)
    records = _RECORDS[plan.workload](plan, chance)
    appends: list[Payload] = []
    size = 0
    # Few big ones are as good as many small ones; one must be there in any case.
    while not appends or (len(appends) < APPENDS_MAX and size < BYTES_MAX):
        values = tuple(islice(records, plan.records_per_append))
        keys = tuple(value[:KEY_BYTES] for value in values) if plan.workload == "keys" else ()
        appends.append(Payload(values, keys))
        size += sum(map(len, values))
    return Payloads(appends)


def _values(plan: LoadPlan, chance: random.Random) -> Iterator[bytes]:
    while True:
        yield chance.randbytes(plan.record_bytes)


def _keys(plan: LoadPlan, chance: random.Random) -> Iterator[bytes]:
    keys = [b"key-%0*d" % (KEY_BYTES - 4, number) for number in range(KEYS)]
    while True:
        hot = chance.random() < 0.75
        key = keys[chance.randrange(KEYS // 4) if hot else chance.randrange(KEYS // 4, KEYS)]
        yield key + chance.randbytes(plan.record_bytes - KEY_BYTES)


def _uuid(chance: random.Random) -> Uuid:
    return Uuid(chance.randbytes(16))


def _topics(plan: LoadPlan, chance: random.Random) -> Iterator[bytes]:
    directories = [_uuid(chance) for _ in range(BROKERS)]
    for number in count():
        topic_id = _uuid(chance)
        yield encode_metadata_record(TopicRecord(name=f"orders-{number}", topic_id=topic_id), 0)
        for partition in range(max(plan.records_per_append - 1, 0)):
            replicas = [(partition + number + nth) % BROKERS for nth in range(3)]
            record = PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[directories[replica] for replica in replicas],
            )
            yield encode_metadata_record(record, 2)


def _isr(plan: LoadPlan, chance: random.Random) -> Iterator[bytes]:
    """A broker fails: it leaves the in-sync replicas of its partitions, and others lead. Then it returns."""
    topics = [_uuid(chance) for _ in range(64)]
    for failed in cycle(range(BROKERS)):
        others = [(failed + 1) % BROKERS, (failed + 2) % BROKERS]
        partitions = [(topic, partition) for topic in topics for partition in range(8)]
        for is_back in (False, True):
            for topic_id, partition in partitions:
                record = PartitionChangeRecord(partition_id=partition, topic_id=topic_id)
                record.isr = [*others, failed] if is_back else others
                record.leader = -2 if is_back else others[partition % 2]
                yield encode_metadata_record(record, 2)


def _heartbeats(plan: LoadPlan, chance: random.Random) -> Iterator[bytes]:
    """What heartbeats leave in a log: a broker that missed some is fenced, and unfenced when it is heard again."""
    epochs = [chance.randrange(1000) for _ in range(BROKERS)]
    for fenced in cycle((1, -1)):
        for broker in range(BROKERS):
            record = BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epochs[broker], fenced=fenced)
            yield encode_metadata_record(record, 0)


def _golden(plan: LoadPlan, chance: random.Random) -> Iterator[bytes]:
    return cycle(carried_records())


_RECORDS: Final = {
    "values": _values,
    "keys": _keys,
    "topics": _topics,
    "isr": _isr,
    "heartbeats": _heartbeats,
    "golden": _golden,
}
