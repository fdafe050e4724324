"""Apache Kafka's own tools read the snapshots that we write, and see in them what they see in Kafka's."""

import shutil
from pathlib import Path

import pytest

from fastquorum.kernels import load
from fastquorum.storage.images import fold_log, snapshot_batches
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.log.checkpoint import CheckpointTimes
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name
from fastquorum.types import OffsetAndEpoch
from tests.wire.golden import CLUSTER

from .kafka import Kafka
from .metadata_shell import SHELL_TRIES, printed
from .test_dump_log import METADATA, agreed_dump

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

LAST = OffsetAndEpoch(3829, 3)
NODES = 1864
"""Nodes of the image in it that Kafka's shell finds."""


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """c1 with a last snapshot that we wrote, of the image that its log comes to."""
    kernels = load("native")
    directory = shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    state = open_offline(str(directory), kernels).checkpoint_state(LAST)
    for path in (directory / LOG_DIRECTORY).glob("*.checkpoint"):
        path.unlink()
    fold = fold_log(open_offline(str(directory), kernels), kernels, LAST.offset)
    times = CheckpointTimes.at(state.last_contained_ms)
    batches = snapshot_batches(kernels, fold.image, fold.place, times, state.kraft_version, state.voters)
    write_snapshot(RealDisk(str(directory), kernels), kernels, LOG_DIRECTORY, LAST, batches)
    return directory


def test_kafka_dump_log_reads_our_snapshot(kafka: Kafka, ours: Path) -> None:
    dumped = agreed_dump(kafka, ours, METADATA, f"{LOG_DIRECTORY}/{checkpoint_name(LAST)}")
    assert dumped.count("payload: ") == 788
    assert "SnapshotFooter" in dumped


def test_kafka_metadata_shell_sees_in_our_snapshot_what_it_sees_in_kafkas(kafka: Kafka, ours: Path) -> None:
    theirs = shutil.copytree(CLUSTER / "c1", ours.with_name("theirs"))
    seen = [tree(kafka, directory / LOG_DIRECTORY / checkpoint_name(LAST)) for directory in (ours, theirs)]
    assert seen[0] == seen[1]


def tree(kafka: Kafka, file: Path) -> list[str]:
    """Every node of the image. The shell may answer before it has read the file: it is asked again then."""
    found: list[list[str]] = []
    while len(found) < SHELL_TRIES:
        found.append(sorted((printed(kafka, file, "find", "image") or "").splitlines()))
        if len(found[-1]) == NODES:
            return found[-1]
    raise AssertionError([len(each) for each in found])
