"""`log dump` against what Kafka's own tool printed: for the golden logs, and for awkward ones made for the purpose.

tests/cli/golden/dumps: in each directory a segment, and what kafka-dump-log 4.3.0 printed for it (run in that
directory, with --cluster-metadata-decoder; in `user` with --print-data-log). `crc`, `inner`: damaged batches; `bad`:
values that are no metadata records; `flags`: log-append time, delete horizon, wrapping sequences; `control`:
transaction markers; `zero16`, `trunc`, `trunc5`, `garbage`: ends; `quota`: doubles and characters that need escapes.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum.cli.terminal.json_text import jackson_text, java_double
from fastquorum.kernels import Compression, Kernels, load
from tests.cli.conftest import Ran
from tests.wire.golden import CLUSTER

DUMPS = Path(__file__).parent / "golden" / "dumps"
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def kernels() -> Kernels:
    return load("pure")


@pytest.mark.parametrize("kernels_name", ["native", "pure"])
@pytest.mark.parametrize(
    ("run_in", "file", "dump"),
    [
        (CLUSTER, f"c1/__cluster_metadata-0/{SEGMENT}", "dump-c1.txt.gz"),
        (CLUSTER, f"c2/__cluster_metadata-0/{SEGMENT}", "dump-c2.txt.gz"),
        (
            CLUSTER.parent,
            "cluster/c1/__cluster_metadata-0/00000000000000003829-0000000003.checkpoint",
            "dump-c1-checkpoint-3829.txt.gz",
        ),
    ],
    ids=["c1", "c2", "checkpoint"],
)
def test_golden_dumps_byte_for_byte(
    fastquorum: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    run_in: Path,
    file: str,
    dump: str,
    kernels_name: str,
) -> None:
    monkeypatch.chdir(run_in)
    ran = fastquorum("log", "dump", "--kernels", kernels_name, "--format", "kafka", file)
    assert ran.code == 0
    assert ran.out == gzip.decompress((CLUSTER / dump).read_bytes()).decode()


@pytest.mark.parametrize("case", sorted(path.name for path in DUMPS.iterdir()))
def test_awkward_logs_byte_for_byte(fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.chdir(DUMPS / case)
    records = "user" if case == "user" else "metadata"
    ran = fastquorum("log", "dump", "--records", records, "--format", "kafka", SEGMENT)
    assert ran.out == (DUMPS / case / "expected.txt").read_bytes().decode()
    assert ran.code == (4 if case == "garbage" else 0)
    assert ("Non-consecutive offsets" in ran.err) == (case == "gap")


def test_a_zero_tail_ends_the_dump(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = (DUMPS / "compnone" / SEGMENT).read_bytes()
    (tmp_path / SEGMENT).write_bytes(whole + bytes(8192))
    monkeypatch.chdir(tmp_path)
    for records, how in (("metadata", "kafka"), ("metadata", "json"), ("metadata", "table")):
        ran = fastquorum("log", "dump", "--records", records, "--format", how, SEGMENT)
        assert ran.code == 0
        if how == "kafka":
            assert ran.out == (DUMPS / "compnone" / "expected.txt").read_text()


def test_every_compression_prints_the_same_records(fastquorum: Callable[..., Ran]) -> None:
    shown = {
        name: fastquorum("log", "dump", "--format", "json", DUMPS / f"comp{name}" / SEGMENT).out
        for name in (each.name.lower() for each in Compression)
    }
    assert len(set(shown.values())) == 1
    assert json.loads(shown["none"].splitlines()[0])["type"] == "TOPIC_RECORD"


def test_a_directory_is_dumped_as_json_and_table(fastquorum: Callable[..., Ran]) -> None:
    lines = [
        json.loads(line) for line in fastquorum("log", "dump", "--format", "json", CLUSTER / "c1").out.splitlines()
    ]
    assert [line["offset"] for line in lines] == list(range(3836))
    assert lines[0]["control"] == "LEADER_CHANGE"
    assert lines[4] == {
        "offset": 4,
        "epoch": 1,
        "timestampMs": 1795242750468,
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": {"name": "metadata.version", "featureLevel": 30},
    }
    table = fastquorum("log", "dump", CLUSTER / "c1" / "__cluster_metadata-0").out.splitlines()
    assert len(table) == 3837
    assert 'FEATURE_LEVEL_RECORD {"name":"metadata.version","featureLevel":30}' in table[5]


@pytest.mark.parametrize("how", ["json", "table"])
@pytest.mark.parametrize(("case", "reason"), [("crc", "crc"), ("trunc", "truncated"), ("garbage", "length")])
def test_damage_is_named_and_exits_4(fastquorum: Callable[..., Ran], case: str, reason: str, how: str) -> None:
    ran = fastquorum("log", "dump", "--format", how, DUMPS / case / SEGMENT)
    assert ran.code == 4
    assert f"corrupt: {reason} at byte" in ran.err
    assert SEGMENT in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("path", ["nowhere", ".", __file__])
def test_what_is_no_log_is_named(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = fastquorum("log", "dump", path)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1


def test_kafkas_format_needs_kafkas_names(fastquorum: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"")
    ran = fastquorum("log", "dump", "--format", "kafka", tmp_path / "notes.txt")
    assert ran.code == 2
    assert "is not named like a segment" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9999999.5, "9999999.5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (5e-324, "4.9E-324"),
        (2e23, "2.0E23"),
        (1.5e300, "1.5E300"),
        (-1234567.0, "-1234567.0"),
        (123456789012.0, "1.23456789012E11"),
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text


def test_json_text_is_compact_and_escapes_as_jackson_does() -> None:
    assert (
        jackson_text({"a": [1, None, True], "b": 'q"\\/\x1f\x7fé'}) == '{"a":[1,null,true],"b":"q\\"\\\\/\\u001F\x7fé"}'
    )
