"""The pure twin of ext/core/node/trace.h: measures what a batch's way through a node takes. See `kernels.stages`."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Final

from fastquorum.errors import UsageError
from fastquorum.kernels.stages import (
    BUCKETS,
    CAPACITY_MAX,
    STAGES,
    WINDOW,
    AnnouncedRange,
    Nanos,
    StageHistogram,
    TracedGroup,
    TraceRead,
    bucket_of,
    with_resolved,
)
from fastquorum.types import Epoch, Micros, Offset

_PASSED: Final = ("sent", "flushed", "acked", "committed")
_NS_PER_US: Final = 1_000


@dataclass(slots=True, eq=False, repr=False)
class _Group:
    """One group on its way; its fields are those of `TracedGroup`."""

    base_offset: Offset
    end_offset: Offset
    epoch: Epoch
    is_leader: bool
    append: Nanos
    written: Nanos
    sent: Nanos = 0
    syncing: Nanos = 0
    flushed: Nanos = 0
    acked: Nanos = 0
    committed: Nanos = 0


class _Histogram:
    __slots__ = ("count", "counts", "sum_ns")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ns: Nanos = 0
        self.counts = [0] * BUCKETS

    def add(self, value_ns: Nanos) -> None:
        self.counts[bucket_of(value_ns)] += 1
        self.count += 1
        self.sum_ns += max(value_ns, 0)


class Stages:
    """See `kernels.stages.Stages`."""

    def __init__(self) -> None:
        self._histograms = {name: _Histogram() for name in STAGES}
        self._groups: list[_Group | None] = [None] * WINDOW
        self._head = 0
        self._passed = dict.fromkeys(_PASSED, 0)
        self._announced: list[AnnouncedRange] = []
        self._announced_head = 0
        self._announced_capacity = 0
        self._is_leader = False
        self._began: Nanos = 0
        self._first: Nanos = 0
        """When the oldest append that still gathers was accepted; 0 if none gathers."""
        self._sync_began: Nanos = 0

    # --- what happens -------------------------------------------------------------------------------------------------

    def opened(self, is_leader: bool) -> None:
        self.forget()
        self._is_leader = is_leader

    def forget(self) -> None:
        self._passed = dict.fromkeys(_PASSED, self._head)
        self._first = 0

    def begin(self, at_ns: Nanos) -> None:
        self._began = at_ns

    def gathers(self) -> None:
        self._first = self._first or self._began

    def written(self, base_offset: Offset, end_offset: Offset, epoch: Epoch, at_ns: Nanos) -> None:
        append = self._first or self._began
        self._first = 0
        group = _Group(base_offset, end_offset, epoch, self._is_leader, append, at_ns)
        self._groups[self._head % len(self._groups)] = group
        self._head += 1
        oldest = self._lost
        for stage, cursor in self._passed.items():
            self._passed[stage] = max(cursor, oldest)  # the rest have been overwritten
        self._histograms["append_written"].add(at_ns - append)

    def sent(self, end_offset: Offset, at_ns: Nanos) -> None:
        def reached(group: _Group) -> None:
            group.sent = at_ns
            if group.is_leader:
                self._histograms["written_sent"].add(at_ns - group.written)

        self._pass("sent", end_offset, reached)

    def synced(self, began_ns: Nanos, ended_ns: Nanos) -> None:
        self._sync_began = began_ns
        self._histograms["sync"].add(ended_ns - began_ns)

    def flushed(self, end_offset: Offset, at_ns: Nanos) -> None:
        def reached(group: _Group) -> None:
            group.flushed = at_ns
            if group.written <= self._sync_began <= at_ns:
                group.syncing = self._sync_began
            self._histograms["written_flushed"].add(at_ns - group.written)

        self._pass("flushed", end_offset, reached)

    def acked(self, end_offset: Offset, at_ns: Nanos) -> None:
        def reached(group: _Group) -> None:
            group.acked = at_ns
            if group.is_leader and group.sent:
                self._histograms["sent_acked"].add(at_ns - group.sent)

        self._pass("acked", end_offset, reached)

    def committed(self, end_offset: Offset, at_ns: Nanos) -> None:
        def reached(group: _Group) -> None:
            group.committed = at_ns
            if group.is_leader:
                self._histograms["written_committed"].add(at_ns - group.written)

        self._pass("committed", end_offset, reached)

    def announced(self, base_offset: Offset, appended_us: Micros, committed_us: Micros, at_ns: Nanos) -> None:
        if base_offset < 0 or not appended_us:
            return
        self._histograms["committed_told"].add(at_ns - committed_us * _NS_PER_US)
        self._histograms["append_told"].add(at_ns - appended_us * _NS_PER_US)
        if self._announced_capacity:
            each = (base_offset, base_offset, at_ns)
            if len(self._announced) < self._announced_capacity:
                self._announced.append(each)
            else:
                self._announced[self._announced_head % self._announced_capacity] = each
            self._announced_head += 1

    # --- looking at it ------------------------------------------------------------------------------------------------

    def histograms(self) -> dict[str, StageHistogram]:
        return {
            name: StageHistogram(each.count, each.sum_ns / 1000, tuple(each.counts))
            for name, each in self._histograms.items()
        }

    def trace_start(self, capacity: int) -> None:
        if not 1 <= capacity <= CAPACITY_MAX:
            raise UsageError(f"a trace of {capacity} batches: from 1 to {CAPACITY_MAX} can be kept")
        self._use(capacity, capacity)

    def trace_stop(self) -> None:
        self._use(WINDOW, 0)

    def trace_read(self) -> TraceRead:
        if not self._announced_capacity:
            return TraceRead([], 0)
        kept: Sequence[_Group | None] = [
            self._groups[number % len(self._groups)] for number in range(self._lost, self._head)
        ]
        return TraceRead(
            with_resolved([TracedGroup(*astuple(each)) for each in kept if each is not None], self._announced),
            self._lost,
        )

    @property
    def _lost(self) -> int:
        return max(self._head - len(self._groups), 0)

    def _use(self, groups: int, announced: int) -> None:
        self._groups = [None] * groups
        self._head = 0
        self._announced = []
        self._announced_head = 0
        self._announced_capacity = announced
        self.forget()

    def _pass(self, stage: str, end_offset: Offset, reached: Callable[[_Group], None]) -> None:
        cursor = self._passed[stage]
        while cursor < self._head:
            group = self._groups[cursor % len(self._groups)]
            assert group is not None
            if group.end_offset > end_offset:
                break
            reached(group)
            cursor += 1
        self._passed[stage] = cursor
