"""Payloads: the same for the same seed, and shaped as Kafka's controller writes them."""

from collections import defaultdict

import pytest

from fastquorum.data import carried_records
from fastquorum.errors import UsageError
from fastquorum.load.driving.payloads import KEY_BYTES, Payload, Payloads, default_records_per_append, make_payloads
from fastquorum.load.plan import WORKLOADS, LoadPlan
from fastquorum.wire.records.metadata import decode_metadata_record

METADATA = ("topics", "isr", "heartbeats", "golden")


def plan(workload: str, **more: object) -> LoadPlan:
    fields = {"workload": workload, "records_per_append": default_records_per_append(workload), **more}
    return LoadPlan.from_json(fields)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_seed_makes_the_bytes(workload: str) -> None:
    one, same = make_payloads(plan(workload)), make_payloads(plan(workload))
    assert one.appends == same.appends
    assert {len(each.values) for each in one.appends} == {default_records_per_append(workload)}
    if workload not in ("golden", "heartbeats"):
        assert make_payloads(plan(workload, seed=2)).appends != one.appends


@pytest.mark.parametrize("workload", ["topics", "isr", "heartbeats"])
def test_metadata_has_the_sizes_of_a_real_controllers_records(workload: str) -> None:
    sizes: dict[tuple[str, int], set[int]] = defaultdict(set)
    for value in carried_records():
        record, version = decode_metadata_record(value)
        sizes[type(record).__name__, version].add(len(value))
    for append in make_payloads(plan(workload)).appends[:200]:
        for value in append.values:
            record, version = decode_metadata_record(value)
            real = sizes[type(record).__name__, version]
            assert min(real) - 4 <= len(value) <= max(real) + 4, record


def test_a_topic_and_its_partitions_are_one_append() -> None:
    for append in make_payloads(plan("topics", records_per_append=4)).appends[:20]:
        topic, *partitions = (decode_metadata_record(value)[0] for value in append.values)
        assert type(topic).__name__ == "TopicRecord"
        assert [partition.partition_id for partition in partitions] == [0, 1, 2]
        assert {partition.topic_id for partition in partitions} == {topic.topic_id}


def test_golden_records_come_in_their_order() -> None:
    values = [append.values[0] for append in make_payloads(plan("golden")).appends]
    assert values[: len(carried_records())] == carried_records()


def test_keys_stand_in_front_and_some_are_hot() -> None:
    appends = make_payloads(plan("keys", record_bytes=40)).appends
    counts: dict[bytes, int] = defaultdict(int)
    for append in appends:
        assert append.values[0] == append.keys[0] + append.bare_values[0]
        assert (len(append.keys[0]), len(append.bare_values[0])) == (KEY_BYTES, 40 - KEY_BYTES)
        counts[append.keys[0]] += 1
    hottest = sorted(counts.values(), reverse=True)[:256]
    assert sum(hottest) > len(appends) / 2


def test_records_too_small_for_a_key_are_refused() -> None:
    with pytest.raises(UsageError, match="no room for keys"):
        make_payloads(plan("keys", record_bytes=KEY_BYTES - 1))


def test_payloads_never_end() -> None:
    payloads = Payloads([Payload((bytes([number]),)) for number in range(5)])
    taken = [each.values[0][0] for size in (3, 4, 12, 0, 1) for each in payloads.take(size)]
    assert taken == [number % 5 for number in range(20)]


def test_a_single_value_is_appended_as_such() -> None:
    assert Payload((b"a",)).as_appended == b"a"
    assert Payload((b"a", b"b")).as_appended == (b"a", b"b")
