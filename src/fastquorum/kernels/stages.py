"""What a batch's way through a node takes, stage by stage: histograms that are always kept, and a ring of time stamps
on request. The interface of ext/core/node/trace.h and of its twin, kernels/pure/stages.py.

A *group* is what is written at once: on a leader a batch, on a follower the records of one answer to its Fetch. A stage
is reached by all groups up to some offset, in the order of the log. Times are nanoseconds of CLOCK_BOOTTIME, which all
processes of a machine share; an append's own is to the microsecond.
"""

import importlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, NamedTuple, Protocol, cast

from fastquorum.types import Epoch, Micros, Offset

Nanos = int

STAGES: Final = (
    "append_written",
    "written_sent",
    "written_flushed",
    "sync",
    "sent_acked",
    "written_committed",
    "committed_told",
    "append_told",
)
"""What the histograms measure, from one moment to the next:

append_written      from a group's first append (a follower: from its arrival) until it is written, not synced
written_sent        leader: until it was first handed to a follower's socket; appends ship before they are synced
written_flushed     until this node's own disk has it: waiting for the sync before, and the sync
sync                one sync of the log, from the call to its return; counted a sync, not a group
sent_acked          leader: until so many voters have it on their disks that with this one they are a majority
written_committed   leader: until the high watermark has passed it
committed_told      leader: from there until whoever waits has heard of it; counted an append
append_told         leader: the whole of it, for whoever appended; counted an append
"""

UNIT_BITS: Final = 7
HALF_BITS: Final = 5
HALF: Final = 1 << HALF_BITS
VALUE_MAX: Final = (1 << 36) - 1
"""Nanoseconds: 69 s. What is above counts at the edge."""
BUCKETS: Final = 800
CAPACITY_MAX: Final = 1 << 20
"""Groups that a trace may be asked to keep: 100 MB."""
WINDOW: Final = 256
"""Groups on their way that are measured at once; with more of them, the oldest are given up."""


def bucket_of(value_ns: Nanos) -> int:
    """The bucket that counts it: 128 ns wide up to 4 us, then 32 each time the value doubles."""
    units = min(max(value_ns, 0), VALUE_MAX) >> UNIT_BITS
    shift = max((units | 1).bit_length() - 1 - HALF_BITS, 0)
    return (shift << HALF_BITS) + (units >> shift)


def _upper_us(bucket: int) -> float:
    shift = max((bucket >> HALF_BITS) - 1, 0)
    return ((bucket - (shift << HALF_BITS) + 1) << (shift + UNIT_BITS)) / 1000


BOUNDS_US: Final = (*(_upper_us(bucket) for bucket in range(BUCKETS - 1)), inf)
"""Where each bucket ends, exclusive, in microseconds; shape (BUCKETS,), ascending."""


@dataclass(frozen=True, slots=True)
class StageHistogram:
    """How long a stage took, each time since the node was opened."""

    count: int
    sum_us: float
    counts: tuple[int, ...]
    """Per bucket; shape (BUCKETS,)."""
    bounds_us: tuple[float, ...] = BOUNDS_US
    """Where each bucket ends, exclusive."""

    def minus(self, earlier: "StageHistogram") -> "StageHistogram":
        """What came since `earlier` was taken of the same node."""
        counts = tuple(now - before for now, before in zip(self.counts, earlier.counts, strict=True))
        return StageHistogram(self.count - earlier.count, self.sum_us - earlier.sum_us, counts)

    def plus(self, other: "StageHistogram") -> "StageHistogram":
        """Both together."""
        counts = tuple(one + more for one, more in zip(self.counts, other.counts, strict=True))
        return StageHistogram(self.count + other.count, self.sum_us + other.sum_us, counts)

    @property
    def mean_us(self) -> float:
        return self.sum_us / self.count if self.count else 0.0

    def quantile_us(self, share: float) -> float:
        """What such a share of the times does not exceed: the middle of a bucket, within 2 %; 0 if there is none."""
        wanted, reached = share * self.count, 0
        for bucket, count in enumerate(self.counts):
            reached += count
            if count and reached >= wanted:
                lower = BOUNDS_US[bucket - 1] if bucket else 0.0
                upper = BOUNDS_US[bucket]
                return lower if upper == inf else (lower + upper) / 2
        return 0.0

    def count_below(self, bound_us: float) -> int:
        """How many were shorter, to the next end of a bucket: for histograms of fewer buckets."""
        return sum(self.counts[: bisect_right(BOUNDS_US, bound_us)])


EMPTY: Final = StageHistogram(0, 0.0, (0,) * BUCKETS)
"""Nothing was measured."""


class TracedGroup(NamedTuple):
    """When a group got how far; 0: it has not, or nobody knows."""

    base_offset: Offset
    end_offset: Offset
    """Exclusive."""
    epoch: Epoch
    is_leader: bool
    """Appended here; else fetched from the leader."""
    append_ns: Nanos
    """Its first append; on a follower, when the answer that brings it arrived."""
    written_ns: Nanos
    sent_ns: Nanos
    """First handed to a follower's socket; on a follower: the Fetch that acknowledges it was."""
    syncing_ns: Nanos
    """The sync that covers it began."""
    flushed_ns: Nanos
    """That sync ended."""
    acked_ns: Nanos
    """Leader: so many voters had acknowledged it that with this one they are a majority. The pure machine knows of it
    only where that was what the commit waited for."""
    committed_ns: Nanos
    """The high watermark passed it, as this node learned."""
    resolved_ns: Nanos = 0
    """Leader: the last of its appends had been told."""


class TraceRead(NamedTuple):
    """What a ring holds."""

    groups: list[TracedGroup]
    """In the order in which they were written."""
    lost: int
    """Earlier ones that were recorded and have been overwritten."""


AnnouncedRange = tuple[Offset, Offset, Nanos]
"""Appends that heard of their commit at one moment: their base offsets, from the first to the last."""


class Stages(Protocol):
    """Measures one node. What the methods say happens in the order of the log; `at_ns` never falls."""

    def opened(self, is_leader: bool) -> None: ...
    def forget(self) -> None:
        """Stop measuring what is on its way: the log may begin anew before it."""

    def begin(self, at_ns: Nanos) -> None:
        """An append, or records from a leader: whatever is written in consequence was begun then."""

    def gathers(self) -> None:
        """The append was accepted, and is written later."""

    def written(self, base_offset: Offset, end_offset: Offset, epoch: Epoch, at_ns: Nanos) -> None: ...
    def sent(self, end_offset: Offset, at_ns: Nanos) -> None: ...
    def synced(self, began_ns: Nanos, ended_ns: Nanos) -> None:
        """A sync has ended; `flushed` may follow."""

    def flushed(self, end_offset: Offset, at_ns: Nanos) -> None: ...
    def acked(self, end_offset: Offset, at_ns: Nanos) -> None: ...
    def committed(self, end_offset: Offset, at_ns: Nanos) -> None: ...
    def announced(self, base_offset: Offset, appended_us: Micros, committed_us: Micros, at_ns: Nanos) -> None: ...
    def histograms(self) -> dict[str, StageHistogram]:
        """By the names of STAGES."""

    def trace_start(self, capacity: int) -> None:
        """Record the latest `capacity` groups from now on. UsageError if that is not from 1 to CAPACITY_MAX."""

    def trace_stop(self) -> None: ...
    def trace_read(self) -> TraceRead:
        """Return what was recorded so far, which stays recorded; nothing unless a recording goes on."""


def load_stages(name: Literal["native", "pure"]) -> type[Stages]:
    """The measuring of that name, by itself; a native shell brings its own along."""
    module = importlib.import_module(f"fastquorum.kernels.{'native._stages' if name == 'native' else 'pure.stages'}")
    return cast(type[Stages], module.Stages)


def with_resolved(groups: Sequence[TracedGroup], announced: Iterable[AnnouncedRange]) -> list[TracedGroup]:
    """The groups, each with the moment when the last of its appends was told."""
    resolved = [0] * len(groups)
    ends: list[Offset] = []
    indices: list[int] = []
    for index, group in enumerate(groups):
        if group.is_leader and group.committed_ns:
            # A log that was cut back goes on at lower offsets: what was cut off was never committed.
            ends.append(group.end_offset)
            indices.append(index)
    for first, last, at_ns in announced:
        for place in range(bisect_right(ends, first), len(ends)):
            group = groups[indices[place]]
            if group.base_offset > last:
                break
            resolved[indices[place]] = max(resolved[indices[place]], at_ns)
    return [
        group._replace(resolved_ns=at_ns) if at_ns else group for group, at_ns in zip(groups, resolved, strict=True)
    ]
