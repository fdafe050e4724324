"""The log's end while it is lent and taken back: whoever looks at it meanwhile, from any thread, never sees it fall."""

from collections.abc import Callable, Sequence

from fastquorum.kernels import Kernels, OffsetIndex, Producers, SegmentFile
from fastquorum.kernels.loan import LoanState, Zeros
from fastquorum.types import Offset

from .logs import Rig


class LookedAt:
    """A borrower that has another thread's look in the middle of whatever is asked of it."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self.state: LoanState | None = None

    @property
    def end_offset(self) -> Offset:
        return self.state.end_offset if self.state is not None else 0

    @property
    def flushed_end(self) -> Offset:
        return self.state.flushed[0] if self.state is not None else 0

    @property
    def is_flushing(self) -> bool:
        return False

    def lend(
        self,
        state: LoanState,
        segments: Sequence[tuple[Offset, SegmentFile, OffsetIndex, int]],
        segment_bytes: int,
        zeros: Zeros,
        producers: Producers,
    ) -> None:
        self._look()
        self.state = state
        self._look()

    def take_back(self) -> LoanState:
        self._look()
        return self.look()

    def look(self) -> LoanState:
        assert self.state is not None
        return self.state

    def read_recent(self, offset: Offset, bytes_max: int) -> bytes | None:
        return None

    def prepare(self, end: int) -> int:
        return end


def test_no_end_falls_while_the_log_is_lent_and_taken_back(kernels: Kernels) -> None:
    rig = Rig(kernels)
    ends: list[tuple[Offset, Offset]] = []
    borrower = LookedAt(lambda: ends.append((rig.log.end_offset, rig.log.flushed_end)))
    for _ in range(3):
        rig.append(1, b"a", b"b")
        rig.flush()
        rig.log.lend(borrower)
        rig.log.take_back()
    assert ends == sorted(ends)
    assert ends[0] == (2, 2)
    assert ends[-1] == (6, 6)
