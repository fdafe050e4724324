"""Snapshots that Apache Kafka 4.3.0 wrote: fetched, installed, gone on with, and left as Kafka would find them."""

import shutil
from pathlib import Path

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.kernels import Kernels
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.identity import LogKind
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.opening import open_offline, trim_directory
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name, parse_checkpoint, segment_name
from fastquorum.storage.offline import OfflineLog
from fastquorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, Uuid, Voter, VoterSet

from .fake_disk import FakeFlusher

GOLDEN = Path(__file__).parent.parent / "golden" / "kafka-4.3.0" / "cluster"
CONFIG = QuorumConfig(preallocate_bytes=64 * 1024)
PIECE_BYTES = 10_000
SNAPSHOTS = sorted(
    found
    for path in (GOLDEN / "c1" / LOG_DIRECTORY).glob("*.checkpoint")
    if (found := parse_checkpoint(path.name)) is not None and found.offset > 0
)


def formatted(kernels: Kernels, path: Path) -> RealDisk:
    """A new node's directory; its voters will be others soon."""
    disk = RealDisk.open_directory(str(path), kernels, create=True)
    own = Uuid.parse("MzGshnxlQ8CWUREFNVsnEw")
    voters = VoterSet([Voter(ReplicaKey(9, own), (Endpoint("CONTROLLER", "h", 1),), 0, 1)])
    options = FormatOptions("cluster", 9, own, voters, LogKind.METADATA)
    format_directory(disk, kernels, options, now_ms=1)
    return disk


def open_log(disk: RealDisk, kernels: Kernels) -> tuple[Log, FakeFlusher]:
    flusher = FakeFlusher()
    return Log.open(disk, kernels, CONFIG, flusher), flusher


def flush(log: Log, flusher: FakeFlusher) -> None:
    log.request_flush()
    while flusher.pending:
        log.flush_done(flusher.run(), 0)


@pytest.mark.parametrize("snapshot", [SNAPSHOTS[0], SNAPSHOTS[-1]], ids=str)
def test_a_new_node_begins_behind_kafkas_snapshot(kernels: Kernels, tmp_path: Path, snapshot: OffsetAndEpoch) -> None:
    """The leader is c1 as Kafka left it; every piece comes out of our own reading of its directory."""
    leader, _ = open_log(RealDisk(str(shutil.copytree(GOLDEN / "c1", tmp_path / "leader")), kernels), kernels)
    assert leader.snapshots.latest == SNAPSHOTS[-1]
    assert leader.snapshots.earliest == SNAPSHOTS[0]
    disk = formatted(kernels, tmp_path / "new")
    log, flusher = open_log(disk, kernels)
    batch = kernels.encode_values([b"never committed"], base_offset=0, leader_epoch=1, timestamp_ms=1)
    log.append_batch(batch, base_offset=0, next_offset=1, epoch=1, timestamp_ms=1)

    size = leader.snapshots.size_bytes(snapshot)
    golden = (GOLDEN / "c1" / LOG_DIRECTORY / checkpoint_name(snapshot)).read_bytes()
    assert size == len(golden)
    for position in range(0, size, PIECE_BYTES):
        log.snapshots.write_part(snapshot, position, leader.snapshots.read(snapshot, position, PIECE_BYTES))
    state = log.snapshots.finish_part(snapshot)
    log.install_snapshot(snapshot)
    assert state.kraft_version == 1
    assert state.voters is not None
    assert state.voters.ids[:3] == (1, 2, 3)

    offset = snapshot.offset
    while offset < leader.end_offset:
        data = leader.read(offset, PIECE_BYTES)
        log.append_scanned(data, kernels.scan(data, expected_offset=offset, epoch_min=log.last_epoch))
        offset = log.end_offset
        flush(log, flusher)
    assert (log.end_offset, log.flushed_end) == (leader.end_offset, leader.end_offset)
    for epoch in (snapshot.epoch, 3, 4):
        assert log.end_offset_for(epoch) == leader.end_offset_for(epoch)
    assert log.end_offset_for(0) == (snapshot.epoch, snapshot.offset)
    rest = leader.read(snapshot.offset, 1 << 22)
    trimmed = shutil.copytree(tmp_path / "new", tmp_path / "crashed")
    log.close()
    leader.close()

    files = tmp_path / "new" / LOG_DIRECTORY
    assert [path.name for path in sorted(files.glob("*.log"))] == [segment_name(snapshot.offset)]
    assert (files / segment_name(snapshot.offset)).read_bytes() == rest
    assert rest == (GOLDEN / "c1" / LOG_DIRECTORY / segment_name(0)).read_bytes()[-len(rest) :]
    assert (files / checkpoint_name(snapshot)).read_bytes() == golden
    epochs = (files / "leader-epoch-checkpoint").read_text().split("\n")
    assert (
        epochs[:3] == ["0", "2", f"1 {snapshot.offset}"] if snapshot.epoch == 1 else ["0", "1", f"3 {snapshot.offset}"]
    )
    verification = open_offline(str(tmp_path / "new"), kernels).verify()
    assert verification.findings == []
    assert verification.is_closed
    assert (verification.start_offset, verification.end_offset) == (snapshot.offset, offset)
    again, _ = open_log(disk, kernels)
    assert again.snapshot_state == state
    assert again.read(snapshot.offset, 1 << 22) == rest
    again.close()
    closed = trim_directory(str(trimmed), kernels)
    assert closed.findings == []
    assert (trimmed / LOG_DIRECTORY / segment_name(snapshot.offset)).read_bytes() == rest


def test_every_snapshot_of_kafkas_is_good(kernels: Kernels, tmp_path: Path) -> None:
    log, _ = open_log(formatted(kernels, tmp_path / "new"), kernels)
    for path in sorted(GOLDEN.glob(f"c*/{LOG_DIRECTORY}/*.checkpoint")):
        snapshot = parse_checkpoint(path.name)
        assert snapshot is not None
        if snapshot.offset:
            log.snapshots.write_part(snapshot, 0, memoryview(path.read_bytes()))
            voters = log.snapshots.finish_part(snapshot).voters
            assert voters is not None
            assert voters.ids == (1, 2, 3)
    log.install_snapshot(SNAPSHOTS[-1])
    log.close()
    assert OfflineLog(RealDisk(str(tmp_path / "new"), kernels), kernels).verify().findings == []
