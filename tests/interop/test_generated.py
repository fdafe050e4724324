"""Kafka's kafka-dump-log reads what is generated, and prints what `fastquorum log dump --format kafka` prints."""

from pathlib import Path

import pytest

from fastquorum.generate import GenerateOptions, Kind, Span, generate
from fastquorum.kernels import load
from fastquorum.storage.names import LOG_DIRECTORY

from .directories import segments
from .kafka import Kafka
from .test_dump_log import METADATA, agreed_dump

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_it_reads_generated_logs_and_their_checkpoints(kafka: Kafka, tmp_path: Path) -> None:
    wanted = GenerateOptions(
        brokers=Span(5, 5), partitions=Span(30, 30), hours=8, seed=3, faults={Kind.TWO_LEADERS: 1, Kind.BIT_FLIP: 1}
    )
    report = generate(str(tmp_path / "out"), wanted, load())
    (cluster,) = report["clusters"]
    damaged = {each["directory"] for each in report["planted"]}
    sound = next(each["directory"] for each in cluster["replicas"] if each["directory"] not in damaged)
    replica = tmp_path / "out" / sound
    names = segments(replica)
    assert len(names) > 4
    dumped = agreed_dump(kafka, replica, METADATA, *names)
    assert dumped.count("LeaderChange") >= 2
    checkpoints = sorted(f"{LOG_DIRECTORY}/{path.name}" for path in (replica / LOG_DIRECTORY).glob("*-*.checkpoint"))
    assert "PARTITION_RECORD" in agreed_dump(kafka, replica, METADATA, checkpoints[0], checkpoints[-1])
