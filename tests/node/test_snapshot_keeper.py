"""Snapshots of a replica's own: when they are taken, what is removed then, and what a failure costs. KIP-630; K42
(KAFKA-14238), K43 (KAFKA-14203), K46 (KAFKA-14300)."""

import errno
from typing import Any

import pytest

from fastquorum.config import MS, SECOND, QuorumConfig
from fastquorum.controller.image.image import Image
from fastquorum.errors import ImageFailed, StorageFailed
from fastquorum.kernels import SegmentFile
from fastquorum.node.metadata.snapshots import AGAIN_US, CLEAN_US
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name, join, parse_checkpoint, parse_segment
from fastquorum.storage.ports import FileMode
from fastquorum.types import OffsetAndEpoch, Uuid
from fastquorum.wire.messages.fetch import FetchResponse
from fastquorum.wire.records.cluster import BeginTransactionRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from fastquorum.wire.records.topics import RemoveTopicRecord
from tests.lane.builders import fetch_response
from tests.node.rig import Rig
from tests.node.test_controller_role import beat, register, registration, rig_of

HOUR_US = 3_600 * SECOND


def config_of(**fields: Any) -> QuorumConfig:
    """Snapshots by size alone, small segments, and nothing is ever too old or too much, unless a test says so."""
    fields = {
        "preallocate_bytes": 256,
        "segment_bytes": 1024,
        "snapshot_log_bytes": 1000,
        "snapshot_interval_us": 0,
        "retention_bytes": 0,
        "retention_us": 0,
        "idle_us_max": 0,
    } | fields
    return QuorumConfig(**fields)


def leader(**fields: Any) -> Rig:
    return rig_of(config=config_of(**fields)).lead()


def fill(rig: Rig, size_bytes: int) -> None:
    """Brokers register until the log has grown by so much."""
    end_bytes = rig.log.sizes().size_bytes + size_bytes
    number = rig.log.end_offset
    while rig.log.sizes().size_bytes < end_bytes:
        register(rig, broker_id=number % 100)
        number += 1


def take(rig: Rig) -> OffsetAndEpoch:
    """Let it take the snapshot that is due."""
    rig.pass_time(1)
    rig.snapshots.finish()
    report = rig.listener.snapshots[-1]
    assert report.error is None
    return report.snapshot


def two_taken(rig: Rig) -> tuple[OffsetAndEpoch, OffsetAndEpoch]:
    fill(rig, 1000)
    older = take(rig)
    fill(rig, 1000)
    return older, take(rig)


def image_of(rig: Rig) -> Image:
    controller = rig.replica._controller
    assert controller is not None
    return controller.replay.image


def held(rig: Rig) -> tuple[list[int], list[int]]:
    """Where segments begin and snapshots end, on the disk."""
    names = rig.disk.list(LOG_DIRECTORY)
    segments = [base for name in names if (base := parse_segment(name)) is not None]
    return segments, [each.offset for name in names if (each := parse_checkpoint(name)) is not None]


def reopened(rig: Rig, **fields: Any) -> Rig:
    """Killed, and started on what its disk holds."""
    rig.sync()
    return rig_of(files=rig.disk.contents(), state=rig.states.state, config=config_of(**fields))


def test_a_snapshot_is_taken_once_enough_was_committed() -> None:
    rig = leader()
    rig.pass_time(HOUR_US)
    assert rig.snapshots.begun == []
    fill(rig, 1000)
    end = rig.log.end_offset
    snapshot = take(rig)
    assert snapshot == OffsetAndEpoch(end, rig.replica.raft.epoch)
    assert rig.log.snapshots.latest == snapshot
    rig.pass_time(HOUR_US)
    assert len(rig.snapshots.begun) == 1, "nothing new was committed"


def test_a_snapshot_is_taken_after_a_while_if_anything_was_committed() -> None:
    rig = leader(snapshot_interval_us=HOUR_US, snapshot_log_bytes=10**9)
    rig.pass_time(HOUR_US + SECOND)
    rig.snapshots.finish()
    assert len(rig.snapshots.begun) == 1
    rig.pass_time(2 * HOUR_US)
    assert len(rig.snapshots.begun) == 1, "it covers everything"
    register(rig)
    rig.pass_time(1)
    rig.snapshots.finish()
    assert len(rig.snapshots.begun) == 2, "the hour had long passed"


def test_while_one_is_written_requests_are_decided_and_no_second_one_begins() -> None:
    rig = leader()
    fill(rig, 1000)
    rig.pass_time(1)
    end = rig.snapshots.begun[0].offset
    fill(rig, 2000)
    rig.pass_time(SECOND)
    assert len(rig.snapshots.begun) == 1
    rig.snapshots.finish()
    assert rig.log.snapshots.latest is not None
    assert rig.log.snapshots.latest.offset == end, "it holds what was committed when it began"
    rig.pass_time(1)
    assert len(rig.snapshots.begun) == 2


def test_a_follower_takes_its_own() -> None:
    source = leader(segment_bytes=10**6)
    fill(source, 1000)
    end, epoch = source.log.end_offset, source.replica.raft.epoch
    rig = rig_of(1, 2, 3, config=config_of())
    connection = rig.follow(2, epoch)
    ((header, _),) = rig.requests_on(connection)
    records = source.log.read(0, 10**6)
    answer = fetch_response(header.correlation_id, records, leader_id=2, epoch=epoch, high_watermark=end)
    rig.replica.on_frame(connection, answer, rig.now_us)
    rig.sync()
    rig.replica.on_tick(rig.now_us)
    assert rig.snapshots.begun == [OffsetAndEpoch(end, epoch)]
    rig.snapshots.finish()
    assert held(rig)[1] == [end]


def test_a_restart_begins_with_the_snapshot_and_has_the_same_image() -> None:
    rig = leader()
    fill(rig, 1000)
    take(rig)
    beat(rig, register(rig, broker_id=120), broker_id=120)
    image = image_of(rig)
    again = reopened(rig).lead()
    again.pass_time(1)
    register(again, broker_id=121)  # it decides, so it has read everything
    assert image_of(again).brokers.get(120) == image.brokers.get(120)
    assert image_of(again).brokers.get(121) is not None
    assert len(image_of(again).brokers) == len(image.brokers) + 1


def test_what_is_not_committed_is_in_no_snapshot() -> None:
    rig = leader()
    fill(rig, 400)
    connection = rig.accept()
    for number in range(20):
        rig.ask(connection, registration(120 + number), 4)
    rig.pass_time(1)
    assert rig.snapshots.begun == [], "nothing of it is on a disk yet"
    rig.sync()
    rig.pass_time(1)
    assert len(rig.snapshots.begun) == 1


def test_no_snapshot_cuts_a_transaction_in_two() -> None:
    plain = leader(snapshot_log_bytes=10**9)
    fill(plain, 1000)
    plain.append(encode_metadata_record(BeginTransactionRecord(name="half"), 0))
    rig = reopened(plain)
    rig.shell.refuse_appends(True)  # so that nobody ends it
    rig.lead()
    rig.pass_time(SECOND)
    assert rig.snapshots.begun == []
    rig.shell.refuse_appends(False)
    rig.work()
    rig.sync()
    rig.pass_time(1)
    assert len(rig.snapshots.begun) == 1


# --- what is removed --------------------------------------------------------------------------------------------------


def test_what_is_too_much_goes_once_a_later_snapshot_covers_it() -> None:
    rig = leader(retention_bytes=6000)
    taken: list[int] = []
    for _ in range(6):
        fill(rig, 1000)
        taken.append(take(rig).offset)
    segments, snapshots = held(rig)
    assert 0 < rig.log.start_offset == segments[0] <= snapshots[0]
    assert snapshots[-1] == taken[-1]
    assert set(snapshots) < set(taken)
    sizes = rig.log.snapshots.size_bytes
    total = rig.log.sizes().size_bytes + sum(sizes(each) for each in rig.log.snapshots.ids)
    assert total <= 6000 or len(snapshots) == 1
    image = image_of(rig)
    again = reopened(rig).lead()
    again.pass_time(1)
    assert image_of(again) == image


def test_what_is_too_old_goes_once_a_later_snapshot_covers_it() -> None:
    rig = leader(retention_us=24 * HOUR_US)
    for _ in range(2):
        fill(rig, 1500)
        take(rig)
        rig.wall_clock_ms += 20 * HOUR_US // MS
    segments, (first, second) = held(rig)
    assert segments[0] == 0
    rig.pass_time(CLEAN_US)
    segments, snapshots = held(rig)
    assert snapshots == [first, second], "what the first holds is old, and it is needed for that"
    assert 0 < segments[0] <= first
    rig.wall_clock_ms += 20 * HOUR_US // MS
    rig.pass_time(CLEAN_US)
    segments, snapshots = held(rig)
    assert snapshots == [second]
    assert first < segments[0] <= second


def test_without_limits_nothing_goes() -> None:
    rig = leader()
    for _ in range(4):
        fill(rig, 1000)
        take(rig)
    rig.wall_clock_ms *= 2
    rig.pass_time(10 * CLEAN_US)
    segments, snapshots = held(rig)
    assert (segments[0], len(snapshots)) == (0, 4)


def test_a_follower_that_lacks_what_is_gone_is_sent_the_snapshot() -> None:
    rig = leader(retention_bytes=1)
    for _ in range(3):
        fill(rig, 1500)
        latest = take(rig)
    assert rig.log.start_offset > 0
    connection = rig.accept()
    rig.fetch(connection, 9, 0)
    (answer,) = rig.answers(connection)
    assert isinstance(answer, FetchResponse)
    named = answer.responses[0].partitions[0].snapshot_id
    assert OffsetAndEpoch(named.end_offset, named.epoch) == latest


@pytest.mark.parametrize("limits", [{"retention_us": 24 * HOUR_US}, {"retention_bytes": 10**6}])
@pytest.mark.parametrize("content", [None, b"", b"\0" * 500])
def test_an_older_snapshot_that_cannot_be_read_is_told_once_and_stops_nothing(
    content: bytes | None, limits: dict[str, int]
) -> None:
    rig = leader()
    older, latest = two_taken(rig)
    rig = reopened(rig, **limits)
    name = join(LOG_DIRECTORY, checkpoint_name(older))
    if content is None:
        rig.disk.remove(name)
    else:
        file = rig.disk.open(name)
        file.truncate(0)
        file.write(0, content)
    rig.lead()
    for _ in range(3):
        rig.pass_time(CLEAN_US)
    assert not rig.replica.stopped
    assert rig.log.snapshots.latest == latest
    is_seen = content is None or "retention_us" in limits
    assert (older in rig.log.snapshots) is not is_seen
    sentences = [sentence for event, sentence in rig.listener.notices if event == "snapshot_left_out"]
    assert [name in each for each in sentences] == [True] * is_seen
    rig.wall_clock_ms += 48 * HOUR_US // MS
    fill(rig, 1500)
    third = take(rig)
    rig.wall_clock_ms += 48 * HOUR_US // MS
    rig.pass_time(CLEAN_US)
    if "retention_us" in limits:
        assert held(rig)[1] == [third.offset], "what is left out goes with what is as old"


def test_a_disk_that_fails_under_an_older_snapshot_stops_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = leader()
    older, _ = two_taken(rig)
    opens = rig.disk.open

    def failing(name: str, mode: FileMode = "open") -> SegmentFile:
        if name.endswith(checkpoint_name(older)):
            raise StorageFailed(detail="injected", operation="open", path=name, errno_code=errno.EIO)
        return opens(name, mode)

    monkeypatch.setattr(rig.disk, "open", failing)
    rig.pass_time(CLEAN_US)
    assert rig.replica.stopped
    assert isinstance(rig.replica.error, StorageFailed)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_without_room_there_is_none_and_it_is_tried_again() -> None:
    rig = leader()
    fill(rig, 1000)
    rig.pass_time(1)
    rig.disk.room_bytes = 0
    rig.snapshots.finish()
    report = rig.listener.snapshots[-1]
    assert isinstance(report.error, StorageFailed)
    assert report.error.lacks_room
    assert not rig.replica.stopped
    rig.disk.room_bytes = None
    rig.pass_time(AGAIN_US - SECOND)
    assert len(rig.snapshots.begun) == 1
    rig.pass_time(2 * SECOND)
    rig.snapshots.finish()
    assert rig.listener.snapshots[-1].error is None
    assert held(rig)[1] == [rig.snapshots.begun[-1].offset]


def test_a_disk_that_fails_under_a_snapshot_stops_the_replica() -> None:
    rig = leader()
    fill(rig, 1000)
    rig.pass_time(1)
    rig.disk.fails_renames = True
    rig.snapshots.finish()
    assert rig.replica.stopped
    assert isinstance(rig.replica.error, StorageFailed)


def test_a_record_that_does_not_fit_leaves_no_snapshot_behind() -> None:
    """K43: what the image lacks, the log alone holds."""
    rig = leader()
    fill(rig, 900)
    rig.append(*[encode_metadata_record(RemoveTopicRecord(topic_id=Uuid(b"t" * 16)), 0)] * 20)
    rig.sync()
    assert isinstance(rig.replica.error, ImageFailed)
    assert rig.snapshots.begun == []
    assert held(rig)[1] == []
