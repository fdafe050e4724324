"""`fastquorum image --bootstrap`: the committed log over the wire comes to what the directory comes to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastquorum.kernels import load
from fastquorum.loopback import free_ports
from fastquorum.types import OffsetAndEpoch, Uuid
from fastquorum.wire.records.cluster import FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import TopicRecord
from tests.cli.controllers import Controller, Run, controller
from tests.storage.logs import checkpoint, checkpoint_path

SNAPSHOT = OffsetAndEpoch(50, 1)
HELD = [
    encode_metadata_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 0),
    *(encode_metadata_record(TopicRecord(name=f"t{n}", topic_id=Uuid(bytes([n + 1]) * 16)), 0) for n in range(20)),
]


def test_it_is_what_the_directory_says(fastquorum: Run, tmp_path: Path) -> None:
    with controller(tmp_path) as cluster:
        cluster.join(11, 12)
        fastquorum("topic", "create", "t", "--partitions", 3, "--config", "retention.ms=5", *cluster.at)
        shown = {
            words: fastquorum("image", *words, *cluster.at)
            for words in ((), ("--format", "json"), ("--topic", "t"), ("--at", "6"))
        }
    for words, ran in shown.items():
        assert (ran.code, ran.err == "") == (0, "--at" not in words)
        assert ran == fastquorum("image", tmp_path / "n1", *words)
    assert "offset 6 is inside a batch" in shown["--at", "6"].err


@pytest.mark.parametrize("kernels", ["native", "pure"])
def test_a_log_of_many_answers(fastquorum: Run, tmp_path: Path, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastquorum.client.committed_log.FETCH_BYTES", 200)
    with controller(tmp_path) as cluster:
        cluster.join(*range(11, 19))
        ran = fastquorum("image", *cluster.at, "--kernels", kernels)
    assert ran.code == 0
    assert ran.out == fastquorum("image", tmp_path / "n1").out


@contextmanager
def behind_a_snapshot(root: Path) -> Iterator[Controller]:
    """A controller whose log begins at a snapshot."""
    (port,) = free_ports(1)
    with controller(root, port):
        pass
    (root / "n1" / checkpoint_path(SNAPSHOT)).write_bytes(checkpoint(load("native"), SNAPSHOT, values=HELD))
    with controller(root, port, fetch_snapshot_bytes_max=100) as cluster:
        yield cluster


def test_a_snapshot_stands_in_for_what_the_log_has_no_more(fastquorum: Run, tmp_path: Path) -> None:
    with behind_a_snapshot(tmp_path) as cluster:
        ran = fastquorum("image", *cluster.at, "--format", "json")
        assert ran.code == 0, ran.err
        too_early = fastquorum("image", *cluster.at, "--at", 20)
    shown = json.loads(ran.out)
    assert sorted(shown["topics"]) == sorted(f"t{n}" for n in range(20))
    assert shown["endOffset"] > SNAPSHOT.offset
    assert ran.out == fastquorum("image", tmp_path / "n1", "--format", "json").out
    assert (too_early.code, too_early.out) == (2, "")
    assert "what precedes offset 50 is in a snapshot as a whole: there is no image at 20" in too_early.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--at", 9_999), "offset 9999 lies outside 0.."),
        (("--topic", "nope"), "there is no topic 'nope' in the image"),
        (("n1",), "name either a directory DIR or running nodes by --bootstrap"),
    ],
)
def test_what_cannot_be_shown(fastquorum: Run, tmp_path: Path, words: tuple[object, ...], complaint: str) -> None:
    with controller(tmp_path) as cluster:
        ran = fastquorum("image", *words, *cluster.at)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


def test_neither_directory_nor_nodes(fastquorum: Run) -> None:
    ran = fastquorum("image")
    assert ran.code == 2
    assert "name either a directory DIR or running nodes by --bootstrap" in ran.err
