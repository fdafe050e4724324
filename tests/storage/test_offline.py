"""Directories that nobody runs: Kafka's golden ones, ours after a close, ours after a crash."""

import gzip
import shutil
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import Kernels, SegmentFile
from fastquorum.storage.findings import Severity
from fastquorum.storage.identity import read_identity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.lock import DirectoryLock
from fastquorum.storage.io.opening import open_offline, read_file_batches, trim_directory
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.storage.offline import OfflineLog, segment_batches, trim_log
from fastquorum.storage.ports import FileMode

from .fake_disk import FakeFlusher
from .logs import Rig, every_flip

GOLDEN = Path(__file__).parent.parent / "golden" / "kafka-4.3.0" / "cluster"
FIRST = f"{0:020d}.log"


def dumped_batches(node: str) -> list[tuple[int, int, int, int]]:
    """(base offset, last offset, epoch, CRC) as kafka-dump-log printed them."""
    found = []
    with gzip.open(GOLDEN / f"dump-{node}.txt.gz", "rt") as lines:
        for line in lines:
            if line.startswith("baseOffset: "):
                words = line.split()
                fields = dict(zip(words[0::2], words[1::2], strict=False))
                found.append(
                    (
                        int(fields["baseOffset:"]),
                        int(fields["lastOffset:"]),
                        int(fields["partitionLeaderEpoch:"]),
                        int(fields["crc:"]),
                    )
                )
    return found


@pytest.mark.parametrize(("node", "end"), [("c1", 3836), ("c2", 4447), ("c3", 3836)])
def test_kafkas_directories_verify(kernels: Kernels, node: str, end: int) -> None:
    verification = open_offline(str(GOLDEN / node), kernels).verify()
    assert verification.findings == []
    assert verification.is_sound
    assert verification.is_closed
    assert (verification.start_offset, verification.end_offset) == (0, end)
    assert verification.epochs == [(1, 0), (3, 3720)]
    assert verification.record_count == end


@pytest.mark.parametrize("node", ["c1", "c2"])
def test_kafkas_batches_are_those_that_kafka_dumped(kernels: Kernels, node: str) -> None:
    ours = [
        (info.base_offset, info.last_offset, info.leader_epoch, info.crc)
        for _, info, _ in open_offline(str(GOLDEN / node / LOG_DIRECTORY), kernels).batches()
    ]
    assert ours == dumped_batches(node)


@pytest.mark.parametrize("node", ["c1", "c2"])
def test_kafkas_directories_open_append_and_close(kernels: Kernels, tmp_path: Path, node: str) -> None:
    golden = (GOLDEN / node / LOG_DIRECTORY / FIRST).read_bytes()
    copy = shutil.copytree(GOLDEN / node, tmp_path / node)
    disk = RealDisk.open_directory(str(copy), kernels)
    assert read_identity(disk).format_version == 0
    config = QuorumConfig(preallocate_bytes=64 * 1024)
    log = Log.open(disk, kernels, config, FakeFlusher())
    end = log.end_offset
    assert log.read(0, len(golden))[:61] == golden[:61]
    batch = kernels.encode_values([b"x"], base_offset=end, leader_epoch=9, timestamp_ms=5)
    log.append_batch(batch, base_offset=end, next_offset=end + 1, epoch=9, timestamp_ms=5)
    log.close()
    assert (copy / LOG_DIRECTORY / FIRST).read_bytes() == golden + batch
    verification = open_offline(str(copy), kernels).verify()
    assert verification.findings == []
    assert verification.mark is not None
    assert verification.mark.at.offset == verification.end_offset == end + 1
    assert (copy / LOG_DIRECTORY / f"{0:020d}.index").stat().st_size > 0


def test_a_checkpoint_file_is_read_like_a_segment(kernels: Kernels) -> None:
    path = GOLDEN / "c1" / LOG_DIRECTORY / "00000000000000003829-0000000003.checkpoint"
    batches = list(read_file_batches(str(path), kernels))
    assert b"".join(batch.data for batch in batches) == path.read_bytes()
    assert batches[0].info.is_control
    assert batches[-1].info.is_control


def test_a_crashed_directory_reads_up_to_its_zero_tail_and_trims(kernels: Kernels) -> None:
    rig = Rig(kernels)
    for number in range(12):
        rig.append(1, b"%d" % number)
    rig.flush()
    offline = OfflineLog(rig.disk.copy(), kernels)
    assert [batch.info.base_offset for batch in offline.batches()] == list(range(12))
    assert [batch.info.base_offset for batch in offline.batches(7)] == list(range(7, 12))
    verification = offline.verify()
    assert verification.is_sound
    assert not verification.is_closed
    assert {finding.severity for finding in verification.findings} == {Severity.NOTE}
    disk = rig.disk.copy()
    trimmed = trim_log(disk, kernels)
    assert trimmed.is_closed
    assert trimmed.findings == []
    assert [value for _, _, value in rig.reopen(disk).values()] == [b"%d" % number for number in range(12)]


def test_a_torn_tail_is_told_from_corruption(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    rig.flush()
    rig.log.maintain(0)
    rig.append(1, b"b")
    name = f"{LOG_DIRECTORY}/{FIRST}"
    data = rig.disk.read_file(name)
    first, second = kernels.batch_headers(data)
    for info, severity in ((second, Severity.TORN), (first, Severity.CORRUPT)):
        disk = rig.disk.copy()
        bad = bytearray(data)
        bad[info.position + 62] ^= 1
        disk.write_file(name, bytes(bad))
        offline = OfflineLog(disk, kernels)
        finding = next(each for each in offline.verify().findings if each.severity is not Severity.NOTE)
        assert (finding.severity, finding.position, finding.offset) == (severity, info.position, info.base_offset)
        with pytest.raises(CorruptionError) as caught:
            list(offline.batches())
        assert (caught.value.reason, caught.value.position) == ("crc", info.position)
        assert caught.value.path.endswith(FIRST)


def test_every_byte_of_a_closed_directory_is_verified(kernels: Kernels) -> None:
    rig = Rig(kernels)
    for number in range(9):
        rig.append(1 + number // 3, b"%d" % number)
    rig.log.close()
    assert OfflineLog(rig.disk, kernels).verify().findings == []
    for name, at, bad in every_flip(rig.disk):
        verification = OfflineLog(bad, kernels).verify()
        assert verification.findings, (name, at)
        assert verification.is_sound == (not name.endswith(".log")), (name, at)


def test_an_index_that_lies_is_noted(kernels: Kernels) -> None:
    rig = Rig(kernels, config=QuorumConfig(preallocate_bytes=1024))
    for number in range(40):
        rig.append(1, b"%d" % number * 300)
    rig.log.close()
    assert OfflineLog(rig.disk, kernels).verify().findings == []
    name = f"{LOG_DIRECTORY}/{0:020d}.index"
    data = rig.disk.read_file(name)
    assert len(data) >= 16
    rig.disk.write_file(name, data[:3] + bytes([data[3] + 1]) + data[4:])
    (finding,) = OfflineLog(rig.disk, kernels).verify().findings
    assert (finding.severity, finding.path) == (Severity.NOTE, f"/fake/{name}")


def test_an_index_that_names_a_place_within_the_last_batch_is_noted(kernels: Kernels) -> None:
    rig = Rig(kernels, config=QuorumConfig(preallocate_bytes=1024))
    for number in range(40):
        rig.append(1, b"%d" % number * 300)
    rig.log.close()
    log_name, name = (f"{LOG_DIRECTORY}/{0:020d}.{suffix}" for suffix in ("log", "index"))
    data, end = rig.disk.read_file(name), len(rig.disk.read_file(log_name).rstrip(b"\0"))
    for before_end in (1, 26, 27, 60, 61, 200):
        rig.disk.write_file(name, data[:-4] + (end - before_end).to_bytes(4, "big"))
        (finding,) = OfflineLog(rig.disk, kernels).verify().findings
        assert (finding.severity, finding.path) == (Severity.NOTE, f"/fake/{name}")


def test_a_file_is_read_where_it_lies(kernels: Kernels) -> None:
    rig = Rig(kernels)
    rig.append(1, b"a")
    (batch,) = segment_batches(rig.disk, kernels, f"{LOG_DIRECTORY}/{FIRST}")
    assert kernels.decode_values(batch.data) == [b"a"]


def test_trimming_needs_the_lock(kernels: Kernels, tmp_path: Path) -> None:
    copy = shutil.copytree(GOLDEN / "c1", tmp_path / "c1")
    lock = DirectoryLock.acquire(str(copy))
    for path in (copy, copy / LOG_DIRECTORY):
        with pytest.raises(DirectoryError, match="open in this process already"):
            trim_directory(str(path), kernels)
    lock.release()
    assert trim_directory(str(copy / LOG_DIRECTORY), kernels).is_closed


def test_what_is_no_log_is_refused(kernels: Kernels, tmp_path: Path) -> None:
    with pytest.raises(DirectoryError, match="no log here"):
        open_offline(str(tmp_path), kernels)
    with pytest.raises(DirectoryError, match="no such directory"):
        open_offline(str(tmp_path / "none"), kernels)
    with pytest.raises(DirectoryError, match="no such file"):
        read_file_batches(str(tmp_path / "none"), kernels)
    for text in (b"short", b"long enough to have a magic byte"):
        (tmp_path / "notes").write_bytes(text)
        with pytest.raises(DirectoryError, match="holds no record batches"):
            read_file_batches(str(tmp_path / "notes"), kernels)
        (tmp_path / FIRST).write_bytes(text)
        with pytest.raises(CorruptionError):
            list(read_file_batches(str(tmp_path / FIRST), kernels))


class Running(RealDisk):
    """A directory whose node writes on whenever somebody has read: a part of a batch, then the rest; or nothing, and
    the file ends there."""

    parts: ClassVar[list[tuple[int, bytes]]] = []

    def open(self, name: str, mode: FileMode = "open") -> SegmentFile:
        file = super().open(name, mode)
        path, parts, read = file.path, self.parts, file.read

        class Appending:
            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def read(self, position: int, size_bytes: int) -> bytes:
                data = read(position, size_bytes)
                if parts:
                    at, part = parts.pop(0)
                    with open(path, "r+b") as written:
                        written.seek(at)
                        written.write(part)
                        if not part:
                            written.truncate()
                return data

        return cast(SegmentFile, cast(Any, Appending()))


def test_what_a_running_node_appends_meanwhile_is_no_damage(kernels: Kernels, tmp_path: Path) -> None:
    first = kernels.encode_values([b"a" * 50], base_offset=0, leader_epoch=1, timestamp_ms=1)
    second = kernels.encode_values([b"b" * 50], base_offset=1, leader_epoch=1, timestamp_ms=1)
    (tmp_path / LOG_DIRECTORY).mkdir()
    (tmp_path / LOG_DIRECTORY / FIRST).write_bytes(first + bytes(5000))
    at = len(first)
    for cut in (len(second), 30, 70):
        Running.parts[:] = [(at, second[:cut]), (at, second)]
        log = OfflineLog(Running(str(tmp_path), kernels), kernels)
        assert [batch.info.base_offset for batch in log.batches()] in ([0], [0, 1])
        (tmp_path / LOG_DIRECTORY / FIRST).write_bytes(first + bytes(5000))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("left", [0, 30, 1_000])
def test_a_log_that_a_running_node_cuts_meanwhile_ends_there(kernels: Kernels, tmp_path: Path, left: int) -> None:
    """A follower cuts off what its leader does not have, and then the room behind it."""
    batches = [kernels.encode_values([b"a" * 50], base_offset=at, leader_epoch=1, timestamp_ms=1) for at in range(3)]
    (tmp_path / LOG_DIRECTORY).mkdir()
    (tmp_path / LOG_DIRECTORY / FIRST).write_bytes(b"".join(batches) + bytes(5000))
    Running.parts[:] = [(len(batches[0]) + left, b"")]
    log = OfflineLog(Running(str(tmp_path), kernels), kernels)
    assert [batch.info.base_offset for batch in log.batches()] == [0, 1, 2], "which had been read"
    assert len((tmp_path / LOG_DIRECTORY / FIRST).read_bytes()) == len(batches[0]) + left
