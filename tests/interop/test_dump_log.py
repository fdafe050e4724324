"""kafka-dump-log reads what we write, and prints what `fastquorum log dump --format kafka` prints."""

import json
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastquorum.kernels import Compression, Header, Kernels, Record, load

from .directories import Writer, fastquorum, golden_dump, golden_values, segments
from .kafka import Kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]  # the first may have to wait for Maven

METADATA = "--cluster-metadata-decoder"
USER = "--print-data-log"
TIMESTAMP_MS = 1_795_242_750_172
KINDS = {METADATA: "metadata", USER: "user"}
_PAYLOAD = re.compile(r"payload: (.*)")


@pytest.fixture(params=["native", "pure"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return load(request.param)


def agreed_dump(kafka: Kafka, directory: Path, decoder: str, *names: str) -> str:
    """What both print about these files; all segments if none is named."""
    chosen = names or tuple(segments(directory))
    theirs = kafka.dump_log(decoder, "--files", ",".join(chosen), cwd=directory)
    dump = ("log", "dump", "--format", "kafka", "--records", KINDS[decoder])
    ours = "".join(fastquorum(*dump, name, cwd=directory) for name in chosen)
    assert ours == theirs
    return theirs


def some_records() -> Iterator[tuple[Compression, list[Record]]]:
    values = [b"", b"x", "Grüße, 世界".encode(), b"a" * 200, bytes(range(256))]
    for number, compression in enumerate(Compression):
        yield (
            compression,
            [
                Record(value, b"key" if at % 2 else None, (Header("h", b"1"),) * (at % 3), TIMESTAMP_MS + number + at)
                for at, value in enumerate(values)
            ],
        )


def test_it_reads_a_metadata_log_of_several_segments(kafka: Kafka, tmp_path: Path) -> None:
    kernels = load()
    writer = Writer(tmp_path, kernels)
    for number, values in enumerate(golden_values(kernels)):
        writer.append_values(values, epoch=1 + number // 500, timestamp_ms=TIMESTAMP_MS + number)
    writer.close()
    assert len(segments(tmp_path)) > 2
    dumped = agreed_dump(kafka, tmp_path, METADATA)
    # What Kafka decodes from our log is what it had decoded from its own.
    assert _PAYLOAD.findall(dumped) == _PAYLOAD.findall(golden_dump())


def test_it_reads_a_user_log_with_keys_headers_and_every_compression(
    kafka: Kafka, kernels: Kernels, tmp_path: Path
) -> None:
    writer = Writer(tmp_path, kernels)
    for compression, records in some_records():
        batch = kernels.encode_records(
            records,
            base_offset=writer.end_offset,
            leader_epoch=2,
            timestamp_ms=TIMESTAMP_MS,
            attributes=compression,
            producer_id=7,
            producer_epoch=1,
            base_sequence=5,
        )
        writer.append(batch, len(records), epoch=2, timestamp_ms=TIMESTAMP_MS + 9)
    writer.close()
    dumped = agreed_dump(kafka, tmp_path, USER)
    assert dumped.count("isvalid: true") == len(Compression)
    assert "payload: Grüße, 世界" in dumped


def test_it_finds_our_indexes_sound(kafka: Kafka, tmp_path: Path) -> None:
    writer = Writer(tmp_path, load())
    for number in range(500):
        writer.append_values([b"%d" % number * 300], epoch=1, timestamp_ms=TIMESTAMP_MS)
    writer.close()
    indexes = [name.replace(".log", ".index") for name in segments(tmp_path)]
    assert len(indexes) > 1
    checked = kafka.dump_log("--index-sanity-check", "--files", ",".join(indexes), cwd=tmp_path)
    assert checked.count("passed sanity check") == len(indexes)
    verified = kafka.dump_log("--verify-index-only", "--files", ",".join(indexes), cwd=tmp_path)
    assert "mismatch" not in verified.lower()


# A program with a node in it: it appends the values it is sent, says so, and would go on until its input ends.
_PROGRAM = """
import pickle, sys
import fastquorum as fq
directory, kind = sys.argv[1:]
values = pickle.load(sys.stdin.buffer)
with fq.sync.open(directory, node_id=1, log=kind) as quorum:
    quorum.wait_ready(timeout=30)
    for value in values[:20]:
        quorum.append(value)
    with quorum.producer("fences whoever had its name") as producer:
        producer.append(values[20:])
    print("appended", flush=True)
    sys.stdin.read()
"""


def a_node_appends(directory: Path, kind: str, values: list[bytes], *, killed: bool) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(directory), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        pickle.dump(values, program.stdin)
        program.stdin.flush()
        assert program.stdout.readline() == b"appended\n"
        if killed:
            program.kill()
    assert program.returncode == (-signal.SIGKILL if killed else 0)


@pytest.mark.parametrize(("kind", "decoder"), [("metadata", METADATA), ("user", USER)])
def test_it_reads_what_a_node_leaves_behind(kafka: Kafka, tmp_path: Path, kind: str, decoder: str) -> None:
    values = [value for batch in golden_values(load()) for value in batch][:200]
    a_node_appends(tmp_path, kind, values, killed=False)
    dumped = agreed_dump(kafka, tmp_path, decoder)
    assert "LeaderChange: " in dumped
    assert ("endTxnMarker: ABORT" in dumped) == (kind == "user"), "a producer's fence, in a metadata log a no-op"
    assert dumped.count("| offset:") > len(values)


@pytest.mark.parametrize(("kind", "decoder"), [("metadata", METADATA), ("user", USER)])
def test_it_reads_what_a_killed_node_leaves_behind(kafka: Kafka, tmp_path: Path, kind: str, decoder: str) -> None:
    values = [value for batch in golden_values(load()) for value in batch][:200]
    a_node_appends(tmp_path, kind, values, killed=True)
    # A segment in use ends in zeros, which Kafka does not know; `log trim` closes it.
    fastquorum("log", "trim", tmp_path)
    assert agreed_dump(kafka, tmp_path, decoder).count("| offset:") > len(values)


def test_it_reads_our_checkpoints(kafka: Kafka, tmp_path: Path) -> None:
    voters = "1@127.0.0.1:19091:vvU4x29PSmGr6cl_yWjBGQ,2@127.0.0.1:19092:MzGshnxlQ8CWUREFNVsnEw"
    fastquorum(
        "format", "--data", tmp_path, "--node-id", "1", "--cluster-id", "usACA5tBSrKS64DhDt4jig", "--voters", voters,
        "--log", "metadata",
    )  # fmt: skip
    first = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    assert "KRaftVoters" in agreed_dump(kafka, tmp_path, METADATA, first)
    assert "FEATURE_LEVEL_RECORD" in agreed_dump(kafka, tmp_path, METADATA, "bootstrap.checkpoint")


def test_it_reads_what_the_demo_leaves(kafka: Kafka, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    verdict = json.loads(fastquorum("demo", "--keep", kept, "--format", "json"))
    assert verdict["lost"] == 0
    directories = sorted(path.parent for path in kept.glob("*/__cluster_metadata-0"))
    assert len(directories) == 3
    for directory in directories:
        dumped = agreed_dump(kafka, directory, METADATA)
        assert dumped.count("payload: ") >= verdict["acknowledged"]
