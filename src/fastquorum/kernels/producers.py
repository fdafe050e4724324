"""What producers have in a log: for each its epoch and its last batches, read back from the batches' own headers.

Nothing of this is stored anywhere else, so that a new leader, a restarted node and the log say the same of a producer.
What a truncation removes is taken back. Must not know who appends, nor why. Source: KIP-98 (idempotent producers),
KIP-360; Kafka `ProducerStateManager`.
"""

from typing import Final, NamedTuple, Protocol

from fastquorum.kernels.batches import Buffer
from fastquorum.types import Offset

BATCHES_KEPT: Final = 5
"""A retried batch is recognised among this many: as many requests as Kafka's producers keep in flight."""
PRODUCERS_MAX: Final = 65_536
"""Producers remembered: those that appended last, however long ago. Counted in the log's order, not by a clock, so that
every node remembers the same ones. They are forgotten an eighth of that number at a time."""
UNDO_MAX: Final = 65_536
"""Batches that a truncation can take back; only an uncommitted tail is ever truncated."""
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


class Producers(Protocol):
    """Every producer's state as of `end_offset` of one log, which owns it.

    The native one is thread-safe: a lane takes in what it appends while others look. The pure one is not.
    """

    def __init__(self, start_offset: Offset, *, producers_max: int = PRODUCERS_MAX, undo_max: int = UNDO_MAX) -> None:
        """Of a log that starts there; empty."""

    @property
    def end_offset(self) -> Offset:
        """Exclusive: all batches below it are taken in."""
        ...

    def __len__(self) -> int:
        """Producers known."""
        ...

    def get(self, producer_id: int) -> Producer | None:
        """None: it never appended, or was forgotten."""
        ...

    def check(self, stamp: Stamp) -> ProducedBatch | None:
        """None if the batch is the next of its producer; where it lies if it is in the log already.

        A producer that is not known may begin with any sequence, as in Kafka: it may have been forgotten.

        Raises:
            ProducerFenced: its epoch is over.
            OutOfOrderSequence: it is neither the next, nor one of the last.
        """
        ...

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
