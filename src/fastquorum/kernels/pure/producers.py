"""What producers have in a log. Twin of `ext/core/producers.h`; see `kernels.producers` for the rules."""

from collections import deque

from fastquorum.errors import OutOfOrderSequence, ProducerFenced
from fastquorum.kernels import Buffer
from fastquorum.kernels.producers import (
    BATCHES_KEPT,
    NO_SEQUENCE,
    PRODUCERS_MAX,
    UNDO_MAX,
    ProducedBatch,
    ProducerState,
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
        self._known: dict[int, ProducerState] = {}
        """In the order of their last batches."""
        self._undo: deque[tuple[Offset, int, ProducerState | None]] = deque()
        """For each of the last batches: its base offset, its producer, and what that was before."""
        self._floor = start_offset
        """A truncation to below it cannot be undone from `_undo`: everything is read anew."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, producer_id: int) -> ProducerState | None:
        return self._known.get(producer_id)

    @property
    def displaced_end(self) -> Offset:
        if len(self._known) < self._producers_max:
            return -1
        return next(iter(self._known.values())).end_offset

    def check(self, stamp: Stamp) -> ProducedBatch | None:
        known = self._known.get(stamp.producer_id)
        if known is None:
            return None
        if stamp.is_fence:
            return self._check_fence(stamp, known)
        if stamp.epoch < known.epoch or (known.fence is not None and stamp.epoch != known.epoch):
            raise ProducerFenced(producer_id=stamp.producer_id, epoch=stamp.epoch, current_epoch=known.epoch)
        expected = known.next_sequence if known.batches else stamp.first_sequence
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

    @staticmethod
    def _check_fence(stamp: Stamp, known: ProducerState) -> ProducedBatch | None:
        fence = known.fence
        if fence is not None and stamp.epoch == known.epoch and stamp.crc == fence.crc:
            return fence
        if stamp.epoch != known.next_epoch:
            raise ProducerFenced(producer_id=stamp.producer_id, epoch=stamp.epoch, current_epoch=known.epoch)
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
            stamp = Stamp(info.producer_id, info.producer_epoch, info.base_sequence, count, info.crc)
            self._take(stamp, info.base_offset)
        self.end_offset = end_offset

    def truncated(self, end_offset: Offset) -> None:
        if end_offset < self._floor:
            self._known.clear()
            self._undo.clear()
            self.end_offset = self._floor = self._start_offset
            return
        while self._undo and self._undo[-1][0] >= end_offset:
            _, producer_id, before = self._undo.pop()
            del self._known[producer_id]
            if before is not None:
                self._known[producer_id] = before
        self._known = dict(sorted(self._known.items(), key=lambda item: item[1].end_offset))
        self.end_offset = min(self.end_offset, end_offset)

    def begin_anew(self, start_offset: Offset) -> None:
        self._known.clear()
        self._undo.clear()
        self.end_offset = self._start_offset = self._floor = start_offset

    def _take(self, stamp: Stamp, base_offset: Offset) -> None:
        before = self._known.pop(stamp.producer_id, None)
        sequences = (stamp.first_sequence, stamp.last_sequence) if not stamp.is_fence else (NO_SEQUENCE, NO_SEQUENCE)
        batch = ProducedBatch(*sequences, base_offset, base_offset + stamp.record_count, stamp.crc)
        if stamp.is_fence:
            now = ProducerState(stamp.epoch, before.batches if before is not None else (), batch)
        elif before is not None and before.epoch == stamp.epoch:
            now = ProducerState(stamp.epoch, (*before.batches[1 - BATCHES_KEPT :], batch), before.fence)
        else:
            now = ProducerState(stamp.epoch, (batch,))
        self._known[stamp.producer_id] = now
        self._undo.append((base_offset, stamp.producer_id, before))
        if len(self._undo) > self._undo_max:
            self._floor = self._undo.popleft()[0] + 1
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        """But none that may have to be restored to what it was before."""
        while len(self._known) > self._producers_max:
            producer_id, oldest = next(iter(self._known.items()))
            if oldest.end_offset > self._undo[0][0]:
                return
            del self._known[producer_id]
