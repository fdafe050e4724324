"""What producers have in a log. Twin of `ext/core/producers.h`; see `kernels.producers` for the rules."""

from collections import deque

from fastquorum.errors import OutOfOrderSequence, ProducerFenced
from fastquorum.kernels import Buffer
from fastquorum.kernels.producers import (
    BATCHES_KEPT,
    PRODUCERS_MAX,
    UNDO_MAX,
    ProducedBatch,
    Producer,
    Stamp,
)
from fastquorum.kernels.pure.scan import batch_headers
from fastquorum.types import Offset


class Producers:
    """See `kernels.producers.Producers`. Not thread-safe."""

    def __init__(self, start_offset: Offset, *, producers_max: int = PRODUCERS_MAX, undo_max: int = UNDO_MAX) -> None:
        self._producers_max = producers_max
        self._undo_max = undo_max
        self.end_offset = start_offset
        self._start_offset = start_offset
        self._known: dict[int, Producer] = {}
        self._undo: deque[tuple[Offset, int, Producer | None]] = deque()
        """For each of the last batches: its base offset, its producer, and what that was before."""
        self._floor = start_offset
        """A truncation to below it cannot be undone from `_undo`: everything is read anew."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, producer_id: int) -> Producer | None:
        return self._known.get(producer_id)

    def check(self, stamp: Stamp) -> ProducedBatch | None:
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

    def appended(self, stamp: Stamp | None, base_offset: Offset, end_offset: Offset) -> None:
        if base_offset == self.end_offset:
            self.end_offset = end_offset
            if stamp is not None:
                self._take(stamp, base_offset)

    def read(self, batches: Buffer, base_offset: Offset, end_offset: Offset) -> None:
        if base_offset != self.end_offset:
            return
        for info in batch_headers(batches, verify_crc=False, producers_only=True):
            count = info.last_offset - info.base_offset + 1
            self._take(Stamp(info.producer_id, info.producer_epoch, info.base_sequence, count), info.base_offset)
        self.end_offset = end_offset

    def truncated(self, end_offset: Offset) -> None:
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
        self._known.clear()
        self._undo.clear()
        self.end_offset = self._start_offset = self._floor = start_offset

    def _take(self, stamp: Stamp, base_offset: Offset) -> None:
        before = self._known.get(stamp.producer_id)
        batch = ProducedBatch(stamp.first_sequence, stamp.last_sequence, base_offset, base_offset + stamp.record_count)
        kept = before.batches[1 - BATCHES_KEPT :] if before is not None and before.epoch == stamp.epoch else ()
        self._known[stamp.producer_id] = Producer(stamp.epoch, (*kept, batch))
        self._undo.append((base_offset, stamp.producer_id, before))
        if len(self._undo) > self._undo_max:
            self._floor = self._undo.popleft()[0] + 1
        if len(self._known) > self._producers_max + self._producers_max // 8:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        """But none that may have to be restored to what it was before."""
        by_age = sorted(self._known.items(), key=lambda item: item[1].batches[-1].base_offset)
        for producer_id, producer in by_age[: -self._producers_max]:
            if producer.batches[-1].base_offset < self._undo[0][0]:
                del self._known[producer_id]
