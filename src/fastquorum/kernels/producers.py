"""What producers have in a log: for each its epoch and its last batches, read back from the batches' own headers.

Nothing of this is stored anywhere else, so that a new leader, a restarted node and the log say the same of a producer.
What a truncation removes is taken back. Must not know who appends, nor why. Source: KIP-98 (idempotent producers),
KIP-360; Kafka `ProducerStateManager`.

A fence is a batch of a producer without a sequence: an instance of a named producer takes the next epoch by it. From
there on batches of that epoch alone are taken, and their sequences go on where they were, so that a new instance can
say again what a former one appended. Without fences a newer epoch is taken when its first batch comes, and its
sequences begin at 0, as in Kafka.
"""

import struct
from typing import Final, NamedTuple, Protocol

from fastquorum.kernels.batches import Buffer
from fastquorum.types import Offset

BATCHES_KEPT: Final = 5
"""A retried batch is recognised among this many: as many requests as Kafka's producers keep in flight."""
PRODUCERS_MAX: Final = 65_536
"""Producers remembered: those that appended last, however long ago. Counted in the log's order, not by a clock, so that
every node remembers the same ones."""
UNDO_MAX: Final = 65_536
"""Batches that a truncation can take back; only an uncommitted tail is ever truncated."""
SEQUENCES: Final = 2**31
"""They run from 0 up to this, and begin anew."""
NO_SEQUENCE: Final = -1
"""A fence has it in place of a first sequence, as all control batches have."""
EPOCHS: Final = 2**15
"""Epochs of a producer run from 0 up to this; a fence begins anew after the last."""
_CRC: Final = slice(17, 21)
_STAMP: Final = struct.Struct(">qhii")
_STAMP_POSITION: Final = 43
"""Where a batch's header has its checksum; and producer id, epoch, first sequence and record count in a row."""
_MAX_TIMESTAMP: Final = slice(35, 43)


class Stamp(NamedTuple):
    """What a producer says of one of its batches: sequences count its records."""

    producer_id: int
    epoch: int
    first_sequence: int
    """NO_SEQUENCE: it is a fence."""
    record_count: int
    crc: int = 0
    """The batch's checksum: two batches that differ in it may still hold the same records, written at other times."""

    @property
    def last_sequence(self) -> int:
        return NO_SEQUENCE if self.is_fence else sequence_after(self.first_sequence, self.record_count - 1)

    @property
    def is_fence(self) -> bool:
        return self.first_sequence < 0


def stamp_of(batch: Buffer) -> Stamp:
    """What a whole batch's header says of its producer."""
    producer_id, epoch, first_sequence, record_count = _STAMP.unpack_from(batch, _STAMP_POSITION)
    return Stamp(producer_id, epoch, first_sequence, record_count, int.from_bytes(batch[_CRC], "big"))


def max_timestamp_ms_of(batch: Buffer) -> int:
    """The largest timestamp in a whole batch, as its header has it: milliseconds since 1970, by whoever wrote it."""
    return int.from_bytes(batch[_MAX_TIMESTAMP], "big", signed=True)


class ProducedBatch(NamedTuple):
    """One batch of a producer, where it lies. Both sequences of a fence are NO_SEQUENCE."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    end_offset: Offset
    """Exclusive."""
    crc: int
    """Its checksum."""


class ProducerState(NamedTuple):
    """The remembered state of one producer. Batches of an epoch that was taken without a fence begin anew."""

    epoch: int
    batches: tuple[ProducedBatch, ...]
    """Its last ones, oldest first; without fences."""
    fence: ProducedBatch | None = None
    """The last fence, if `epoch` was taken by one."""

    @property
    def next_sequence(self) -> int:
        """0 if there are no batches: then any may come."""
        return sequence_after(self.batches[-1].last_sequence, 1) if self.batches else 0

    @property
    def next_epoch(self) -> int:
        """The one that a fence takes."""
        return (self.epoch + 1) % EPOCHS

    @property
    def end_offset(self) -> Offset:
        """The exclusive end of its last batch or fence."""
        last = self.batches[-1].end_offset if self.batches else 0
        return last if self.fence is None else max(last, self.fence.end_offset)


def sequence_after(sequence: int, count: int) -> int:
    """The sequence of the record that comes `count` after the one of `sequence`."""
    return (sequence + count) % SEQUENCES


class Producers(Protocol):
    """Every producer's state as of `end_offset` of one log, which owns it.

    The native one is thread-safe: a lane takes in what it appends while others look. The pure one is not.
    """

    def __init__(self, start_offset: Offset, *, producers_max: int = PRODUCERS_MAX, undo_max: int = UNDO_MAX) -> None:
        """Make the empty states of a log that starts at `start_offset`."""

    @property
    def end_offset(self) -> Offset:
        """Exclusive: all batches below it are taken in."""

    def __len__(self) -> int:
        """Producers known."""

    def get(self, producer_id: int) -> ProducerState | None:
        """None: it never appended, or was forgotten."""

    @property
    def displaced_end(self) -> Offset:
        """Where the last batch ends of the producer that one more would displace; -1 while there is room."""

    def check(self, stamp: Stamp) -> ProducedBatch | None:
        """None if the batch is the next of its producer; else the batch in the log that has its sequences.

        That one need not hold the same: where its checksum is another one, the records have to be compared. Only of
        fences the checksum decides. A producer that is not known may begin with any sequence, as in Kafka: it may have
        been forgotten.

        Raises:
            ProducerFenced: its epoch is over, or a fence takes another epoch than the next.
            OutOfOrderSequence: it is neither the next, nor one of the last.
        """

    def appended(self, stamp: Stamp | None, base_offset: Offset, end_offset: Offset) -> None:
        """A batch was appended; `stamp` if it is a producer's. If what lies before it is not taken in yet, it is read
        with that, later."""

    def read(self, batches: Buffer, base_offset: Offset, end_offset: Offset) -> None:
        """Take in whole, good batches from base_offset to end_offset. Nothing happens if they do not continue what was
        taken in: somebody else was faster."""

    def truncated(self, end_offset: Offset) -> None:
        """The log was truncated to this end."""

    def begin_anew(self, start_offset: Offset) -> None:
        """The log is empty and starts there: what lay below it came as a snapshot, which says nothing of producers."""
