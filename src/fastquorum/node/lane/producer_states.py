"""What producers have in the log, read up to its end when it is needed, and what a leader makes of their next batches.
All of it is called with the lane lock held.

Where the next id comes from: an id is the leader's epoch and a counter. Nobody else leads that epoch, and nobody leads
it twice, so that nothing need be stored for ids to be unique for ever: a later leader gives out ids of its own epoch.
Ids of names (NAMED) are made by whoever has the name. Must not know who asks, nor what for. Source: KIP-98.
"""

from collections import deque
from typing import Final

from fastquorum.config import SECOND
from fastquorum.errors import OutOfOrderSequence, Overloaded, SequenceReused, UnknownProducer
from fastquorum.kernels import Buffer, Kernels, Producers
from fastquorum.kernels.producers import ProducedBatch, Stamp, max_timestamp_ms_of
from fastquorum.node.lane.fences import FIRST_EPOCHS, NOTE_EPOCH
from fastquorum.node.ports import WallClock
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.producers import catch_up
from fastquorum.types import Epoch, Micros, Offset

CATCH_UP_BYTES: Final = 64 * 1024 * 1024
"""Read at most, with the lock held, when a producer appends, to learn what the log has of it; if there is more, it is
told to try again."""
UPKEEP_BYTES: Final = 8 * 1024 * 1024
"""Read at most, with the lock held, between commits, so that a new leader has little left to read."""
CATCH_UP_RETRY_S: Final = 0.05
NAMED: Final = 1 << 62
"""Ids of named producers have this bit; those that nodes give out never have."""
COUNTER_BITS: Final = 31
"""Bits of an id's counter, below the leader's epoch."""
REMEMBERED_US: Final = 300 * SECOND
"""A producer that appended within this time is not forgotten for the sake of new ones: as long as Kafka's clients try
a batch again (librdkafka's message.timeout.ms)."""
LONG_AGO_MS: Final = 3_600_000
"""What lay in the log when this process began was appended longer ago than REMEMBERED_US if it was written so long ago:
clocks of clients differ, by less."""
NO_ROOM_RETRY_S: Final = 1.0
_SAMPLE_US: Final = REMEMBERED_US // 30
_RECORDS_AT: Final = 57
"""From here on a batch holds its record count and its records."""


class ProducerStates:
    """The log's own, brought up to its end."""

    def __init__(self, log: Log, kernels: Kernels, clock_ms: WallClock) -> None:
        self._log = log
        self._kernels = kernels
        self._clock_ms = clock_ms
        self._id_epoch: Epoch = -1
        self._next_number = 0
        self._ends: deque[tuple[Micros, Offset]] = deque()
        """Where the log ended at some times, oldest first: one that is older than REMEMBERED_US, and later ones."""
        self._found_end = log.end_offset
        """What lies below it was appended before this process began."""

    def current(self) -> Producers:
        """Return the states at the log's end. Raises Overloaded while that is still being read; CorruptionError."""
        if not catch_up(self._log, self._kernels, CATCH_UP_BYTES):
            raise Overloaded("what producers have in the log is still being read", CATCH_UP_RETRY_S)
        return self._log.producers

    def maintain(self, now_us: Micros) -> None:
        """Between commits. Raises CorruptionError."""
        catch_up(self._log, self._kernels, UPKEEP_BYTES)
        self._note_end(now_us)

    def new_id(self, epoch: Epoch) -> int:
        """An id for a producer without a name; -1 when the epoch's are used up, all 2^31 of them."""
        if epoch != self._id_epoch:
            self._id_epoch, self._next_number = epoch, 0
        if self._next_number >> COUNTER_BITS:
            return -1
        number, self._next_number = self._next_number, self._next_number + 1
        return epoch << COUNTER_BITS | number

    def judge(self, stamp: Stamp, batch: Buffer, epoch: Epoch, now_us: Micros) -> ProducedBatch | None:
        """May the leader of `epoch` append it? None: it may; else the batch in the log that it repeats.

        Raises:
            OutOfOrderSequence, ProducerFenced, UnknownProducer: never, if this node leads still.
            Overloaded: not now.
        """
        producers = self.current()
        if producers.get(stamp.producer_id) is None:
            self._admit(producers, stamp, epoch, now_us)
            return None
        there = producers.check(stamp)
        if there is not None and there.crc != stamp.crc:
            self._compare(producers, stamp, there, batch)
        return there

    def _compare(self, producers: Producers, stamp: Stamp, there: ProducedBatch, batch: Buffer) -> None:
        """Raises SequenceReused if the batch in the log holds other records; OutOfOrderSequence if nothing is left of
        it to tell: to acknowledge other values by it would lose them."""
        known = producers.get(stamp.producer_id)
        expected = known.next_sequence if known is not None else 0
        if there.base_offset < self._log.start_offset:
            raise OutOfOrderSequence(
                f"producer {stamp.producer_id} has appended sequence {stamp.first_sequence} long ago: the log begins "
                f"behind it, so that it is not known whether this is a retry; its next is {expected}",
                producer_id=stamp.producer_id,
                sequence=stamp.first_sequence,
                expected_sequence=expected,
            )
        if not self._holds(there, batch):
            raise SequenceReused(
                producer_id=stamp.producer_id,
                sequence=stamp.first_sequence,
                expected_sequence=expected,
                offset=there.base_offset,
            )

    def _admit(self, producers: Producers, stamp: Stamp, epoch: Epoch, now_us: Micros) -> None:
        """One of which nothing is known. Raises UnknownProducer, Overloaded."""
        if not self._was_given_out(stamp.producer_id, epoch):
            raise UnknownProducer(producer_id=stamp.producer_id)
        if stamp.is_fence and stamp.epoch != NOTE_EPOCH and stamp.epoch not in FIRST_EPOCHS:
            detail = f"nothing is known of producer {stamp.producer_id}: no first fence takes epoch {stamp.epoch}"
            raise UnknownProducer(detail=detail, producer_id=stamp.producer_id)
        self._note_end(now_us)
        displaced_end = producers.displaced_end
        if displaced_end > self._remembered_from(now_us) and not self._is_from_long_ago(displaced_end):
            raise Overloaded(
                "as many producers as are remembered have appended within the last minutes", NO_ROOM_RETRY_S
            )

    def _was_given_out(self, producer_id: int, epoch: Epoch) -> bool:
        """By the leader of `epoch`, or perhaps by one before it."""
        if producer_id & NAMED:
            return True
        given_in, number = producer_id >> COUNTER_BITS, producer_id & ((1 << COUNTER_BITS) - 1)
        if given_in == epoch:
            return epoch == self._id_epoch and number < self._next_number
        return 0 < given_in < epoch

    def _note_end(self, now_us: Micros) -> None:
        ends = self._ends
        if not ends or now_us - ends[-1][0] >= _SAMPLE_US:
            ends.append((now_us, self._log.end_offset))
        while len(ends) > 1 and ends[1][0] <= now_us - REMEMBERED_US:
            ends.popleft()

    def _remembered_from(self, now_us: Micros) -> Offset:
        """Whoever has appended behind this offset is remembered."""
        at_us, end_offset = self._ends[0]
        return end_offset if at_us <= now_us - REMEMBERED_US else -1

    def _is_from_long_ago(self, end_offset: Offset) -> bool:
        """Was the batch that ends there appended before this process began, and written long ago?"""
        if not self._log.start_offset < end_offset <= self._found_end:
            return False
        written_ms = max_timestamp_ms_of(self._log.read(end_offset - 1, 1))
        return written_ms <= self._clock_ms() - LONG_AGO_MS

    def _holds(self, there: ProducedBatch, batch: Buffer) -> bool:
        """Are its records the same? When they were written, and by which epoch, does not matter."""
        found = self._log.read(there.base_offset, 1)
        size_bytes = int.from_bytes(found[8:12], "big") + 12
        return bytes(found[_RECORDS_AT:size_bytes]) == bytes(batch[_RECORDS_AT:])
