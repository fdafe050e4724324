"""Images of directories that nobody runs: Apache Kafka's golden ones, cut, damaged, and ours."""

import shutil
from pathlib import Path

import pytest

from fastquorum.controller.image import EMPTY
from fastquorum.controller.image.diff import differences
from fastquorum.controller.image.fold import Place
from fastquorum.errors import CorruptionError, DirectoryError, ImageFailed, OffsetOutOfRange, UsageError
from fastquorum.kernels import BATCH_BYTES_MAX, Kernels
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.identity import LogKind
from fastquorum.storage.images import fold_log, fold_snapshot, snapshot_batches, two_images
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.io.opening import fold_file, open_offline
from fastquorum.storage.log.checkpoint import CheckpointTimes
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import (
    BOOTSTRAP_CHECKPOINT,
    LOG_DIRECTORY,
    ZERO_CHECKPOINT,
    checkpoint_name,
    segment_name,
)
from fastquorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, Uuid, Voter, VoterSet
from fastquorum.wire.records.cluster import BeginTransactionRecord, EndTransactionRecord, FeatureLevelRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import RemoveTopicRecord, TopicRecord
from tests.controller.image.logs import folded
from tests.wire.golden import CLUSTER

LAST = OffsetAndEpoch(3829, 3)
SEGMENT = f"{LOG_DIRECTORY}/{segment_name(0)}"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """c1, to be damaged."""
    return shutil.copytree(CLUSTER / "c1", tmp_path / "c1")


def only(directory: Path, *snapshots: OffsetAndEpoch) -> None:
    """Remove all checkpoints but these."""
    kept = {checkpoint_name(each) for each in snapshots}
    for path in (directory / LOG_DIRECTORY).glob("*.checkpoint"):
        if path.name not in kept:
            path.unlink()


@pytest.mark.parametrize("end", [0, 3, 46, 145, 146, 2167, 3829, 3836])
def test_with_snapshots_or_without_the_image_is_the_same(kernels: Kernels, copy: Path, end: int) -> None:
    with_snapshots = fold_log(open_offline(str(copy), kernels), kernels, end)
    only(copy)
    without = fold_log(open_offline(str(copy), kernels), kernels, end)
    assert with_snapshots.image == without.image == folded(CLUSTER / "c1" / SEGMENT, end).image
    assert with_snapshots.place == without.place


def test_a_transaction_that_is_open_at_the_end_does_not_count_yet(kernels: Kernels, copy: Path) -> None:
    values = [
        encode_metadata_record(BeginTransactionRecord(name="t"), 0),
        encode_metadata_record(TopicRecord(name="t", topic_id=Uuid(b"t" * 16)), 0),
        encode_metadata_record(EndTransactionRecord(), 0),
    ]
    with (copy / SEGMENT).open("ab") as file:
        for offset, value in enumerate(values, 3836):
            file.write(kernels.encode_values([value], base_offset=offset, leader_epoch=3, timestamp_ms=1))
    log = open_offline(str(copy), kernels)
    before = fold_log(log, kernels, 3836).image
    for end in (3837, 3838):
        fold = fold_log(log, kernels, end)
        assert (fold.image, fold.place.end_offset, fold.next_offset) == (before, 3836, end)
        assert fold.is_in_transaction
    done = fold_log(log, kernels, 3839)
    assert done.place.end_offset == 3839
    assert done.image.topics.named("t") is not None


def test_a_batch_counts_as_a_whole_or_not_at_all(kernels: Kernels, tmp_path: Path) -> None:
    """Offsets 1205 to 1815 are one: 610 partitions lose broker 13, and the last record fences it."""
    log = open_offline(str(CLUSTER / "c1"), kernels)
    before = fold_log(log, kernels, 1205)
    for end in (1206, 1800, 1815):
        fold = fold_log(log, kernels, end)
        assert (fold.image, fold.place, fold.next_offset) == (before.image, before.place, 1205)
        assert fold_file(str(CLUSTER / "c1" / SEGMENT), kernels, end).image == before.image
    after = fold_log(log, kernels, 1816)
    assert (after.image.brokers[13].fenced, after.next_offset) == (True, 1816)
    assert two_images(log, kernels, 1300, 1816) == (before.image, after.image)
    assert two_images(log, kernels, 1300, 1400) == (before.image, before.image)
    assert [fold_log(log, kernels, end).next_offset for end in (1, 2, 3)] == [0, 0, 3], "a control batch, too"


def test_an_image_stands_where_its_last_record_stands(kernels: Kernels) -> None:
    place = fold_log(open_offline(str(CLUSTER / "c1"), kernels), kernels).place
    assert (place.end_offset, place.epoch) == (3836, 3)
    held = fold_snapshot(open_offline(str(CLUSTER / "c1"), kernels), kernels, LAST)
    assert held.place == Place(3829, 3, 1795242952608), "as Kafka wrote into the snapshot's header"


def test_the_directory_of_the_log_will_do(kernels: Kernels) -> None:
    log = open_offline(str(CLUSTER / "c1" / LOG_DIRECTORY), kernels)
    assert fold_log(log, kernels).image == fold_log(open_offline(str(CLUSTER / "c1"), kernels), kernels).image


def test_one_file_will_do_whatever_lies_beside_it(kernels: Kernels, tmp_path: Path) -> None:
    log = open_offline(str(CLUSTER / "c1"), kernels)
    for name, end in ((checkpoint_name(LAST), LAST.offset), (segment_name(0), None), (segment_name(0), 145)):
        alone = shutil.copy(CLUSTER / "c1" / LOG_DIRECTORY / name, tmp_path)
        held, expected = fold_file(alone, kernels, end), fold_log(log, kernels, end)
        assert (held.image, held.place) == (expected.image, expected.place)


def test_the_snapshot_of_the_first_voters_holds_nothing(kernels: Kernels) -> None:
    assert fold_file(str(CLUSTER / "c1" / ZERO_CHECKPOINT), kernels).image == EMPTY


def test_a_file_of_records_is_read_whatever_its_name(kernels: Kernels) -> None:
    held = fold_file(str(CLUSTER / "c1" / BOOTSTRAP_CHECKPOINT), kernels).image
    assert held.features.metadata_version == 30
    assert not held.topics.ids


def test_a_segment_that_goes_on_with_another_is_refused(kernels: Kernels, tmp_path: Path) -> None:
    data = (CLUSTER / "c1" / SEGMENT).read_bytes()
    second = next(info.position for info in kernels.batch_headers(data) if info.base_offset > 0)
    later = tmp_path / segment_name(1)
    later.write_bytes(data[second:])
    with pytest.raises(OffsetOutOfRange, match="name the log's directory, which has what precedes it"):
        fold_file(str(later), kernels)


def test_a_file_is_asked_for_no_offset_that_it_does_not_hold(kernels: Kernels) -> None:
    with pytest.raises(OffsetOutOfRange, match=r"^offset 3837 lies outside 0\.\.3836$"):
        fold_file(str(CLUSTER / "c1" / SEGMENT), kernels, 3837)
    with pytest.raises(UsageError, match="a snapshot holds one offset, 3829"):
        fold_file(str(CLUSTER / "c1" / LOG_DIRECTORY / checkpoint_name(LAST)), kernels, 145)


def test_a_file_that_is_none_is_refused(kernels: Kernels, tmp_path: Path) -> None:
    for name in ("nowhere", checkpoint_name(LAST), "."):
        with pytest.raises(DirectoryError, match=r"there is no such file|is a directory, not a file"):
            fold_file(str(tmp_path / name), kernels)


def test_an_offset_behind_the_end_is_refused(kernels: Kernels) -> None:
    with pytest.raises(OffsetOutOfRange, match=r"^offset 3837 lies outside 0\.\.3836$"):
        fold_log(open_offline(str(CLUSTER / "c1"), kernels), kernels, 3837)


def test_a_damaged_snapshot_is_passed_over_while_the_log_holds_what_it_held(kernels: Kernels, copy: Path) -> None:
    path = copy / LOG_DIRECTORY / checkpoint_name(LAST)
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    assert fold_log(open_offline(str(copy), kernels), kernels).image == folded(CLUSTER / "c1" / SEGMENT).image
    (copy / SEGMENT).rename(copy / LOG_DIRECTORY / segment_name(3829))  # as if it began there
    with pytest.raises(CorruptionError, match="crc"):
        fold_log(open_offline(str(copy), kernels), kernels, 3829)


def test_a_log_that_begins_later_needs_a_snapshot(kernels: Kernels, copy: Path) -> None:
    (copy / SEGMENT).unlink()
    (copy / LOG_DIRECTORY / segment_name(3829)).touch()
    only(copy, LAST)
    assert fold_log(open_offline(str(copy), kernels), kernels).image == folded(CLUSTER / "c1" / SEGMENT, 3829).image
    with pytest.raises(OffsetOutOfRange, match="no snapshot at or below offset 3000, and the log begins at 3829"):
        fold_log(open_offline(str(copy), kernels), kernels, 3000)
    only(copy)
    with pytest.raises(OffsetOutOfRange, match="no snapshot at or below offset 3829"):
        fold_log(open_offline(str(copy), kernels), kernels)


def test_a_snapshot_that_the_log_does_not_reach_back_to_is_none(kernels: Kernels, copy: Path) -> None:
    """What lies between them is gone, so an image from both would be of no log at all."""
    earlier = min(open_offline(str(copy), kernels).checkpoints)
    (copy / SEGMENT).unlink()
    (copy / LOG_DIRECTORY / segment_name(3829)).touch()
    only(copy, earlier)
    assert earlier.offset < 3829
    with pytest.raises(OffsetOutOfRange, match="no snapshot at or below offset 3829, and the log begins at 3829"):
        fold_log(open_offline(str(copy), kernels), kernels)


def test_two_snapshots_without_what_lies_between_make_two_images(kernels: Kernels, copy: Path) -> None:
    (copy / SEGMENT).unlink()
    log = open_offline(str(copy), kernels)
    whole = open_offline(str(CLUSTER / "c1"), kernels)
    assert two_images(log, kernels, 2447, LAST.offset) == two_images(whole, kernels, 2447, LAST.offset)
    with pytest.raises(OffsetOutOfRange):
        two_images(log, kernels, 2447, LAST.offset - 1)


def test_a_record_that_contradicts_the_log_is_named(kernels: Kernels, copy: Path) -> None:
    bad = encode_metadata_record(RemoveTopicRecord(topic_id=Uuid(b"x" * 16)), 0)
    with (copy / SEGMENT).open("ab") as file:
        file.write(kernels.encode_values([bad], base_offset=3836, leader_epoch=3, timestamp_ms=1))
    log = open_offline(str(copy), kernels)
    assert fold_log(log, kernels, 3836).image.brokers
    with pytest.raises(ImageFailed, match=r"^REMOVE_TOPIC_RECORD at offset 3836 .*: there is no topic with id"):
        fold_log(log, kernels)


def test_what_is_no_metadata_record_is_named(kernels: Kernels, copy: Path) -> None:
    with (copy / SEGMENT).open("ab") as file:
        file.write(kernels.encode_values([b"value"], base_offset=3836, leader_epoch=3, timestamp_ms=1))
    with pytest.raises(ImageFailed, match=r"^record at offset 3836 .*: it is not a metadata record: .*118"):
        fold_log(open_offline(str(copy), kernels), kernels)


def test_a_user_log_has_no_image(kernels: Kernels, tmp_path: Path) -> None:
    disk = RealDisk.open_directory(str(tmp_path / "n1"), kernels, create=True)
    voters = VoterSet([Voter(ReplicaKey(1), (Endpoint("CONTROLLER", "h", 1),))])
    format_directory(disk, kernels, FormatOptions("cluster", 1, Uuid(b"d" * 16), voters), now_ms=1)
    with pytest.raises(DirectoryError, match="it holds user records"):
        fold_log(open_offline(str(tmp_path / "n1"), kernels), kernels)


def test_an_empty_metadata_log_has_an_empty_image(kernels: Kernels, tmp_path: Path) -> None:
    disk = RealDisk.open_directory(str(tmp_path / "n1"), kernels, create=True)
    voters = VoterSet([Voter(ReplicaKey(1), (Endpoint("CONTROLLER", "h", 1),))])
    options = FormatOptions("cluster", 1, Uuid(b"d" * 16), voters, LogKind.METADATA)
    format_directory(disk, kernels, options, now_ms=1)
    assert fold_log(open_offline(str(tmp_path / "n1"), kernels), kernels).image == EMPTY


def test_two_images_of_one_log_share_what_did_not_change(kernels: Kernels) -> None:
    log = open_offline(str(CLUSTER / "c1"), kernels)
    before, after = two_images(log, kernels, 1835, 1836)
    assert [each.words for each in differences(before, after)] == ["broker 13: fenced true -> false"]
    assert before.topics is after.topics
    with pytest.raises(UsageError, match=r"offset 5 is below 6; give the earlier one first"):
        two_images(log, kernels, 6, 5)


# --- snapshots of our own ---------------------------------------------------------------------------------------------


def test_a_snapshot_of_ours_is_kafkas_record_for_record(kernels: Kernels, copy: Path) -> None:
    """The image of Kafka's log at the offset of its last checkpoint, written by us into the place of that."""
    log = open_offline(str(copy), kernels)
    theirs = log.checkpoint_state(LAST)
    held = fold_snapshot(log, kernels, LAST)
    only(copy)
    fold = fold_log(log, kernels, LAST.offset)
    times = CheckpointTimes.at(1795242952649)
    batches = snapshot_batches(kernels, fold.image, fold.place, times, theirs.kraft_version, theirs.voters)
    state = write_snapshot(RealDisk(str(copy), kernels), kernels, LOG_DIRECTORY, LAST, batches)
    assert state == theirs
    assert log.checkpoints == [LAST]
    assert [batch.info.leader_epoch for batch in log.checkpoint_batches(LAST)] == [3, 3, 3]
    again = fold_snapshot(log, kernels, LAST)
    assert (again.image, again.place) == (held.image, held.place)
    assert not list((copy / LOG_DIRECTORY).glob("*.part"))


def test_two_replicas_write_the_same_snapshot(kernels: Kernels) -> None:
    """KIP-630: Snapshot(K, N) == Snapshot(J, N), byte for byte but for when they were written."""
    written = []
    for replica in ("c1", "c2", "c3"):
        fold = fold_log(open_offline(str(CLUSTER / replica), kernels), kernels, 3700)
        batches = snapshot_batches(kernels, fold.image, fold.place, CheckpointTimes.at(5), 0, None)
        written.append(b"".join(batches))
    assert written[0] == written[1] == written[2]


def test_a_large_image_is_written_in_batches_that_kafka_takes(kernels: Kernels) -> None:
    topics = (
        TopicRecord(name=f"{number:06}" + "x" * 200, topic_id=Uuid(number.to_bytes(16, "big")))
        for number in range(50_000)
    )
    level = FeatureLevelRecord(name="metadata.version", feature_level=30)
    image = EMPTY.apply([level, *topics])
    batches = list(snapshot_batches(kernels, image, Place(9, 2, 7), CheckpointTimes.at(5), 0, None))
    assert len(batches) == 4
    assert max(map(len, batches)) <= BATCH_BYTES_MAX
    infos = [kernels.batch_headers(batch)[0] for batch in batches]
    assert [info.base_offset for info in infos[1:]] == [info.last_offset + 1 for info in infos[:-1]]
    assert sum(info.records_count for info in infos) == 50_000 + 1 + 2


def test_an_image_that_cannot_be_said_leaves_no_snapshot(kernels: Kernels, copy: Path) -> None:
    """No log says its metadata.version less than it holds; should one, nothing is written of it."""
    only(copy)
    broken = EMPTY.apply([TopicRecord(name="t", topic_id=Uuid(b"t" * 16))])
    batches = snapshot_batches(kernels, broken, Place(5, 1, 1), CheckpointTimes.at(5), 0, None)
    with pytest.raises(ImageFailed, match=r"metadata\.version"):
        write_snapshot(RealDisk(str(copy), kernels), kernels, LOG_DIRECTORY, OffsetAndEpoch(5, 1), batches)
    assert open_offline(str(copy), kernels).checkpoints == []
