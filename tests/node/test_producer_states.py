"""Which producers a leader takes batches of: ids that were given out, room for new ones, repeats that hold the same."""

import pytest

from fastquorum.errors import OutOfOrderSequence, Overloaded, ProducerFenced, SequenceReused, UnknownProducer
from fastquorum.kernels import Kernels, load
from fastquorum.kernels.producers import NO_SEQUENCE, PRODUCERS_MAX, Stamp, stamp_of
from fastquorum.node.lane.fences import FIRST_EPOCHS, NOTE_EPOCH
from fastquorum.node.lane.producer_states import COUNTER_BITS, LONG_AGO_MS, NAMED, REMEMBERED_US, ProducerStates
from fastquorum.storage.log.snapshots import write_snapshot
from fastquorum.storage.names import LOG_DIRECTORY
from fastquorum.types import OffsetAndEpoch
from tests.storage.logs import Rig, checkpoint

EPOCH = 3
P = NAMED | 7
WRITTEN_MS = 1_000
NOW_MS = WRITTEN_MS + LONG_AGO_MS


@pytest.fixture(params=["pure", "native"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return load(request.param)


def batch(kernels: Kernels, sequence: int, *values: bytes, producer: int = P, **how: int) -> bytes:
    given = {"timestamp_ms": WRITTEN_MS, "producer_epoch": 0, **how}
    return kernels.encode_values(
        values or [b"v"], base_offset=0, leader_epoch=0, producer_id=producer, base_sequence=sequence, **given
    )


def judged(states: ProducerStates, records: bytes, now_us: int = 0) -> object:
    return states.judge(stamp_of(records), records, EPOCH, now_us)


def appended(rig: Rig, records: bytes) -> None:
    stamp, base, data = stamp_of(records), rig.log.end_offset, bytearray(records)
    rig.kernels.stamp_batch(data, base, EPOCH)
    end = base + stamp.record_count
    rig.log.append_batch(data, base_offset=base, next_offset=end, epoch=EPOCH, timestamp_ms=WRITTEN_MS)
    rig.log.producers.appended(stamp, base, end)


# --- ids --------------------------------------------------------------------------------------------------------------


def test_ids_are_those_that_were_given_out_and_those_of_names(kernels: Kernels) -> None:
    states = ProducerStates(Rig(kernels).log, kernels, lambda: NOW_MS)
    given = [states.new_id(EPOCH) for _ in range(3)]
    for known in (*given, P, 2**63 - 1, (EPOCH - 1) << COUNTER_BITS | 12_345):
        assert judged(states, batch(kernels, 0, producer=known)) is None
    for made_up in (0, 77, 2**COUNTER_BITS - 1, given[-1] + 1, (EPOCH + 1) << COUNTER_BITS, NAMED - 1):
        with pytest.raises(UnknownProducer, match=str(made_up)):
            judged(states, batch(kernels, 0, producer=made_up))


def test_a_leader_after_a_restart_gives_out_ids_of_a_new_epoch(kernels: Kernels) -> None:
    rig = Rig(kernels)
    before, after = ProducerStates(rig.log, kernels, lambda: NOW_MS), ProducerStates(rig.log, kernels, lambda: NOW_MS)
    given = before.new_id(EPOCH - 1)
    assert judged(after, batch(kernels, 0, producer=given)) is None
    assert after.new_id(EPOCH) != given
    with pytest.raises(UnknownProducer):
        judged(ProducerStates(rig.log, kernels, lambda: NOW_MS), batch(kernels, 0, producer=before.new_id(EPOCH)))


def test_a_producer_that_is_in_the_log_goes_on_whatever_its_id(kernels: Kernels) -> None:
    rig = Rig(kernels)
    states = ProducerStates(rig.log, kernels, lambda: NOW_MS)
    appended(rig, batch(kernels, 0, producer=77))
    assert judged(states, batch(kernels, 1, producer=77)) is None


# --- room -------------------------------------------------------------------------------------------------------------


def others_append(rig: Rig, count: int) -> None:
    producers = rig.log.producers
    for number in range(count):
        end = producers.end_offset
        producers.appended(Stamp(NAMED | 1 << 20 | number, 0, 0, 1), end, end + 1)


def test_who_appended_lately_is_not_forgotten_for_new_ones(kernels: Kernels) -> None:
    rig = Rig(kernels)
    states, producers = ProducerStates(rig.log, kernels, lambda: NOW_MS), rig.log.producers
    states.maintain(0)
    mine = batch(kernels, 0, b"mine")
    appended(rig, mine)
    others_append(rig, PRODUCERS_MAX - 1)
    now_us = REMEMBERED_US // 2
    with pytest.raises(Overloaded, match="as many producers"):
        judged(states, batch(kernels, 0, producer=NAMED | 8), now_us)
    assert judged(states, mine, now_us) is not None, "a retry is recognised"
    states.maintain(now_us)
    assert judged(states, batch(kernels, 0, producer=NAMED | 8), now_us + REMEMBERED_US) is None
    producers.appended(Stamp(NAMED | 8, 0, 0, 1), producers.end_offset, producers.end_offset + 1)
    assert len(producers) >= PRODUCERS_MAX


def test_what_the_log_had_when_its_node_started_makes_room_if_it_was_written_long_ago(kernels: Kernels) -> None:
    rig = Rig(kernels)
    appended(rig, batch(kernels, 0))
    earlier = ProducerStates(rig.log, kernels, lambda: NOW_MS - 1)
    later = ProducerStates(rig.log, kernels, lambda: NOW_MS)
    others_append(rig, PRODUCERS_MAX - 1)
    new = batch(kernels, 0, producer=NAMED | 8)
    with pytest.raises(Overloaded, match="as many producers"):
        judged(earlier, new)
    assert judged(later, new) is None


# --- repeats ----------------------------------------------------------------------------------------------------------


def test_a_repeat_holds_the_same_records_whenever_and_in_whichever_epoch_it_was_written(kernels: Kernels) -> None:
    rig = Rig(kernels)
    states = ProducerStates(rig.log, kernels, lambda: NOW_MS)
    first = batch(kernels, 0, b"a", b"b")
    appended(rig, first)
    appended(
        rig,
        kernels.encode_values([b"x"], base_offset=0, leader_epoch=0, timestamp_ms=1, producer_id=P, producer_epoch=1),
    )
    later = batch(kernels, 0, b"a", b"b", producer_epoch=1, timestamp_ms=99_000)
    assert judged(states, later) == rig.log.producers.check(stamp_of(first)._replace(epoch=1))
    for values in ([b"a", b"c"], [b"ab", b""]):
        with pytest.raises(SequenceReused, match="offset 0") as caught:
            judged(states, batch(kernels, 0, *values, producer_epoch=1))
        assert caught.value.expected_sequence == 2


def test_what_repeats_a_batch_that_was_removed_is_not_taken_for_the_same(kernels: Kernels) -> None:
    rig = Rig(kernels)
    states, first = ProducerStates(rig.log, kernels, lambda: NOW_MS), batch(kernels, 0, b"a")
    appended(rig, first)
    for sequence in range(30):
        appended(rig, batch(kernels, sequence, producer=P + 1))
    rig.flush()
    snapshot = OffsetAndEpoch(20, EPOCH)
    state = write_snapshot(rig.disk, kernels, LOG_DIRECTORY, snapshot, [checkpoint(kernels, snapshot)])
    rig.log.snapshots.add(snapshot, state)
    rig.log.remove_before(snapshot.offset)
    assert rig.log.start_offset > 0
    assert judged(states, first) is not None, "the very same batch, sent again"
    for value in (b"a", b"b"):
        with pytest.raises(OutOfOrderSequence, match="its next is 1"):
            judged(states, batch(kernels, 0, value, timestamp_ms=99_000))


# --- fences -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [NOTE_EPOCH, FIRST_EPOCHS[0], FIRST_EPOCHS[-1]])
def test_where_nothing_is_known_of_a_name_its_first_fence_takes_an_epoch_of_its_own(
    kernels: Kernels, epoch: int
) -> None:
    """Whoever has the name by another one, though all that it appended is forgotten, has it no more."""
    rig = Rig(kernels)
    states, fence = ProducerStates(rig.log, kernels, lambda: NOW_MS), Stamp(P, epoch, NO_SEQUENCE, 1, 7)
    assert states.judge(fence, b"", EPOCH, 0) is None
    rig.log.producers.appended(fence, rig.log.end_offset, rig.log.end_offset + 1)
    for former in {*FIRST_EPOCHS[:3], *FIRST_EPOCHS[-3:]} - {epoch}:
        with pytest.raises(ProducerFenced):
            rig.log.producers.check(stamp_of(batch(kernels, 3, producer_epoch=former)))


@pytest.mark.parametrize("epoch", [1, 2, FIRST_EPOCHS[0] - 1])
def test_a_fence_out_of_date_is_no_first_one(kernels: Kernels, epoch: int) -> None:
    with pytest.raises(UnknownProducer, match="no first fence"):
        ProducerStates(Rig(kernels).log, kernels, lambda: NOW_MS).judge(
            Stamp(P, epoch, NO_SEQUENCE, 1, 7), b"", EPOCH, 0
        )
