"""Other people's clients write to three live nodes and read what all of them wrote; also while the leader is killed."""

import random
from collections.abc import Iterator

import pytest

from .clients import (
    Read,
    read_by_all,
    read_by_us,
    write_by_aiokafka,
    write_by_confluent,
    write_by_console,
    write_by_kafka_python,
    write_by_kcat,
)
from .exactly_once import KILLS, problems, write_while_leaders_die
from .kafka import Kafka
from .nodes import TOPIC, Nodes, running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900), pytest.mark.long]

EACH = 100
"""Records of every writer."""
MEASURED = 2_000
"""Records of kafka-producer-perf-test."""
RECORDS = 3_000
"""Records of each of both writers, while leaders die."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with running(tmp_path_factory.mktemp("clients")) as started:
        yield started


def values_of(name: str) -> list[bytes]:
    """Return values of any size that fits on a line."""
    sizes = random.Random(name)
    return [b"%s %d %s" % (name.encode(), number, b"x" * sizes.randrange(1_000)) for number in range(EACH)]


def all_the_same(found: dict[str, Read]) -> Read:
    """What every reader found."""
    read = found["fastquorum read"]
    assert [name for name, other in found.items() if other != read] == []
    return read


def test_every_client_writes_and_every_client_reads_the_same(kafka: Kafka, kcat: str, nodes: Nodes) -> None:
    bootstrap, before = nodes.bootstrap, len(read_by_us(nodes.bootstrap))
    write_by_confluent(bootstrap, values_of("confluent"), **{"compression.type": "zstd"})
    write_by_kcat(bootstrap, values_of("kcat"), "compression.codec=snappy")
    write_by_kafka_python(bootstrap, values_of("kafka-python"), compression_type="gzip")
    write_by_aiokafka(bootstrap, values_of("aiokafka"), compression_type="lz4")
    write_by_console(kafka, bootstrap, values_of("console"))
    measured = kafka.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", TOPIC, "--num-records", str(MEASURED), "--record-size", "100", "--throughput", "-1"),
        *("--bootstrap-server", bootstrap),
    )
    assert f"{MEASURED} records sent" in measured
    end = nodes.wait_caught_up().partition.high_watermark
    count = before + 5 * EACH + MEASURED
    read = all_the_same(read_by_all(kafka, bootstrap, end, count))[before:]
    for name in ("confluent", "kcat", "kafka-python", "aiokafka", "console"):
        written = [value for _, value in read if value.startswith(name.encode() + b" ")]
        assert written == values_of(name)
    assert before + len(read) == count


def test_each_record_is_there_once_and_in_order_though_two_leaders_are_killed(
    kafka: Kafka, kcat: str, nodes: Nodes
) -> None:
    before, first_offset = len(read_by_us(nodes.bootstrap)), nodes.wait_caught_up().partition.high_watermark
    written = write_while_leaders_die(nodes, RECORDS)
    assert len(written.epochs) == KILLS + 1
    assert min(written.under_way) > 0, "nothing was under way when a leader died"
    end = nodes.wait_caught_up().partition.high_watermark
    assert problems(written, read_by_all(kafka, nodes.bootstrap, end, before + 2 * RECORDS), first_offset) == []
