"""Snapshots: fetched in pieces, checked, named, served; and logs that begin behind one."""

import contextlib
import os
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fastquorum.errors import (
    CorruptionError,
    DirectoryError,
    FsyncFailed,
    OffsetOutOfRange,
    ProtocolFatal,
    StorageFailed,
)
from fastquorum.kernels import Kernels
from fastquorum.kernels.producers import Stamp
from fastquorum.storage.findings import Finding, Severity
from fastquorum.storage.identity import Identity, LogKind
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log import scanning
from fastquorum.storage.log.checkpoint import CheckpointState, CheckpointTimes, checkpoint_batches
from fastquorum.storage.log.mark import ANEW, LogPosition, write_mark
from fastquorum.storage.log.snapshots import Snapshots, find_snapshots, write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY, ZERO_CHECKPOINT, parse_checkpoint, part_name, segment_name
from fastquorum.storage.offline import OfflineLog
from fastquorum.storage.startup import first_voters
from fastquorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, Voter, VoterSet
from tests.odd_files import linked_to_itself, linked_to_nothing, turned_into_directory

from .fake_disk import FakeFile
from .logs import Rig, checkpoint, checkpoint_path, every_flip

VOTERS = VoterSet([Voter(ReplicaKey(1), (Endpoint("CONTROLLER", "h", 1),), 0, 1)])
FETCHED = OffsetAndEpoch(50, 2)


def rig_with_log(kernels: Kernels) -> Rig:
    """Epoch 1, offsets 0 to 19, three segments; the last batches are not synced."""
    rig = Rig(kernels)
    for number in range(17):
        rig.append(1, b"%d" % number)
    rig.flush()
    rig.log.maintain(0)
    for number in range(17, 20):
        rig.append(1, b"%d" % number)
    return rig


def finished(rig: Rig) -> list[OffsetAndEpoch]:
    return [found for name in rig.disk.list(LOG_DIRECTORY) if (found := parse_checkpoint(name)) is not None]


# --- fetching and serving ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece_bytes", [1, 7, 61, 10_000])
def test_a_snapshot_in_pieces_is_the_snapshot(kernels: Kernels, piece_bytes: int) -> None:
    rig = rig_with_log(kernels)
    data = checkpoint(kernels, FETCHED, voters=VOTERS, values=[b"x" * 40, b"y"])
    rig.fetch(FETCHED, data, piece_bytes)
    snapshots = rig.log.snapshots
    assert snapshots.latest is None
    assert snapshots.size_bytes(FETCHED) == -1
    state = snapshots.finish_part(FETCHED)
    assert state == CheckpointState(4, 1, VOTERS)
    assert snapshots.latest_state == state
    assert rig.log.snapshot_state is None  # the log starts at 0 and tells itself
    assert snapshots.latest == snapshots.earliest == FETCHED
    assert snapshots.size_bytes(FETCHED) == len(data)
    assert snapshots.read(FETCHED, 0, len(data) + 5) == data
    assert snapshots.read(FETCHED, 13, 20) == data[13:33]
    assert rig.disk.durable_entries[checkpoint_path(FETCHED)].durable == data
    assert not any(name.endswith(".part") for name in rig.disk.list(LOG_DIRECTORY))
    assert rig.log.end_offset == 20


def test_another_beginning_drops_what_was_fetched_before(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    other = OffsetAndEpoch(60, 3)
    rig.fetch(other, b"begun, never ended")
    rig.fetch(FETCHED, b"begun, begun again")
    rig.fetch(FETCHED, checkpoint(kernels, FETCHED))
    assert [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".part")] == [part_name(FETCHED)]
    rig.log.snapshots.finish_part(FETCHED)
    assert finished(rig) == [FETCHED]
    rig.fetch(other, b"begun")
    rig.log.snapshots.drop_part()
    rig.log.snapshots.drop_part()
    assert not rig.disk.exists(f"{LOG_DIRECTORY}/{part_name(other)}")


def test_a_piece_that_does_not_continue_is_a_bug_of_the_caller(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    with pytest.raises(AssertionError, match="without a beginning"):
        rig.log.snapshots.write_part(FETCHED, 5, b"x")
    rig.log.snapshots.write_part(FETCHED, 0, b"abc")
    for snapshot, position in ((FETCHED, 2), (FETCHED, 4), (OffsetAndEpoch(50, 3), 3)):
        with pytest.raises(AssertionError, match="does not continue"):
            rig.log.snapshots.write_part(snapshot, position, b"x")


def test_a_part_does_not_outlive_its_process(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.fetch(FETCHED, checkpoint(kernels, FETCHED))
    for again in (rig.reopen(rig.disk.copy()), rig):
        again.flush()
        again.log.close()
        assert not any(name.endswith(".part") for name in again.disk.list(LOG_DIRECTORY))


def test_a_damaged_snapshot_is_gone_and_nothing_else_has_changed(kernels: Kernels) -> None:
    """A bit of every byte; every length; and bytes behind the end."""
    rig = rig_with_log(kernels)
    whole = checkpoint(kernels, FETCHED, voters=VOTERS)
    rig.log.request_flush()
    before, facts = rig.disk.contents(), (rig.log.end_offset, rig.log.generation, rig.log.last_epoch)
    damaged = [whole[:size] for size in range(len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in range(len(whole))]
    damaged += [whole + b"\0", whole + bytes(100), whole + whole]
    for data in damaged:
        rig.fetch(FETCHED, data, 400)
        with pytest.raises(CorruptionError) as caught:
            rig.log.snapshots.finish_part(FETCHED)
        assert caught.value.path.endswith(part_name(FETCHED))
        assert rig.disk.contents() == before
        assert rig.log.snapshots.latest is None
    assert (rig.log.end_offset, rig.log.generation, rig.log.last_epoch) == facts
    assert not rig.log.failed
    rig.install(FETCHED, whole)


def test_a_whole_file_that_is_no_snapshot_of_that_name_is_refused(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    good = checkpoint(kernels, FETCHED)
    header, data, footer = (good[info.position :][: info.size_bytes] for info in kernels.batch_headers(good))
    later = kernels.encode_values([b"state"], base_offset=3, leader_epoch=2, timestamp_ms=2)
    other_epoch = checkpoint(kernels, OffsetAndEpoch(50, 3))
    refused = [data, header, header + data, other_epoch, good + later, header + footer, data + footer]
    for order in ((data, header, footer), (header, header, footer), (header, footer, footer), (footer, header, footer)):
        moved = [bytearray(batch) for batch in order]
        for offset, batch in enumerate(moved):
            kernels.stamp_batch(batch, offset, 2)
        refused.append(b"".join(moved))
    for each in refused:
        rig.fetch(FETCHED, each)
        with pytest.raises(CorruptionError):
            rig.log.snapshots.finish_part(FETCHED)


# --- beginning anew ---------------------------------------------------------------------------------------------------


def test_a_log_begins_anew_behind_a_snapshot(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.disk.write_file(checkpoint_path(OffsetAndEpoch(9, 1)), checkpoint(kernels, OffsetAndEpoch(9, 1)))
    rig.disk.write_file(ZERO_CHECKPOINT, checkpoint(kernels, OffsetAndEpoch(0, 0)))
    rig = rig.reopen()
    rig.log.producers.appended(Stamp(7, 0, 0, 1), 0, 1)
    generation = rig.log.generation
    rig.install(FETCHED, checkpoint(kernels, FETCHED, voters=VOTERS))
    for log in (rig.log, rig.reopen(rig.disk.copy()).log):
        assert (log.start_offset, log.end_offset, log.flushed_end, log.last_epoch) == (50, 50, 50, 2)
        assert log.durable_mark.at == LogPosition(50, 50, 0)
        assert log.epochs.entries() == []
        assert log.snapshots.latest == log.snapshots.earliest == FETCHED
        assert log.snapshot_state == CheckpointState(4, 1, VOTERS)
        assert [log.end_offset_for(epoch) for epoch in (0, 1, 2, 3)] == [(2, 50)] * 4
        assert log.read(50, 100) == b""
        assert (log.epoch_for(49), log.epoch_for(50)) == (-1, -1)
        assert len(log.producers) == 0
        assert log.producers.end_offset == 50
        with pytest.raises(OffsetOutOfRange):
            log.read(49, 100)
        with pytest.raises(OffsetOutOfRange):
            log.truncate_to(49)
    assert rig.log.generation == generation + 1
    assert sorted(finished(rig)) == [(0, 0), (50, 2)]
    segments = [name for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".log")]
    assert segments == [f"{50:020d}.log"]


def test_a_log_behind_a_snapshot_is_a_log_like_any_other(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.install(FETCHED)
    for number in range(30):
        rig.append(2 + number // 20, b"n%d" % number)
    assert [rig.log.end_offset_for(epoch) for epoch in (1, 2, 3, 9)] == [(2, 50), (2, 70), (3, 80), (3, 80)]
    rig.flush()
    rig.log.maintain(0)
    assert rig.log.flushed_end == 80
    assert rig.log.truncate_to(75) == 75
    rig.append(4, b"after")
    values = rig.values()
    assert values[0] == (50, 2, b"n0")
    assert values[-1] == (75, 4, b"after")
    assert len(values) == 26
    assert rig.reopen(rig.disk.copy()).values() == values
    rig.flush()
    rig.log.close()
    again = rig.reopen()
    assert again.values() == values
    assert again.log.truncate_to(50) == 50
    assert (again.log.last_epoch, again.log.end_offset_for(2)) == (2, (2, 50))
    assert again.reopen(again.disk.copy()).log.last_epoch == 2


def test_below_the_first_epoch_the_earliest_snapshot_is_all_that_is_known(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.install(OffsetAndEpoch(50, 4))
    rig.append(6, b"x")
    assert [rig.log.end_offset_for(epoch) for epoch in (3, 4, 5, 6)] == [(4, 50), (4, 50), (4, 50), (6, 51)]


def test_an_epoch_that_goes_on_behind_the_snapshot(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.install(FETCHED)
    rig.append(2, b"x")
    assert [rig.log.end_offset_for(epoch) for epoch in (1, 2, 3)] == [(2, 50), (2, 51), (2, 51)]


def test_a_snapshot_below_a_diverging_tail_takes_its_place(kernels: Kernels) -> None:
    """Its epoch is later: what the log has behind its end was never committed. One begins where a segment did."""
    rig = rig_with_log(kernels)
    base = rig.log._segments[1].base_offset
    for offset in (5, base, 20):
        each = rig_with_log(kernels)
        each.install(OffsetAndEpoch(offset, 2))
        for log in (each.log, each.reopen().log):
            assert (log.start_offset, log.end_offset, log.last_epoch) == (offset, offset, 2)
        for number in range(4):
            each.append(2, b"%d" % number)
        expected = [(offset + number, 2, b"%d" % number) for number in range(4)]
        assert each.values() == each.reopen(each.disk.copy()).values() == expected


def test_a_snapshot_that_knows_no_more_than_the_log_is_refused(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    for snapshot in (OffsetAndEpoch(20, 1), OffsetAndEpoch(3, 1)):
        rig.fetch(snapshot, checkpoint(kernels, snapshot))
        rig.log.snapshots.finish_part(snapshot)
        before = rig.disk.contents()
        with pytest.raises(ProtocolFatal, match="lacks nothing"):
            rig.log.install_snapshot(snapshot)
        assert rig.disk.contents() == before
    assert rig.reopen().log.start_offset == 0


def test_a_snapshot_fetched_again_is_served_as_it_came_last(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    for data in (checkpoint(kernels, FETCHED), checkpoint(kernels, FETCHED, values=[b"other", b"times"])):
        rig.fetch(FETCHED, data)
        rig.log.snapshots.finish_part(FETCHED)
        assert rig.log.snapshots.size_bytes(FETCHED) == len(data)
        assert rig.log.snapshots.read(FETCHED, 0, 1_000) == data
    assert finished(rig) == [FETCHED]


def test_nothing_of_the_old_log_is_left_in_a_closed_directory(kernels: Kernels) -> None:
    """Index files of closed segments go, too, even where the new log begins at the base of one of them."""
    rig = rig_with_log(kernels)
    rig.flush()
    rig.log.close()
    base = [int(name[:20]) for name in rig.disk.list(LOG_DIRECTORY) if name.endswith(".index")][1]
    for snapshot in (OffsetAndEpoch(base, 2), FETCHED):
        again = rig.reopen(rig.disk.copy())
        again.install(snapshot)
        again.append(2, b"x")
        again.flush()
        again.log.close()
        assert OfflineLog(again.disk, kernels).verify().findings == []
        indexes = [name for name in again.disk.list(LOG_DIRECTORY) if name.endswith(".index")]
        assert indexes == [f"{snapshot.offset:020d}.index"]


def test_a_sync_under_way_says_nothing_of_the_new_log(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.log.request_flush()
    rig.log.request_flush()
    rig.install(FETCHED)
    rig.append(2, b"x")
    rig.log.request_flush()
    assert rig.log.flushed_end == 50
    assert rig.log.flush_done(rig.flusher.run(), 0) is None
    assert rig.log.flushed_end == 50
    result = rig.log.flush_done(rig.flusher.run(), 0)
    assert result is not None
    assert (result.end, rig.log.flushed_end) == (51, 51)
    assert not rig.flusher.pending


def test_one_snapshot_after_another(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.install(FETCHED)
    rig.install(OffsetAndEpoch(60, 2))
    rig.append(2, b"x")
    rig.install(OffsetAndEpoch(90, 3))
    assert finished(rig) == [(90, 3)]
    assert rig.reopen().log.end_offset == 90


# --- what a start finds -----------------------------------------------------------------------------------------------


def rig_with_finished(kernels: Kernels, snapshot: OffsetAndEpoch = FETCHED) -> Rig:
    """It was fetched and has its name; the log has not begun anew yet."""
    rig = rig_with_log(kernels)
    rig.fetch(snapshot, checkpoint(kernels, snapshot))
    rig.log.snapshots.finish_part(snapshot)
    return rig


def flip(rig: Rig, name: str, position: int) -> None:
    data = bytearray(rig.disk.read_file(name))
    data[position] ^= 1
    rig.disk.write_file(name, bytes(data))


def findings(rig: Rig) -> list[Finding]:
    return [each for each in OfflineLog(rig.disk, rig.kernels).verify().findings if "prepared zeros" not in each.text]


def test_a_start_completes_what_a_finished_snapshot_began(kernels: Kernels) -> None:
    for snapshot in (FETCHED, OffsetAndEpoch(21, 1), OffsetAndEpoch(5, 2)):
        rig = rig_with_finished(kernels, snapshot)
        (finding,) = findings(rig)
        assert finding.severity is Severity.NOTE
        assert "knows more than the log" in finding.text
        again = rig.reopen()
        assert (again.log.start_offset, again.log.end_offset) == (snapshot.offset, snapshot.offset)
        assert findings(again) == []


def test_a_snapshot_that_the_log_has_outgrown_changes_nothing(kernels: Kernels) -> None:
    for snapshot in (OffsetAndEpoch(20, 1), OffsetAndEpoch(7, 1)):
        rig = rig_with_finished(kernels, snapshot)
        again = rig.reopen(rig.disk.copy())
        assert again.values() == rig.values()
        assert (again.log.start_offset, again.log.snapshots.latest) == (0, snapshot)


def test_damage_below_the_mark_is_no_interrupted_install(kernels: Kernels) -> None:
    """The snapshot would replace the log, but what had been synced is looked at first."""
    for number in range(2):
        rig = rig_with_finished(kernels)
        base = segment_name(rig.log._segments[number].base_offset)
        flip(rig, f"{LOG_DIRECTORY}/{base}", 70)
        before = rig.disk.contents()
        with pytest.raises(CorruptionError) as caught:
            rig.reopen()
        assert caught.value.path.endswith(base)
        assert rig.disk.contents() == before


def test_a_damaged_snapshot_takes_no_logs_place(kernels: Kernels) -> None:
    """Nobody needs it: the log is used as it is, the file is left alone and not served; it can be fetched again."""
    for position in range(0, len(checkpoint(kernels, FETCHED)), 13):
        rig = rig_with_finished(kernels)
        older = OffsetAndEpoch(7, 1)
        rig.disk.write_file(checkpoint_path(older), checkpoint(kernels, older))
        flip(rig, checkpoint_path(FETCHED), position)
        damaged = rig.disk.read_file(checkpoint_path(FETCHED))
        (finding,) = findings(rig)
        assert (finding.severity, finding.path) == (Severity.CORRUPT, f"/fake/{checkpoint_path(FETCHED)}")
        again = rig.reopen()
        assert again.log.start_offset == 0
        assert again.values() == rig.values()
        snapshots = again.log.snapshots
        assert [finding.path in str(error) for error in snapshots.take_left_out()] == [True]
        assert snapshots.latest == older
        assert snapshots.size_bytes(FETCHED) == -1
        assert again.disk.read_file(checkpoint_path(FETCHED)) == damaged
    again.install(FETCHED)
    assert again.reopen().log.start_offset == 50


def test_a_snapshot_that_is_needed_and_damaged_is_refused_by_name(kernels: Kernels) -> None:
    installed, begun = rig_with_log(kernels), rig_with_finished(kernels)
    installed.install(FETCHED)
    installed.append(2, b"x")
    write_mark(begun.disk, kernels, LOG_DIRECTORY, LogPosition(50, 50, ANEW), [])
    for rig in (installed, begun):
        flip(rig, checkpoint_path(FETCHED), 30)
        before = rig.disk.contents()
        with pytest.raises(CorruptionError) as caught:
            rig.reopen()
        assert caught.value.path == f"/fake/{checkpoint_path(FETCHED)}"
        assert rig.disk.contents() == before
        assert not OfflineLog(rig.disk, kernels).verify().is_sound
        rig.disk.remove(checkpoint_path(FETCHED))
        before = rig.disk.contents()
        with pytest.raises(DirectoryError, match="starts at offset 50, but no checkpoint covers"):
            rig.reopen()
        assert rig.disk.contents() == before
        assert not OfflineLog(rig.disk, kernels).verify().is_sound


def test_an_install_cut_off_behind_its_mark_verifies_as_what_it_is(kernels: Kernels) -> None:
    rig = rig_with_finished(kernels)
    write_mark(rig.disk, kernels, LOG_DIRECTORY, LogPosition(50, 50, ANEW), [])
    rig.disk.remove(f"{LOG_DIRECTORY}/{segment_name(rig.log._segments[1].base_offset)}")
    (finding,) = findings(rig)
    assert (finding.severity, finding.offset) == (Severity.NOTE, 50)
    assert "the next start completes it" in finding.text
    assert rig.reopen().log.start_offset == 50


def test_files_of_two_replicas_are_not_made_one_log(kernels: Kernels) -> None:
    """A snapshot of an older epoch that ends behind the log: no replica ever had both."""
    rig = rig_with_log(kernels)
    rig.append(5, b"x")
    rig.disk.write_file(checkpoint_path(FETCHED), checkpoint(kernels, FETCHED))
    before = rig.disk.contents()
    with pytest.raises(DirectoryError, match="files of two replicas"):
        rig.reopen()
    assert rig.disk.contents() == before


def test_segments_that_vanished_are_not_made_up_for_by_a_snapshot(kernels: Kernels) -> None:
    rig = rig_with_finished(kernels)
    for name in rig.disk.list(LOG_DIRECTORY):
        if name.endswith(".log"):
            rig.disk.remove(f"{LOG_DIRECTORY}/{name}")
    rig.disk.write_file(f"{LOG_DIRECTORY}/partition.metadata", b"")
    with pytest.raises(CorruptionError, match="missing_segment"):
        rig.reopen()
    rig.disk.remove(f"{LOG_DIRECTORY}/durable-mark")
    with pytest.raises(DirectoryError, match="segments are gone"):
        rig.reopen()


def test_a_flip_of_any_bit_behind_a_snapshot_is_detected_or_harmless(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.install(FETCHED)
    for number in range(4):
        rig.append(2 + number // 2, b"%d" % number)
    rig.flush()
    rig.log.close()
    expected = rig.reopen(rig.disk.copy()).values()
    assert findings(rig) == []
    for name, at, bad in every_flip(rig.disk, lambda name: 1 if name.endswith("mark") else 3):
        before = bad.contents()
        try:
            again = rig.reopen(bad)
        except (CorruptionError, DirectoryError):
            assert bad.contents() == before
            continue
        assert not name.endswith((".log", ".checkpoint")), (name, at)
        assert (again.values(), again.log.snapshots.latest) == (expected, FETCHED)


# --- the disk and its limits ------------------------------------------------------------------------------------------


PAGE = 4096


def test_a_large_snapshot_is_checked_window_by_window(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be larger than memory; and a snapshot is served without reading more than is asked for."""
    monkeypatch.setattr(scanning, "BLOCK_BYTES", PAGE)
    sizes = []

    def read(self: FakeFile, position: int, size_bytes: int) -> bytes:
        sizes.append(size_bytes)
        return plain_read(self, position, size_bytes)

    plain_read = FakeFile.read
    monkeypatch.setattr(FakeFile, "read", read)
    values = [
        kernels.encode_values([b"v" * 1000], base_offset=1 + at, leader_epoch=2, timestamp_ms=2) for at in range(40)
    ]
    whole = checkpoint(kernels, FETCHED, values=[b"v" * 1000] * 40)
    header, _, footer = kernels.batch_headers(whole)
    data = whole[: header.size_bytes] + b"".join(values) + whole[footer.position :]
    rig = rig_with_log(kernels)
    rig.fetch(FETCHED, data)
    sizes.clear()
    rig.log.snapshots.finish_part(FETCHED)
    assert len(sizes) > 10
    assert max(sizes) <= PAGE
    sizes.clear()
    assert rig.log.snapshots.read(FETCHED, 1_000, 64) == data[1_000:1_064]
    assert sizes == [64]


def test_a_disk_that_fails_stops_the_log(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.fetch(FETCHED, checkpoint(kernels, FETCHED))
    part = rig.log.snapshots._part
    assert part is not None
    part.file.fail_sync = True  # type: ignore[attr-defined]
    with pytest.raises(FsyncFailed):
        rig.log.snapshots.finish_part(FETCHED)
    assert rig.log.failed
    with pytest.raises(StorageFailed):
        rig.log.snapshots.write_part(FETCHED, 0, b"x")
    with pytest.raises(StorageFailed):
        rig.log.request_flush()
    rig.log.close()


def test_the_first_voters_are_known_where_kafka_has_removed_them(kernels: Kernels) -> None:
    """Kafka sweeps (0, 0) away with the other snapshots below the log's start."""
    identity = Identity("c", 1, VOTERS[0].key.directory_id, LogKind.METADATA, "t", VoterSet(), 1, "CONTROLLER", 0)
    rig = rig_with_log(kernels)
    assert first_voters(rig.disk, kernels, identity) == (VoterSet(), 0)
    rig.install(FETCHED, checkpoint(kernels, FETCHED, voters=VOTERS))
    assert first_voters(rig.disk, kernels, identity) == (VOTERS, 1)


# --- of our own -------------------------------------------------------------------------------------------------------

OWN = OffsetAndEpoch(12, 1)


def own_batches(kernels: Kernels) -> list[bytes]:
    times = CheckpointTimes.at(7)._replace(last_contained_ms=3)
    return list(checkpoint_batches(kernels, times, epoch=1, kraft_version=1, voters=VOTERS, values=[b"x" * 40, b"y"]))


def test_a_snapshot_of_ones_own_is_served_and_survives(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    state = write_snapshot(rig.disk, kernels, LOG_DIRECTORY, OWN, own_batches(kernels))
    assert state == CheckpointState(3, 1, VOTERS)
    assert rig.log.snapshots.latest is None, "the replica has not been told yet"
    rig.log.snapshots.add(OWN, state)
    data = b"".join(own_batches(kernels))
    assert (rig.log.snapshots.latest, rig.log.snapshots.latest_state) == (OWN, state)
    assert rig.log.snapshots.read(OWN, 0, 1 << 20) == data
    assert rig.disk.durable_entries[checkpoint_path(OWN)].durable == data
    rig.log.abandon()
    assert rig.reopen().log.snapshots.latest == OWN


def test_what_interrupts_a_snapshot_leaves_nothing_nor_does_a_crash(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)

    def batches() -> Iterator[bytes]:
        yield own_batches(kernels)[0]
        assert any(name.endswith(".part") for name in rig.disk.list(LOG_DIRECTORY))
        crashed = Rig(kernels, rig.disk.crash(random.Random(1)), rig.config)
        assert crashed.log.snapshots.latest is None
        assert not any(name.endswith(".part") for name in crashed.disk.list(LOG_DIRECTORY))
        raise InterruptedError

    with pytest.raises(InterruptedError):
        write_snapshot(rig.disk, kernels, LOG_DIRECTORY, OWN, batches())
    assert finished(rig) == []
    assert not any(name.endswith(".part") for name in rig.disk.list(LOG_DIRECTORY))


def test_a_fetched_part_and_a_draft_of_the_same_snapshot_do_not_meet(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.fetch(OWN, b"begun")
    write_snapshot(rig.disk, kernels, LOG_DIRECTORY, OWN, own_batches(kernels))
    rig.log.snapshots.drop_part()
    assert finished(rig) == [OWN]


# --- that nobody needs ------------------------------------------------------------------------------------------------

OLDER, LATEST = OffsetAndEpoch(5, 1), OffsetAndEpoch(12, 1)


def turned_into_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def turned_into_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as bound, contextlib.chdir(path.parent):  # a socket's path must be short
        bound.bind(path.name)


def turned_into_full_directory(path: Path) -> None:
    turned_into_directory(path)
    (path / "file").touch()


@pytest.mark.parametrize(
    "turn",
    [
        Path.unlink,
        turned_into_fifo,
        turned_into_socket,
        linked_to_nothing,
        linked_to_itself,
        turned_into_full_directory,
    ],
)
def test_an_older_one_that_is_no_file_is_left_out_and_goes_with_the_log_before_it(
    tmp_path: Path, kernels: Kernels, turn: Callable[[Path], None]
) -> None:
    disk = RealDisk.open_directory(str(tmp_path), kernels)
    disk.make_directory(LOG_DIRECTORY)
    for each in (OLDER, LATEST):
        write_snapshot(disk, kernels, LOG_DIRECTORY, each, own_batches(kernels))
    path = tmp_path / checkpoint_path(OLDER)
    snapshots = Snapshots(
        disk, kernels, LOG_DIRECTORY, find_snapshots(disk, kernels, LOG_DIRECTORY), contextlib.nullcontext
    )
    turn(path)
    assert snapshots.size_bytes(LATEST) > 0
    assert snapshots.size_bytes(OLDER) == -1
    assert list(snapshots.ids) == [LATEST]
    (why,) = snapshots.take_left_out()
    assert str(path) in str(why)
    assert snapshots.take_left_out() == []
    snapshots.remove_below(LATEST.offset)
    assert os.path.lexists(path) is (turn is turned_into_full_directory)
    snapshots.close()


def test_the_latest_is_needed_and_raises(tmp_path: Path, kernels: Kernels) -> None:
    disk = RealDisk.open_directory(str(tmp_path), kernels)
    disk.make_directory(LOG_DIRECTORY)
    write_snapshot(disk, kernels, LOG_DIRECTORY, LATEST, own_batches(kernels))
    snapshots = Snapshots(
        disk, kernels, LOG_DIRECTORY, find_snapshots(disk, kernels, LOG_DIRECTORY), contextlib.nullcontext
    )
    linked_to_nothing(tmp_path / checkpoint_path(LATEST))
    with pytest.raises(DirectoryError, match="is a link to what is not there"):
        snapshots.size_bytes(LATEST)
    assert snapshots.latest == LATEST


def test_a_damaged_one_of_a_later_epoch_does_not_cost_the_one_that_the_log_begins_behind(kernels: Kernels) -> None:
    rig = rig_with_log(kernels)
    rig.install(FETCHED, checkpoint(kernels, FETCHED, voters=VOTERS))
    rig.log.abandon()
    rig.disk.replace_file(checkpoint_path(FETCHED._replace(epoch=9)), b"")
    for _ in range(2):
        rig = rig.reopen()
        assert rig.log.snapshots.latest == FETCHED
        (why,) = rig.log.snapshots.take_left_out()
        assert "-0000000009.checkpoint: corrupt: checkpoint_header" in str(why)
        rig.log.abandon()
