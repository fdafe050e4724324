"""Which leader epoch begins at which offset (KIP-101), and the high watermark (KIP-595; Raft section 5.4.2)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from fastquorum.errors import CorruptionError, VoterCountError


class EpochCache:
    """Epochs and their start offsets, two ascending columns. Not thread-safe."""

    def __init__(self, entries: Sequence[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start_offset in entries:
            if epoch <= self.latest_epoch or start_offset <= self.latest_start:
                raise CorruptionError("epoch", offset=start_offset)
            self._epochs.append(epoch)
            self._starts.append(start_offset)

    def __len__(self) -> int:
        return len(self._epochs)

    def assign(self, epoch: int, start_offset: int) -> bool:
        if epoch < max(0, self.latest_epoch):
            raise CorruptionError("epoch", offset=start_offset)
        if epoch == self.latest_epoch:
            return False
        if start_offset < max(0, self.latest_start):
            raise CorruptionError("offset", offset=start_offset)
        self.truncate_to(start_offset)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    @property
    def latest_epoch(self) -> int:
        return self._epochs[-1] if self._epochs else -1

    @property
    def latest_start(self) -> int:
        return self._starts[-1] if self._starts else -1

    def epoch_for(self, offset: int) -> int:
        i = bisect_right(self._starts, offset) - 1
        return self._epochs[i] if i >= 0 else -1

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        if not self._epochs:
            return -1, -1
        if epoch >= self._epochs[-1]:
            return self._epochs[-1], log_end_offset
        following = bisect_right(self._epochs, epoch)
        floor_epoch = self._epochs[following - 1] if following else epoch
        return floor_epoch, self._starts[following]

    def truncate_to(self, end_offset: int) -> None:
        keep = bisect_left(self._starts, end_offset)
        del self._epochs[keep:], self._starts[keep:]

    def truncate_before(self, start_offset: int) -> None:
        covering = bisect_right(self._starts, start_offset) - 1
        if covering < 0:
            return
        del self._epochs[:covering], self._starts[:covering]
        self._starts[0] = start_offset

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))


def high_watermark(end_offsets: Sequence[int], epoch_start_offset: int) -> int:
    count = len(end_offsets)
    if not count:
        raise VoterCountError("a quorum without voters has no high watermark", count=0)
    reached = sorted(end_offsets, reverse=True)[count // 2]
    return reached if reached > epoch_start_offset else -1
