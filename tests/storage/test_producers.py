"""What producers have in a log: which batch is next, which is there already; all who look at it agree."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import OutOfOrderSequence, ProducerFenced
from fastquorum.kernels import Kernels
from fastquorum.storage import producers as module
from fastquorum.storage.producers import BATCHES_KEPT, Producers, Stamp

from .logs import Rig

P, Q = 7, 1 << 40


def stamp(sequence: int, count: int = 1, *, producer: int = P, epoch: int = 0) -> Stamp:
    return Stamp(producer, epoch, sequence, count)


@dataclass
class Written:
    """Batches appended one after another, told as they come."""

    producers: Producers = field(default_factory=lambda: Producers(0))
    end_offset: int = 0

    def append(self, what: Stamp) -> None:
        assert self.producers.check(what) is None
        self.producers.appended(what, self.end_offset, self.end_offset + what.record_count)
        self.end_offset += what.record_count


# --- what may be appended ---------------------------------------------------------------------------------------------


def test_batches_follow_one_another_by_their_records() -> None:
    log = Written()
    for sequence, count in ((0, 3), (3, 1), (4, 2)):
        log.append(stamp(sequence, count))
    known = log.producers.get(P)
    assert known is not None
    assert known.next_sequence == 6


@pytest.mark.parametrize("sequence", [0, 2, 5, 7, 2**31 - 1])
def test_a_gap_or_an_overlap_is_out_of_order(sequence: int) -> None:
    log = Written()
    log.append(stamp(0, 3))
    log.append(stamp(3, 3))
    with pytest.raises(OutOfOrderSequence) as caught:
        log.producers.check(stamp(sequence, 1))
    assert (caught.value.sequence, caught.value.expected_sequence) == (sequence, 6)


def test_one_of_the_last_batches_is_found_where_it_lies_and_an_older_one_is_out_of_order() -> None:
    log = Written()
    for number in range(BATCHES_KEPT + 2):
        log.append(stamp(2 * number, 2))
    for number in range(2, BATCHES_KEPT + 2):
        found = log.producers.check(stamp(2 * number, 2))
        assert found is not None
        assert (found.base_offset, found.end_offset) == (2 * number, 2 * number + 2)
    with pytest.raises(OutOfOrderSequence):
        log.producers.check(stamp(2, 2))


def test_the_same_beginning_with_another_count_is_no_duplicate() -> None:
    log = Written()
    log.append(stamp(0, 2))
    with pytest.raises(OutOfOrderSequence):
        log.producers.check(stamp(0, 1))


def test_a_newer_epoch_begins_at_zero_and_fences_the_older() -> None:
    log = Written()
    log.append(stamp(0, 2))
    with pytest.raises(OutOfOrderSequence):
        log.producers.check(stamp(2, 1, epoch=1))
    log.append(stamp(0, 1, epoch=1))
    with pytest.raises(ProducerFenced) as caught:
        log.producers.check(stamp(2, 1))
    assert (caught.value.epoch, caught.value.current_epoch) == (0, 1)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Producers(0).check(stamp(55)) is None


def test_sequences_begin_anew_after_the_last() -> None:
    log = Written()
    log.append(stamp(2**31 - 2, 3))
    known = log.producers.get(P)
    assert known is not None
    assert (known.batches[-1].last_sequence, known.next_sequence) == (0, 1)
    assert log.producers.check(stamp(2**31 - 2, 3)) is not None
    log.append(stamp(1, 1))


def test_producers_do_not_disturb_each_other() -> None:
    log = Written()
    log.append(stamp(0, 2))
    log.append(stamp(9, 1, producer=Q))
    log.append(stamp(2, 1))
    assert log.producers.check(stamp(9, 1, producer=Q)) is not None


# --- truncation, and forgetting ---------------------------------------------------------------------------------------


def test_what_is_truncated_is_taken_back() -> None:
    log = Written()
    log.append(stamp(0, 2))
    log.append(stamp(2, 1))
    log.append(stamp(0, 1, epoch=3))
    log.append(stamp(0, 1, producer=Q))
    log.producers.truncated(2)
    assert log.producers.get(Q) is None
    known = log.producers.get(P)
    assert known is not None
    assert (known.epoch, known.next_sequence, log.producers.end_offset) == (0, 2, 2)


def test_a_truncation_too_deep_to_take_back_makes_everything_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNDO_MAX", 3)
    log = Written()
    for sequence in range(6):
        log.append(stamp(sequence))
    log.producers.truncated(3)  # the last three can be taken back
    known = log.producers.get(P)
    assert known is not None
    assert (known.next_sequence, log.producers.end_offset) == (3, 3)
    log.producers.truncated(2)
    assert (len(log.producers), log.producers.end_offset) == (0, 0)


def test_those_that_appended_last_are_remembered(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_MAX", 4)
    monkeypatch.setattr(module, "_PRODUCERS_SLACK", 0)
    monkeypatch.setattr(module, "UNDO_MAX", 1)
    rig = Rig(kernels)
    for number in range(10):
        append(rig, stamp(0, producer=number))
    append(rig, stamp(1, producer=6))
    rig.log.producers.catch_up(rig.log, kernels, 1 << 20)
    assert [number for number in range(10) if rig.log.producers.get(number) is not None] == [6, 7, 8, 9]


# --- the log itself ---------------------------------------------------------------------------------------------------


def append(rig: Rig, what: Stamp | None, *, epoch: int = 1, count: int = 1) -> None:
    """To the log, which is not told what it is."""
    base = rig.log.end_offset
    given: dict[str, Any] = {}
    if what is not None:
        count = what.record_count
        given = {
            "producer_id": what.producer_id,
            "producer_epoch": what.epoch,
            "base_sequence": what.first_sequence,
        }
    batch = rig.kernels.encode_values([b"v"] * count, base_offset=base, leader_epoch=epoch, timestamp_ms=1, **given)
    rig.log.append_batch(batch, base_offset=base, next_offset=base + count, epoch=epoch, timestamp_ms=1)


def test_a_log_is_read_a_part_at_a_time(kernels: Kernels) -> None:
    rig = Rig(kernels)
    for sequence in range(50):
        append(rig, stamp(sequence))
        append(rig, None)
    assert not rig.log.producers.catch_up(rig.log, kernels, 1)
    assert 0 < rig.log.producers.end_offset < rig.log.end_offset
    assert rig.log.producers.catch_up(rig.log, kernels, 1 << 20)
    known = rig.log.producers.get(P)
    assert known is not None
    assert known.next_sequence == 50


Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3), st.integers(1, 3)),
        st.tuples(st.just("plain"), st.just(0), st.integers(1, 3)),
        st.tuples(st.just("truncate"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("catch up"), st.just(0), st.integers(1, 400)),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps=STEPS, told=st.booleans())
def test_a_writer_a_reader_and_a_reopened_log_know_the_same(kernels: Kernels, steps: list[Step], told: bool) -> None:
    rig = Rig(kernels)
    producers = rig.log.producers
    for what, producer, count in steps:
        base = rig.log.end_offset
        if what == "append":
            producers.catch_up(rig.log, kernels, 1 << 20)
            known = producers.get(producer)
            given_ = stamp(known.next_sequence if known else 0, count, producer=producer)
            append(rig, given_)
            if told:
                producers.appended(given_, base, base + count)
        elif what == "plain":
            append(rig, None, count=count)
            if told:
                producers.appended(None, base, base + count)
        elif what == "truncate":
            rig.log.truncate_to(max(base - producer, 0))
        else:
            producers.catch_up(rig.log, kernels, count)
    assert producers.catch_up(rig.log, kernels, 1 << 20)
    rig.flush()
    again = rig.reopen().log
    assert again.producers.catch_up(again, kernels, 1 << 20)
    assert again.producers.end_offset == producers.end_offset == again.end_offset
    for producer in range(4):
        mine, read = producers.get(producer), again.producers.get(producer)
        # What a truncation took back may be remembered with fewer batches than the log still holds, never with others.
        assert (mine is None) == (read is None)
        if mine is not None and read is not None:
            assert (mine.epoch, mine.batches) == (read.epoch, read.batches)
