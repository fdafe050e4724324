"""What producers have in a log: which batch is next, which is there already; all who look at it agree."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import OutOfOrderSequence, ProducerFenced
from fastquorum.kernels import Kernels, load
from fastquorum.kernels.producers import BATCHES_KEPT, NO_SEQUENCE, Producers, Stamp, stamp_of
from fastquorum.storage.log.producers import catch_up
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import OffsetAndEpoch

from .logs import Rig, checkpoint

P, Q = 7, 1 << 40


def stamp(sequence: int, count: int = 1, *, producer: int = P, epoch: int = 0, crc: int = 0) -> Stamp:
    return Stamp(producer, epoch, sequence, count, crc)


def fence(epoch: int, *, producer: int = P, crc: int = 0) -> Stamp:
    return Stamp(producer, epoch, NO_SEQUENCE, 1, crc)


@dataclass
class Written:
    """Batches appended one after another, told as they come."""

    producers: Producers
    end_offset: int = 0

    def append(self, what: Stamp) -> None:
        assert self.producers.check(what) is None
        self.producers.appended(what, self.end_offset, self.end_offset + what.record_count)
        self.end_offset += what.record_count


# --- what may be appended ---------------------------------------------------------------------------------------------


def test_batches_follow_one_another_by_their_records(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    for sequence, count in ((0, 3), (3, 1), (4, 2)):
        log.append(stamp(sequence, count))
    known = log.producers.get(P)
    assert known is not None
    assert known.next_sequence == 6


@pytest.mark.parametrize("sequence", [0, 2, 5, 7, 2**31 - 1])
def test_a_gap_or_an_overlap_is_out_of_order(kernels: Kernels, sequence: int) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 3))
    log.append(stamp(3, 3))
    with pytest.raises(OutOfOrderSequence) as caught:
        log.producers.check(stamp(sequence, 1))
    assert (caught.value.sequence, caught.value.expected_sequence) == (sequence, 6)


def test_one_of_the_last_batches_is_found_where_it_lies_and_an_older_one_is_out_of_order(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    for number in range(BATCHES_KEPT + 2):
        log.append(stamp(2 * number, 2))
    for number in range(2, BATCHES_KEPT + 2):
        found = log.producers.check(stamp(2 * number, 2))
        assert found is not None
        assert (found.base_offset, found.end_offset) == (2 * number, 2 * number + 2)
    with pytest.raises(OutOfOrderSequence):
        log.producers.check(stamp(2, 2))


def test_the_same_beginning_with_another_count_is_no_duplicate(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 2))
    with pytest.raises(OutOfOrderSequence):
        log.producers.check(stamp(0, 1))


def test_a_newer_epoch_begins_at_zero_and_fences_the_older(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 2))
    with pytest.raises(OutOfOrderSequence):
        log.producers.check(stamp(2, 1, epoch=1))
    log.append(stamp(0, 1, epoch=1))
    with pytest.raises(ProducerFenced) as caught:
        log.producers.check(stamp(2, 1))
    assert (caught.value.epoch, caught.value.current_epoch) == (0, 1)


def test_a_fence_takes_the_next_epoch_and_sequences_go_on(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 2))
    log.append(fence(1))
    with pytest.raises(ProducerFenced) as caught:
        log.producers.check(stamp(2, 1))
    assert (caught.value.epoch, caught.value.current_epoch) == (0, 1)
    found = log.producers.check(stamp(0, 2, epoch=1))
    assert found is not None
    assert (found.base_offset, found.end_offset) == (0, 2), "what a former instance appended is found again"
    log.append(stamp(2, 1, epoch=1))
    known = log.producers.get(P)
    assert known is not None
    assert (known.epoch, known.next_sequence, known.end_offset) == (1, 3, 4)


@pytest.mark.parametrize("epoch", [0, 2, 3, 2**15 - 1])
def test_a_fence_takes_no_other_epoch_than_the_next(kernels: Kernels, epoch: int) -> None:
    log = Written(kernels.Producers(0))
    log.append(fence(0))
    log.append(fence(1, crc=7))
    with pytest.raises(ProducerFenced):
        log.producers.check(fence(epoch - 1 if epoch == 2 else epoch, crc=8))
    again = log.producers.check(fence(1, crc=7))
    assert again is not None
    assert again.base_offset == 1, "the very same fence, tried again"


def test_epochs_of_fences_begin_anew_after_the_last(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(fence(2**15 - 1))
    log.append(stamp(0, epoch=2**15 - 1))
    log.append(fence(0))
    for epoch in (2**15 - 1, 1):
        with pytest.raises(ProducerFenced):
            log.producers.check(stamp(1, epoch=epoch))
    log.append(stamp(1, epoch=0))


def test_after_a_fence_alone_any_sequence_may_come(kernels: Kernels) -> None:
    """The name may have been forgotten, and its owner counts on."""
    log = Written(kernels.Producers(0))
    log.append(fence(0))
    log.append(stamp(55))
    with pytest.raises(OutOfOrderSequence):
        log.producers.check(stamp(57))


def test_a_fence_that_is_truncated_fences_nobody(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 2))
    log.append(fence(1))
    log.producers.truncated(2)
    assert log.producers.check(stamp(2, 1)) is None


def test_a_batch_of_the_same_sequences_is_found_whatever_it_holds(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 2, crc=2**32 - 1))
    found = log.producers.check(stamp(0, 2, crc=5))
    assert found is not None
    assert found.crc == 2**32 - 1


def test_who_would_be_displaced_is_whoever_appended_longest_ago(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0, producers_max=3))
    for number in range(3):
        assert log.producers.displaced_end == -1
        log.append(stamp(0, producer=number))
    assert log.producers.displaced_end == 1
    log.append(stamp(1, producer=0))
    assert log.producers.displaced_end == 2
    log.producers.truncated(3)
    assert log.producers.displaced_end == 1


def test_an_unknown_producer_may_begin_anywhere(kernels: Kernels) -> None:
    assert kernels.Producers(0).check(stamp(55)) is None


def test_sequences_begin_anew_after_the_last(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(2**31 - 2, 3))
    known = log.producers.get(P)
    assert known is not None
    assert (known.batches[-1].last_sequence, known.next_sequence) == (0, 1)
    assert log.producers.check(stamp(2**31 - 2, 3)) is not None
    log.append(stamp(1, 1))


def test_producers_do_not_disturb_each_other(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 2))
    log.append(stamp(9, 1, producer=Q))
    log.append(stamp(2, 1))
    assert log.producers.check(stamp(9, 1, producer=Q)) is not None


# --- truncation, and forgetting ---------------------------------------------------------------------------------------


def test_what_is_truncated_is_taken_back(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0))
    log.append(stamp(0, 2))
    log.append(stamp(2, 1))
    log.append(stamp(0, 1, epoch=3))
    log.append(stamp(0, 1, producer=Q))
    log.producers.truncated(2)
    assert log.producers.get(Q) is None
    known = log.producers.get(P)
    assert known is not None
    assert (known.epoch, known.next_sequence, log.producers.end_offset) == (0, 2, 2)


def test_a_truncation_too_deep_to_take_back_makes_everything_be_read_again(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0, undo_max=3))
    for sequence in range(6):
        log.append(stamp(sequence))
    log.producers.truncated(3)  # the last three can be taken back
    known = log.producers.get(P)
    assert known is not None
    assert (known.next_sequence, log.producers.end_offset) == (3, 3)
    log.producers.truncated(2)
    assert (len(log.producers), log.producers.end_offset) == (0, 0)


def test_those_that_appended_last_are_remembered(kernels: Kernels) -> None:
    log = Written(kernels.Producers(0, producers_max=4, undo_max=1))
    for number in range(9):
        log.append(stamp(0, producer=number))
    log.append(stamp(1, producer=6))
    log.append(stamp(0, producer=9))
    assert [number for number in range(10) if log.producers.get(number) is not None] == [6, 7, 8, 9]


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("check"),
                st.integers(0, 12),
                st.integers(-1, 8),
                st.integers(1, 3),
                st.one_of(st.integers(0, 2), st.just(2**15 - 1)),
                st.integers(0, 1),
            ),
            st.tuples(st.just("truncate"), st.integers(0, 30)),
            st.tuples(st.just("anew"), st.integers(0, 30)),
            st.tuples(st.just("plain"), st.integers(1, 3)),
        ),
        max_size=60,
    )
)
def test_both_kernels_know_the_same(steps: list[tuple[Any, ...]]) -> None:
    both = [load(name).Producers(0, producers_max=8, undo_max=10) for name in ("pure", "native")]
    for what, *given_ in steps:
        verdicts = [_step(each, what, given_) for each in both]
        assert verdicts[0] == verdicts[1]
        assert len(both[0]) == len(both[1])


def _step(producers: Producers, what: str, given_: list[int]) -> list[object]:
    found: object = None
    end = producers.end_offset
    if what == "check":
        producer, sequence, count, epoch, crc = given_
        made = stamp(sequence, count, producer=producer, epoch=epoch, crc=crc)
        try:
            found = producers.check(made)
        except (OutOfOrderSequence, ProducerFenced) as error:
            return [str(error)]
        if found is None:
            producers.appended(made, end, end + count)
            producers.appended(made, end, end + count)  # it does not continue what is known
    elif what == "plain":
        producers.appended(None, end, end + given_[0])
    elif what == "truncate":
        producers.truncated(given_[0])
    else:
        producers.begin_anew(given_[0])
    known = [producers.get(number) for number in range(13)]
    return [found, producers.end_offset, producers.displaced_end, *known]


# --- the log itself ---------------------------------------------------------------------------------------------------


def append(rig: Rig, what: Stamp | None, *, epoch: int = 1, count: int = 1) -> Stamp:
    """To the log, which is not told what it is; what its header says."""
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
    return stamp_of(batch)


def test_a_log_is_read_a_part_at_a_time(kernels: Kernels) -> None:
    rig = Rig(kernels)
    for sequence in range(50):
        append(rig, stamp(sequence))
        append(rig, None)
    assert not catch_up(rig.log, kernels, 1)
    assert 0 < rig.log.producers.end_offset < rig.log.end_offset
    assert catch_up(rig.log, kernels, 1 << 20)
    known = rig.log.producers.get(P)
    assert known is not None
    assert known.next_sequence == 50


def rig_with_snapshot(kernels: Kernels, sequences: int) -> tuple[Rig, OffsetAndEpoch]:
    """A producer's batches over several segments, and a snapshot that covers half of them; nothing is taken in."""
    rig = Rig(kernels)
    for sequence in range(sequences):
        append(rig, stamp(sequence))
    rig.flush()
    snapshot = OffsetAndEpoch(sequences // 2, 1)
    state = write_snapshot(rig.disk, kernels, LOG_DIRECTORY, snapshot, [checkpoint(kernels, snapshot)])
    rig.log.snapshots.add(snapshot, state)
    rig.log.maintain(0)
    return rig, snapshot


@pytest.mark.parametrize("taken_in", [True, False])
def test_what_was_removed_at_the_logs_beginning_is_not_looked_for(kernels: Kernels, taken_in: bool) -> None:
    """Neither by those that had not read it, nor after a truncation that is too deep to be taken back."""
    rig, snapshot = rig_with_snapshot(kernels, 60)
    rig.log.producers = kernels.Producers(0, undo_max=2)
    if taken_in:
        assert catch_up(rig.log, kernels, 1 << 20)
    rig.log.remove_before(snapshot.offset)
    assert rig.log.start_offset > 0
    if taken_in:
        rig.log.truncate_to(50)
    assert catch_up(rig.log, kernels, 1 << 20)
    known = rig.log.producers.get(P)
    assert known is not None
    assert known.next_sequence == rig.log.end_offset
    assert known.batches[0].base_offset >= rig.log.start_offset


def test_nothing_is_known_of_a_log_that_was_truncated_to_its_beginning(kernels: Kernels) -> None:
    rig, snapshot = rig_with_snapshot(kernels, 60)
    rig.log.producers = kernels.Producers(0, undo_max=2)
    assert catch_up(rig.log, kernels, 1 << 20)
    rig.log.remove_before(snapshot.offset)
    start = rig.log.start_offset
    rig.log.truncate_to(start)
    assert catch_up(rig.log, kernels, 1 << 20)
    assert rig.log.producers.get(P) is None
    append(rig, stamp(7))
    assert catch_up(rig.log, kernels, 1 << 20)
    known = rig.log.producers.get(P)
    assert known is not None
    assert (known.next_sequence, rig.log.producers.end_offset) == (8, start + 1)


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
@given(steps=STEPS, verdicts=st.booleans())
def test_a_writer_a_reader_and_a_reopened_log_know_the_same(
    kernels: Kernels, steps: list[Step], verdicts: bool
) -> None:
    rig = Rig(kernels)
    producers = rig.log.producers
    for what, producer, count in steps:
        base = rig.log.end_offset
        if what == "append":
            catch_up(rig.log, kernels, 1 << 20)
            known = producers.get(producer)
            given_ = stamp(known.next_sequence if known else 0, count, producer=producer)
            made = append(rig, given_)
            if verdicts:
                producers.appended(made, base, base + count)
        elif what == "plain":
            append(rig, None, count=count)
            if verdicts:
                producers.appended(None, base, base + count)
        elif what == "truncate":
            rig.log.truncate_to(max(base - producer, 0))
        else:
            catch_up(rig.log, kernels, count)
    assert catch_up(rig.log, kernels, 1 << 20)
    rig.flush()
    again = rig.reopen().log
    assert catch_up(again, kernels, 1 << 20)
    assert again.producers.end_offset == producers.end_offset == again.end_offset
    for producer in range(4):
        mine, read = producers.get(producer), again.producers.get(producer)
        # What a truncation took back may be remembered with fewer batches than the log still holds, never with others.
        assert (mine is None) == (read is None)
        if mine is not None and read is not None:
            assert (mine.epoch, mine.batches) == (read.epoch, read.batches)
