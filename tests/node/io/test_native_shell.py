"""The native shell over real files and sockets: commits, parked Fetches, followers, frozen lanes, ends of sessions."""

import errno
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastquorum.kernels.codes import EVENT_FRAME, AppendVerdict
from fastquorum.kernels.lane import LaneMode
from fastquorum.kernels.pure import batch_headers, encode_values
from fastquorum.node.io.clock import now_us
from fastquorum.storage.log.preparing import AHEAD_LEAST_BYTES
from tests.lane.builders import control_batch, crowded_batch, value_batch
from tests.lane.native_mutants import HAS_MUTANTS, IN_THE_SHELL, planted
from tests.privileges import fill, mounted

from .conftest import Arm
from .native_rig import Rig, is_readable, native, result, until


def end_of(rig: Rig, node_id: int) -> int:
    """How far this peer has fetched, as the lane knows it."""
    return next(peer.end_offset for peer in rig.shell.state().peers if peer.key.id == node_id)


# --- leading ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[0, 60_000_000], ids=["sleeps", "busy"])
def rig(make_rig: Callable[..., Rig], request: pytest.FixtureRequest) -> Rig:
    """Its sockets' thread sleeps at once, or never in the time of a test."""
    return make_rig(busy_poll_us=request.param)


def test_a_record_is_committed_when_a_voter_has_fetched_past_it_and_the_own_sync_is_done(rig: Rig) -> None:
    rig.shell.hold_syncs(True)
    rig.lead()
    second, third = rig.voter(2), rig.voter(3)
    slot = rig.append()
    assert second.answer().offsets == third.answer().offsets == [1]
    second.fetch(2)
    until(lambda: end_of(rig, 2) == 2, "the voter's Fetch is seen")
    assert not slot.done()
    assert rig.shell.high_watermark == 1
    rig.shell.hold_syncs(False)
    assert result(slot) == 1
    assert rig.shell.high_watermark == 2


def test_the_own_sync_alone_commits_nothing_but_with_a_voters_fetch_it_does(rig: Rig) -> None:
    rig.lead()
    second = rig.voter(2)
    slot = rig.append()
    until(lambda: rig.shell.flushed_end == 2, "the own sync")
    assert not slot.done()
    assert second.answer().offsets == [1]
    second.fetch(2)
    assert result(slot) == 1


def bytes_written_during_a_sync_do_not_count_when_it_ends(rig: Rig, arm: Arm) -> None:
    """Lane rule 4: the second sync, which fails, would have been the one that made them durable."""
    rig.shell.hold_syncs(True)
    rig.lead()
    second = rig.voter(2)
    rig.append()
    assert second.answer().offsets == [1]
    second.fetch(2)
    until(lambda: end_of(rig, 2) == 2, "the voter waits, and so the next batch is written at once")
    rig.append()
    assert second.answer().offsets == [2]
    assert rig.shell.end_offset == 3
    arm("before-flush-submit", "eio", 0, 2)
    rig.shell.hold_syncs(False)
    until(lambda: rig.shell.has_failed, "the second sync fails")
    assert rig.shell.flushed_end == 2


def test_bytes_written_during_a_sync_do_not_count_when_it_ends(make_rig: Callable[..., Rig], arm: Arm) -> None:
    bytes_written_during_a_sync_do_not_count_when_it_ends(make_rig(), arm)


if HAS_MUTANTS:  # in the checked build

    def test_a_shell_that_samples_the_end_after_the_sync_is_caught(make_rig: Callable[..., Rig], arm: Arm) -> None:
        (mutant,) = IN_THE_SHELL
        with planted(mutant), pytest.raises(AssertionError):
            bytes_written_during_a_sync_do_not_count_when_it_ends(make_rig(), arm)


def test_a_single_voter_commits_by_its_own_sync(rig: Rig) -> None:
    rig.lead([1])
    slots = [rig.append(b"%d" % number) for number in range(100)]
    assert [result(slot) for slot in slots] == list(range(1, 101))
    headers = batch_headers(rig.stored())
    assert headers[-1].last_offset == 100
    assert all(header.crc_valid for header in headers)


def test_a_parked_fetch_is_answered_by_an_append_of_another_thread(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    assert peer.is_silent()
    thread = threading.Thread(target=rig.append, args=(b"from another thread",))
    thread.start()
    answer = peer.answer()
    thread.join()
    assert answer.offsets == [1]
    assert b"from another thread" in answer.records


def test_what_is_pushed_later_gathers_until_it_is_pushed(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    slots = [native.Slot() for _ in range(3)]
    assert [rig.shell.append_slot(b"later", slot, is_pushed_later=True) for slot in slots] == [1, 2, 3]
    assert rig.shell.end_offset == 1
    assert peer.is_silent()
    rig.shell.push()
    assert rig.shell.end_offset == 4
    assert peer.answer().offsets == [1], "one batch"
    peer.fetch(4)
    assert [result(slot) for slot in slots] == [1, 2, 3]


def test_many_appends_at_once_are_one_batch_and_each_is_told_where_it_lies(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    box = native.Mailbox()
    values, letters = [b"%d" % number for number in range(300)], [object() for _ in range(300)]
    assert rig.shell.append_all(values, box, letters) == list(range(1, 301))
    assert peer.answer().offsets == [1], "one batch"
    peer.fetch(301)
    until(lambda: is_readable(box), "they are committed")
    assert box.collect() == [(letter, offset) for offset, letter in enumerate(letters, 1)]
    assert rig.shell.append_all([], box, []) == []


def test_many_appends_at_once_wake_the_threads_that_wait_for_them(rig: Rig) -> None:
    rig.lead([1])
    slots = [native.Slot() for _ in range(100)]
    assert rig.shell.append_slots([b"v"] * 100, slots) == list(range(1, 101))
    assert [result(slot) for slot in slots] == list(range(1, 101))
    refused = native.Slot()
    assert rig.shell.append_slots([bytes(1 << 16)], [refused]) == [AppendVerdict.TOO_LARGE]
    assert not refused.done()


def test_of_many_at_once_each_that_is_refused_is_told_why_and_the_others_are_in(rig: Rig) -> None:
    rig.lead([1])
    box, large = native.Mailbox(), bytes(1 << 16)
    references = sys.getrefcount(large)
    assert rig.shell.append_all([b"a", large, b"b"], box, [b"a", large, b"b"]) == [1, AppendVerdict.TOO_LARGE, 2]
    assert sys.getrefcount(large) == references
    with pytest.raises(TypeError):
        rig.shell.append_all([b"c", bytearray(b"d")], box, [b"c", b"d"])
    with pytest.raises(ValueError, match="2 values"):
        rig.shell.append_all([b"c", b"d"], box, [b"c"])
    rig.shell.freeze()
    assert rig.shell.append_all([b"e", b"f"], box, [b"e", b"f"]) == [AppendVerdict.FROZEN] * 2
    rig.shell.resume(now_us())
    assert rig.shell.append_all([b"g"], box, [b"g"]) == [AppendVerdict.FROZEN], "behind those that wait"
    rig.shell.release_appends()
    assert result(rig.append(b"h")) == 3
    assert [letter for letter, _ in box.collect()] == [b"a", b"b"]


def test_what_is_pushed_soon_is_pushed_by_the_native_thread(rig: Rig) -> None:
    rig.lead([1])
    for offset in range(1, 20):
        slot = native.Slot()
        assert rig.shell.append_slot(b"soon", slot, is_pushed_later=True) == offset
        rig.shell.push_soon()
        assert result(slot) == offset


def test_what_was_to_be_pushed_later_is_written_when_the_lane_freezes(rig: Rig) -> None:
    rig.lead([1])
    slot = native.Slot()
    assert rig.shell.append_slot(b"later", slot, is_pushed_later=True) == 1
    assert rig.shell.freeze().log_end == 2
    rig.shell.push()
    assert not slot.done()
    rig.shell.resume(now_us())
    assert result(slot) == 1


def test_a_parked_fetch_is_answered_empty_when_its_wait_is_over(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2, max_wait_us=1_000)
    assert peer.answer().records == b""
    peer.fetch(1, max_wait_ms=1)
    assert peer.answer().records == b""


def test_a_voter_that_does_not_know_the_high_watermark_is_told_soon(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    rig.append()
    assert peer.answer().high_watermark == 1
    until(lambda: rig.shell.flushed_end == 2, "the own sync")
    peer.fetch(2, high_watermark=-1, max_wait_ms=2**31 - 1)
    answer = peer.answer()
    assert (answer.high_watermark, answer.records) == (2, b"")


@pytest.mark.parametrize("max_bytes", [-(2**31), -1, 0, 1])
def test_a_peer_that_wants_next_to_nothing_gets_a_batch_from_memory_and_from_the_disk(rig: Rig, max_bytes: int) -> None:
    rig.lead()
    rig.append()
    for node_id, offset in ((2, 0), (3, 1)):  # the first batch was there before the log was lent
        assert rig.voter(node_id, offset, bytes_max=max_bytes).answer().offsets == [offset]
    assert not rig.shell.was_cut_off


def test_a_barrier_passes_when_a_voter_fetches_after_it_began(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    slot = rig.append()
    peer.answer()
    peer.fetch(2)
    assert result(slot) == 1
    waits = native.Slot()
    assert rig.shell.barrier_slot(waits) > 0
    assert peer.answer().records == b"", "provoked"
    assert not waits.done()
    peer.fetch(2)
    assert result(waits) == 2


def test_a_barrier_that_is_not_over_when_the_terms_end_fails_with_the_number_set(rig: Rig) -> None:
    rig.shell.set_barrier_failure(-77)
    rig.lead()
    waits = native.Slot()
    assert rig.shell.barrier_slot(waits) > 0
    rig.shell.close()
    assert result(waits) == -77
    assert rig.shell.barrier_slot(native.Slot()) == AppendVerdict.NOT_LEADER


# --- following --------------------------------------------------------------------------------------------------------


def test_a_follower_writes_and_syncs_and_only_then_sends_its_next_fetch(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(node_id=2)
    leader = rig.connect()
    rig.follow(leader)
    question = leader.question()
    assert (question.offset, question.last_epoch) == (1, 5)
    rig.shell.hold_syncs(True)
    leader.reply(question, value_batch(1, 5, 3), high_watermark=2)
    until(lambda: rig.shell.flush_began_us >= 0, "the sync begins")
    assert (rig.shell.end_offset, rig.shell.flushed_end) == (4, 1)
    assert leader.is_silent()
    rig.shell.hold_syncs(False)
    question = leader.question()
    assert (question.offset, question.high_watermark) == (4, 2)
    assert rig.shell.flushed_end == 4
    assert rig.stored() == control_batch(0, 5) + value_batch(1, 5, 3)


def test_a_follower_hands_up_records_that_do_not_continue_its_log_and_writes_nothing(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(node_id=2)
    leader = rig.connect()
    rig.follow(leader)
    leader.reply(leader.question(), value_batch(7, 5))
    rig.await_news(lambda: rig.handed_up)
    assert rig.shell.is_frozen
    assert rig.shell.end_offset == 1
    assert leader.is_silent()


# --- frozen -----------------------------------------------------------------------------------------------------------


def test_a_frame_that_is_not_the_steady_state_freezes_first_and_those_behind_it_wait_in_order(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    rig.append()
    peer.answer()
    first, second = peer.fetch_frame(2), peer.fetch_frame(2)
    peer.send(b"\0\x34 nothing that a lane knows", first, b"\0\x35 nor this", second)
    rig.await_news(lambda: len(rig.handed_up) + len(rig.events) == 4)
    assert rig.handed_up == [(peer.number, b"\0\x34 nothing that a lane knows")]
    assert [event[:3] for event in rig.events] == [
        (EVENT_FRAME, peer.number, first),
        (EVENT_FRAME, peer.number, b"\0\x35 nor this"),
        (EVENT_FRAME, peer.number, second),
    ]
    assert rig.shell.is_frozen
    assert rig.shell.append_slot(b"value", native.Slot()) == AppendVerdict.FROZEN
    assert end_of(rig, 2) == 1
    rig.shell.release_appends()
    rig.shell.resume(now_us())
    assert rig.shell.offer(peer.number, first, now_us())
    assert end_of(rig, 2) == 2
    peer.fetch(2)
    rig.await_news(lambda: len(rig.events) == 4)
    assert not rig.shell.is_frozen, "it waits behind what raft/ has not dealt with yet"


def test_frames_are_the_lanes_again_when_those_before_them_are_dealt_with(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    peer.send(b"\0\x34 unusual")
    rig.await_news(lambda: rig.handed_up)
    rig.shell.resume(now_us())
    rig.deal_with_frames()
    slot = rig.append()
    peer.answer()
    peer.fetch(2)
    assert result(slot) == 1
    assert rig.events == []


def test_appends_while_frozen_hold_back_later_ones_until_they_are_released(rig: Rig) -> None:
    rig.lead([1])
    rig.shell.freeze()
    first, second = native.Slot(), native.Slot()
    assert rig.shell.append_slot(b"first", first) == AppendVerdict.FROZEN
    rig.shell.resume(now_us())
    assert rig.shell.append_slot(b"second", second) == AppendVerdict.FROZEN
    assert rig.shell.append_slot(b"first", first, has_waited=True) == 1
    assert rig.shell.append_slot(b"second", second, has_waited=True) == 2
    rig.shell.release_appends()
    assert result(rig.append(b"third")) == 3
    assert (result(first), result(second)) == (1, 2)
    assert rig.shell.waiting() == (0, 0)


def test_a_full_segment_freezes_and_asks_for_a_roll(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(segment_bytes=2_000, batch_bytes_max=1_000)
    rig.lead([1])
    found, rolls = [], 0
    for number in range(60):
        slot = native.Slot()
        offset = rig.shell.append_slot(b"v" * 100, slot)
        if offset == AppendVerdict.FROZEN:
            assert rig.shell.room_wanted
            assert rig.shell.is_frozen
            assert is_readable(rig.shell), "Python is told"
            rig.roll()
            rolls += 1
            assert not rig.shell.room_wanted
            rig.shell.release_appends()
            offset = rig.shell.append_slot(b"v" * 100, slot)
        assert offset == number + 1
        found.append(slot)
    assert [result(slot) for slot in found] == list(range(1, 61))
    assert rolls >= 3
    assert all(segment.size_bytes <= 2_000 for segment in rig.segments)
    headers = batch_headers(rig.stored())
    assert [header.base_offset for header in headers[1:]] == [header.last_offset + 1 for header in headers[:-1]]


def test_records_beyond_what_a_segment_can_address_ask_for_a_roll_however_few_their_bytes(rig: Rig) -> None:
    rig.lead([1])
    box = native.Mailbox()

    def append(count: int) -> int:
        batch = bytearray(crowded_batch(0, 0, count))
        offset: int = rig.shell.append_encoded(batch, count, 1_000, box, "waiting")
        until(lambda: rig.shell.waiting() == (0, 0), "it is committed, or was refused")
        return offset

    assert append(2**30) == 1
    assert append(2**30) == AppendVerdict.FROZEN
    assert rig.shell.room_wanted == (len(crowded_batch(0, 0, 2**30)), 2**30)
    rig.roll()
    rig.shell.release_appends()
    assert rig.shell.room_wanted is None
    assert append(2**31 - 1) == 1 + 2**30
    assert [segment.base_offset for segment in rig.segments] == [0, 1 + 2**30]


def test_what_gathers_is_counted_by_its_bytes_among_a_segments_records(rig: Rig) -> None:
    rig.lead([1])
    box = native.Mailbox()
    assert rig.shell.append_encoded(bytearray(crowded_batch(0, 0, 2**31 - 1_000)), 2**31 - 1_000, 1_000, box, "") == 1
    until(lambda: rig.shell.waiting() == (0, 0), "it is committed")
    rig.shell.hold_syncs(True)
    slots = [rig.append(), rig.append()]
    assert rig.shell.append_encoded(bytearray(crowded_batch(0, 0, 998)), 998, 1_000, box, "") == AppendVerdict.FROZEN
    assert rig.shell.end_offset == 2**31 - 997, "what gathered is written where its room is"
    rig.shell.hold_syncs(False)
    rig.roll()
    assert [result(slot) for slot in slots] == [2**31 - 999, 2**31 - 998]


def test_a_follower_hands_up_records_that_its_segment_cannot_address(rig: Rig) -> None:
    leader = rig.connect(1)
    rig.follow(leader)
    leader.reply(leader.question(), crowded_batch(1, 5, 2**30))
    question = leader.question()
    assert question.offset == 1 + 2**30
    leader.reply(question, crowded_batch(1 + 2**30, 5, 2**30))
    rig.await_news(lambda: rig.handed_up)
    assert rig.shell.is_frozen
    assert rig.shell.end_offset == 1 + 2**30, "nothing of it is written"


def test_an_append_leaves_zeros_in_front_of_the_writer_where_upkeep_does_not(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(segment_bytes=8 << 20)
    rig.lead([1])
    ends = set()
    for _ in range(200):
        assert result(rig.append(b"v" * 30_000)) > 0
        loan = rig.shell.look()
        assert loan.prepared_bytes - loan.size_bytes >= AHEAD_LEAST_BYTES
        ends.add(loan.prepared_bytes)
    assert len(ends) <= 7, "in steps of a megabyte"
    assert rig.shell.prepare(8 << 20) == 8 << 20
    assert rig.shell.prepare(4 << 20) == 8 << 20, "they are there already"


# --- room -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    with mounted(tmp_path / "disk", "tmpfs", "size=3m") as place:
        yield place


def test_an_append_that_the_file_system_has_no_room_for_writes_nothing_and_waits_for_raft(
    make_rig: Callable[..., Rig], small_disk: Path
) -> None:
    rig = make_rig(segment_bytes=8 << 20, batch_bytes_max=1 << 20, within=small_disk)
    rig.lead([1])
    taken = 0
    while (offset := rig.shell.append_slot(b"v" * 100_000, slot := native.Slot())) >= 0:
        taken += 1
        assert result(slot) == offset
    assert offset == AppendVerdict.FROZEN
    assert taken >= 3, "what goes into the zeros that are there is taken"
    assert rig.shell.is_frozen
    assert rig.shell.room_wanted is not None
    assert rig.shell.room_wanted[0] > 100_000
    assert is_readable(rig.shell), "Python is told"
    assert not rig.shell.has_failed
    loan = rig.shell.look()
    assert rig.segments[-1].file.size_bytes == loan.prepared_bytes, "what was left of the room is left"
    assert (batch_headers(rig.stored())[-1].last_offset, loan.end_offset) == (taken, taken + 1)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    rig.shell.room_sought()
    rig.shell.resume(now_us())
    rig.shell.release_appends()
    assert result(rig.append(b"v" * 100_000)) == taken + 1


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_an_append_larger_than_the_zeros_has_its_room_before_it_gathers(
    make_rig: Callable[..., Rig], tmp_path: Path, kind: str
) -> None:
    with mounted(tmp_path / "disk", kind, "mode=0755") as place:  # the second allocates nothing: zeros are written
        rig = make_rig(segment_bytes=8 << 20, batch_bytes_max=1 << 20, within=place)
        rig.lead([1])
        rig.shell.hold_syncs(True)
        small, large = rig.append(), rig.append(b"v" * 900_000)
        loan = rig.shell.look()
        assert loan.size_bytes < 1_000, "it gathers"
        assert loan.prepared_bytes >= loan.size_bytes + 900_000
        assert rig.segments[-1].file.size_bytes == loan.prepared_bytes
        rig.shell.hold_syncs(False)
        assert (result(small), result(large)) == (1, 2)
        rig.close()


def test_what_gathered_is_written_though_the_file_system_is_full_by_then(
    make_rig: Callable[..., Rig], small_disk: Path
) -> None:
    rig = make_rig(segment_bytes=8 << 20, batch_bytes_max=1 << 20, within=small_disk)
    rig.lead([1])
    rig.shell.hold_syncs(True)
    small, large = rig.append(), rig.append(b"v" * 900_000)
    fill(small_disk)
    rig.shell.prepare(8 << 20)
    loan = rig.shell.look()
    assert rig.segments[-1].file.size_bytes == loan.prepared_bytes >= loan.size_bytes + 900_000
    rig.shell.freeze()
    rig.shell.resume(now_us())
    rig.shell.hold_syncs(False)
    assert (result(small), result(large)) == (1, 2)
    assert not rig.shell.has_failed


def test_an_append_to_a_follower_asks_for_no_room_and_its_lane_goes_on(rig: Rig) -> None:
    leader = rig.connect(1)
    rig.follow(leader)
    question = leader.question()
    prepared = rig.shell.look().prepared_bytes
    assert rig.shell.append_slot(b"v" * 5_000_000, native.Slot()) == AppendVerdict.NOT_LEADER
    assert rig.shell.look().prepared_bytes == prepared
    assert not rig.shell.is_frozen
    leader.reply(question, value_batch(1, 5), high_watermark=1)
    assert leader.question().offset == 2


def test_appends_are_refused_while_fetches_are_served(rig: Rig) -> None:
    rig.lead()
    second = rig.voter(2)
    slot = rig.append()
    assert second.answer().offsets == [1]
    rig.shell.refuse_appends(True)
    assert rig.shell.append_slot(b"refused", native.Slot()) == AppendVerdict.NOT_LEADER
    second.fetch(2)
    assert result(slot) == 1
    rig.shell.refuse_appends(False)
    assert rig.shell.append_slot(b"taken", native.Slot()) == 2


def test_what_is_too_large_for_a_batch_asks_for_no_room(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(batch_bytes_max=1_000)
    rig.lead([1])
    prepared = rig.shell.look().prepared_bytes
    verdict = rig.shell.append_slot(b"v" * 50_000_000, native.Slot())
    assert verdict in (AppendVerdict.TOO_LARGE, AppendVerdict.BYTES_OVERLOADED)
    assert rig.shell.look().prepared_bytes == prepared
    assert not rig.shell.is_frozen


def test_records_that_a_follower_has_no_room_for_are_left_to_raft(
    make_rig: Callable[..., Rig], small_disk: Path
) -> None:
    rig = make_rig(segment_bytes=8 << 20, batch_bytes_max=1 << 20, within=small_disk)
    leader = rig.connect(1)
    rig.follow(leader)
    question = leader.question()
    fields: dict[str, Any] = {"leader_epoch": 5, "timestamp_ms": 1}
    while not rig.shell.room_wanted:
        leader.reply(question, encode_values([b"v" * 100_000], base_offset=question.offset, **fields))
        until(lambda: rig.shell.room_wanted or not leader.is_silent(), "it is written, or there is no room")
        if not rig.shell.room_wanted:
            question = leader.question()
    assert rig.shell.end_offset == question.offset, "nothing of it is written"
    assert rig.shell.is_frozen
    rig.await_news(lambda: rig.events)
    (event,) = [each for each in rig.events if each.kind == EVENT_FRAME]
    assert event.frame[:4] == question.correlation_id.to_bytes(4, "big"), "the answer is raft's"


# --- ends -------------------------------------------------------------------------------------------------------------


def test_closing_names_the_fetches_that_somebody_else_must_answer(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    state = rig.shell.close()
    assert (state.mode, state.log_end, rig.shell.mode) == (LaneMode.LEADER, 1, LaneMode.CLOSED)
    rig.await_news(lambda: rig.unparked)
    assert rig.unparked == [(peer.number, 1, 18)]
    assert rig.shell.append_slot(b"value", native.Slot()) == AppendVerdict.NOT_LEADER


def test_what_was_not_committed_when_the_terms_ended_is_told_the_number_given(rig: Rig) -> None:
    rig.lead()
    slot = rig.append()
    rig.shell.close()
    assert not slot.done()
    rig.shell.fail_pending(-1001)
    assert result(slot) == -1001
    assert rig.shell.waiting() == (0, 0)


def test_a_failed_sync_latches_and_nothing_is_sent_after_it(rig: Rig, arm: Arm) -> None:
    arm("before-flush-submit", "eio")
    rig.lead()
    second, third = rig.voter(2), rig.voter(3)
    slot = rig.append()
    rig.await_news(lambda: rig.shell.was_cut_off)
    assert rig.shell.has_failed
    assert rig.shell.failure() == ("sync", errno.EIO, -1)
    assert second.answer().offsets == [1], "sent before"
    second.fetch(2)
    rig.shell.send(third.number, b"nor does this leave")
    assert rig.shell.append_slot(b"value", native.Slot()) == AppendVerdict.FAILED
    assert rig.shell.barrier_slot(native.Slot()) == AppendVerdict.FAILED
    rig.shell.end_threads()
    assert second.frames() == []
    assert third.answer().offsets == [1]
    assert third.frames() == []
    assert not slot.done()
    assert rig.shell.high_watermark == 1


def test_a_failed_write_latches_as_a_failed_sync_does(rig: Rig, arm: Arm) -> None:
    rig.lead()
    peer = rig.voter(2)
    arm("before-segment-write", "eio")
    assert rig.shell.append_slot(b"value", native.Slot()) == -5
    assert rig.shell.has_failed
    assert rig.shell.failure() == ("write", errno.EIO, -1)
    assert rig.shell.waiting() == (0, 0)
    rig.shell.end_threads()
    assert peer.frames() == []


def test_a_sync_that_was_counted_late_fails_as_one_that_failed(rig: Rig, arm: Arm) -> None:
    arm("before-flush-count", "eio")
    rig.lead([1])
    slot = rig.append()
    rig.await_news(lambda: rig.shell.was_cut_off)
    assert rig.shell.flushed_end == 1
    assert not slot.done()


def test_a_fault_after_a_sync_was_counted_lets_nothing_follow(rig: Rig, arm: Arm) -> None:
    rig.lead([1])
    arm("after-flush-count", "eio")
    assert result(rig.append()) == 1
    until(lambda: rig.shell.has_failed, "it latches")
    assert rig.shell.append_slot(b"value", native.Slot()) == AppendVerdict.FAILED


@pytest.mark.parametrize("point", ["before-segment-zero-fill", "after-segment-zero-fill"])
def test_zeros_that_cannot_be_written_latch_as_a_record_does(rig: Rig, arm: Arm, point: str) -> None:
    rig.lead([1])
    arm(point, "eio")
    rig.shell.prepare(1 << 20)
    assert rig.shell.has_failed
    assert rig.shell.failure() == ("write", errno.EIO, -1)


def test_a_sync_of_before_a_truncation_does_not_count(rig: Rig, arm: Arm) -> None:
    arm("before-flush-submit", "eio", only_hit=2)
    rig.shell.hold_syncs(True)
    rig.lead([1, 2])
    rig.voter(2)
    rig.append(b"overtaken")
    until(lambda: rig.shell.flush_began_us >= 0, "the sync begins")
    rig.shell.close()
    assert rig.take_back().ticket is not None
    rig.shell.fail_pending(-1001)
    rig.truncate_to_control()
    rig.lead([1, 2])
    rig.voter(2)
    slot = rig.append(b"in its place")
    assert rig.shell.end_offset == 2
    rig.shell.hold_syncs(False)
    # The sync under way ends well; the next one, which it makes room for, fails.
    rig.await_news(lambda: rig.shell.was_cut_off)
    assert rig.shell.flushed_end == 1
    assert not slot.done()
    assert b"in its place" in rig.stored()


def test_a_sync_whose_end_came_while_the_log_was_taken_back_is_news_with_its_token(rig: Rig) -> None:
    rig.shell.hold_syncs(True)
    rig.lead([1])
    slot = rig.append()
    rig.shell.freeze()
    loan = rig.take_back()
    assert loan.ticket is not None
    rig.shell.hold_syncs(False)
    rig.await_news(lambda: rig.events)
    ((_, _, _, token, error),) = rig.events
    assert (token, error) == (loan.ticket[0], 0)
    assert not slot.done()
    rig.lend()
    rig.shell.resume(now_us())
    rig.shell.synced(token, error, now_us())
    assert result(slot) == 1


def test_after_the_stop_nothing_is_accepted_and_nothing_leaves(rig: Rig) -> None:
    rig.lead()
    peer = rig.voter(2)
    rig.shell.stop()
    assert rig.shell.append_slot(b"value", native.Slot()) == AppendVerdict.STOPPED
    assert rig.shell.barrier_slot(native.Slot()) == AppendVerdict.STOPPED
    rig.shell.send(peer.number, b"value")
    rig.shell.end_threads()
    assert peer.frames() == []


def test_values_that_fit_into_no_batch_are_refused_and_change_nothing(rig: Rig) -> None:
    rig.lead([1])
    assert rig.shell.append_slot(bytes(1 << 16), native.Slot()) == AppendVerdict.TOO_LARGE
    assert rig.shell.waiting() == (0, 0)
    assert result(rig.append()) == 1
