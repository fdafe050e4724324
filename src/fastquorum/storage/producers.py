"""What producers have in the log: for each its epoch and its last batches, read back from the batches' own headers.

Nothing of this is stored anywhere else, so that a new leader, a restarted node and the log say the same of a producer.
What a truncation removes is taken back. Must not know who appends, nor why. Source: KIP-98 (idempotent producers),
KIP-360; Kafka `ProducerStateManager`.
"""

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from fastquorum.errors import OutOfOrderSequence, ProducerFenced
from fastquorum.kernels import Buffer, Kernels
from fastquorum.types import Offset

if TYPE_CHECKING:
    from fastquorum.storage.log import Log

BATCHES_KEPT: Final = 5
"""A retried batch is recognised among this many: as many requests as Kafka's producers keep in flight."""
PRODUCERS_MAX: Final = 65_536
"""Producers remembered: those that appended last, however long ago. Counted in the log's order, not by a clock, so that
every node remembers the same ones."""
_PRODUCERS_SLACK: Final = PRODUCERS_MAX // 8
"""Forgetting sorts them all, so it is done for many at a time."""
UNDO_MAX: Final = 65_536
"""Batches that a truncation can take back; only an uncommitted tail is ever truncated."""
_READ_BYTES: Final = 1 << 20
SEQUENCES: Final = 2**31
"""They run from 0 up to this, and begin anew."""


class Stamp(NamedTuple):
    """What a producer says of one of its batches: sequences count its records."""

    producer_id: int
    epoch: int
    first_sequence: int
    record_count: int

    @property
    def last_sequence(self) -> int:
        return sequence_after(self.first_sequence, self.record_count - 1)


class ProducedBatch(NamedTuple):
    """One batch of a producer, where it lies."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    end_offset: Offset
    """Exclusive."""


class Producer(NamedTuple):
    """What is remembered of one producer: the last batches of its last epoch, oldest first."""

    epoch: int
    batches: tuple[ProducedBatch, ...]

    @property
    def next_sequence(self) -> int:
        return sequence_after(self.batches[-1].last_sequence, 1)


def sequence_after(sequence: int, count: int) -> int:
    """The sequence of the record that comes `count` after the one of `sequence`."""
    return (sequence + count) % SEQUENCES


class Producers:
    """Every producer's state as of `end_offset` of one log, which owns it. Not thread-safe."""

    def __init__(self, start_offset: Offset) -> None:
        self.end_offset = start_offset
        """Exclusive: all batches below it are taken in."""
        self._start_offset = start_offset
        self._known: dict[int, Producer] = {}
        self._undo: deque[tuple[Offset, int, Producer | None]] = deque()
        """For each of the last batches: its base offset, its producer, and what that was before."""
        self._floor = start_offset
        """A truncation to below it cannot be undone from `_undo`: everything is read anew."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, producer_id: int) -> Producer | None:
        """None: it never appended, or was forgotten."""
        return self._known.get(producer_id)

    def check(self, stamp: Stamp) -> ProducedBatch | None:
        """None if the batch is the next of its producer; where it lies if it is in the log already.

        A producer that is not known may begin with any sequence, as in Kafka: it may have been forgotten.

        Raises:
            ProducerFenced: its epoch is over.
            OutOfOrderSequence: it is neither the next, nor one of the last.
        """
        known = self._known.get(stamp.producer_id)
        if known is None:
            return None
        if stamp.epoch < known.epoch:
            raise ProducerFenced(producer_id=stamp.producer_id, epoch=stamp.epoch, current_epoch=known.epoch)
        expected = known.next_sequence
        if stamp.epoch > known.epoch:
            expected = 0
        else:
            for batch in known.batches:
                if (batch.first_sequence, batch.last_sequence) == (stamp.first_sequence, stamp.last_sequence):
                    return batch
        if stamp.first_sequence != expected:
            raise OutOfOrderSequence(
                producer_id=stamp.producer_id, sequence=stamp.first_sequence, expected_sequence=expected
            )
        return None

    # --- following the log --------------------------------------------------------------------------------------------

    def appended(self, stamp: Stamp | None, base_offset: Offset, end_offset: Offset) -> None:
        """A batch was appended; `stamp` if it is a producer's. If what lies before it is not taken in yet, it is read
        with that, later."""
        if base_offset == self.end_offset:
            self.end_offset = end_offset
            if stamp is not None:
                self._take(stamp, base_offset)

    def catch_up(self, log: "Log", kernels: Kernels, bytes_max: int) -> bool:
        """Read what the log holds beyond `end_offset`, at most about so many bytes; True once that is all.

        CorruptionError if it cannot be read.
        """
        while self.end_offset < log.end_offset:
            if bytes_max <= 0:
                return False
            data = log.read(self.end_offset, min(_READ_BYTES, bytes_max))
            bytes_max -= len(data)
            self.read(kernels, data, kernels.scan(data, verify_crc=False).next_offset)
        return True

    def read(self, kernels: Kernels, batches: Buffer, end_offset: Offset) -> None:
        """Take in whole batches that continue what was taken in, up to `end_offset`."""
        for info in kernels.batch_headers(batches, verify_crc=False, producers_only=True):
            count = info.last_offset - info.base_offset + 1
            self._take(Stamp(info.producer_id, info.producer_epoch, info.base_sequence, count), info.base_offset)
        self.end_offset = end_offset
        self._forget_oldest()

    def truncated(self, end_offset: Offset) -> None:
        """The log was truncated to this end."""
        if end_offset < self._floor:
            self._known.clear()
            self._undo.clear()
            self.end_offset = self._floor = self._start_offset
            return
        while self._undo and self._undo[-1][0] >= end_offset:
            _, producer_id, before = self._undo.pop()
            if before is None:
                del self._known[producer_id]
            else:
                self._known[producer_id] = before
        self.end_offset = min(self.end_offset, end_offset)

    def begin_anew(self, start_offset: Offset) -> None:
        """The log is empty and starts there: what lay below it came as a snapshot, which says nothing of producers."""
        self._known.clear()
        self._undo.clear()
        self.end_offset = self._start_offset = self._floor = start_offset

    def _take(self, stamp: Stamp, base_offset: Offset) -> None:
        before = self._known.get(stamp.producer_id)
        batch = ProducedBatch(stamp.first_sequence, stamp.last_sequence, base_offset, base_offset + stamp.record_count)
        kept = before.batches[1 - BATCHES_KEPT :] if before is not None and before.epoch == stamp.epoch else ()
        self._known[stamp.producer_id] = Producer(stamp.epoch, (*kept, batch))
        self._undo.append((base_offset, stamp.producer_id, before))
        if len(self._undo) > UNDO_MAX:
            self._floor = self._undo.popleft()[0] + 1

    def _forget_oldest(self) -> None:
        """But none that may have to be restored to what it was before."""
        if len(self._known) <= PRODUCERS_MAX + _PRODUCERS_SLACK:
            return
        by_age = sorted(self._known.items(), key=lambda item: item[1].batches[-1].base_offset)
        for producer_id, producer in by_age[:-PRODUCERS_MAX]:
            if producer.batches[-1].base_offset < self._undo[0][0]:
                del self._known[producer_id]
