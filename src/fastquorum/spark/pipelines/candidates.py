"""What could be read of each replica of a cluster, and which of them does best: in full, soundly, and from early on.

Whoever reads records begins with the snapshot that the log begins with (`tables.base`). Whoever reads an image begins
with the newest good snapshot at or below its offset, and reads the segments from there on, each from its first byte
(`storage.images`): so damage below the snapshot is in the way, too, if it lies in the same segment.
"""

import sys
from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.replicas import ReplicaLog, ReplicaVerdict

Span = tuple[int, int]
"""Offsets that are read: the first one, and where they end, exclusive."""
_NOWHERE = sys.maxsize


class OfImage(NamedTuple):
    """The image that a pipeline reads."""

    as_of: int | None = None
    """Offset below which the image is; None: of all that is committed."""
    diff_from: int | None = None
    """Offset of a second image, to compare with; None: there is none."""


class ReadCandidate(NamedTuple):
    """A replica that could be read, and what it offers."""

    replica: ReplicaLog
    end: int
    """End of what is committed in it, exclusive; 0: nothing is."""
    reach: int
    """End of what is committed and asked for, exclusive."""
    known_from: int
    """Offset from which on all is known; sys.maxsize for an image, and where nothing says what was before the log."""
    can_tell: bool
    """Whether it has all that is asked for."""
    holes: int
    """Records that are missing, damaged or not the majority's."""

    @classmethod
    def of_records(cls, replica: ReplicaLog, reach: int, committed: int) -> Self:
        """Assess a replica whose records are read. `reach`: up to where it holds what is committed, with any holes."""
        end = _committed_end(replica, reach, committed)
        known_from = _first_known(replica)
        holes = _holes(replica, (replica.start_offset if known_from is None else known_from, end))
        can_tell = known_from is not None and holes == 0
        return cls(replica, end, end, _NOWHERE if known_from is None else known_from, can_tell, holes)

    @classmethod
    def of_image(cls, replica: ReplicaLog, reach: int, committed: int, image: OfImage, segments: list[int]) -> Self:
        """Assess a replica of which an image is made. `segments`: where its segments begin that have a batch."""
        kept = [each.offset for each in replica.snapshots if each.offset <= committed]
        end = max(_committed_end(replica, reach, committed), *kept, 0)
        to = end if image.as_of is None else min(image.as_of, end)
        spans = _spans(replica, kept, image.diff_from, to)
        holes = sum(_holes(replica, _from_segment(replica, segments, each)) for each in spans or ())
        return cls(replica, end, to, _NOWHERE, spans is not None and holes == 0, holes)

    @property
    def rank(self) -> tuple[int, bool, bool, int, int, int, int, str]:
        """Rank of the candidate; the best has the least."""
        its = self.replica
        is_damaged = not its.is_trusted and its.offset is not None and its.offset < self.end
        node_id = -1 if its.node_id is None else its.node_id
        place = self.known_from, its.start_offset, self.holes, node_id, its.directory
        return (-self.reach, not self.can_tell, is_damaged, *place)


def segments_of(batches: pa.Table) -> Mapping[str, list[int]]:
    """Return where the segments of each directory begin, ascending: those that have a row of table `batches`."""
    found: dict[str, list[int]] = {}
    there = batches.filter(pc.is_valid(batches["segment"])).group_by(["directory", "segment"]).aggregate([])
    for directory, base in zip(there["directory"].to_pylist(), there["segment"].to_pylist(), strict=True):
        found.setdefault(directory, []).append(base)
    return {directory: sorted(bases) for directory, bases in found.items()}


def _committed_end(replica: ReplicaLog, reach: int, committed: int) -> int:
    end = min(reach, replica.end_offset, committed) if replica.held.size else 0
    is_split = replica.verdict is ReplicaVerdict.UNDECIDED and replica.offset is not None
    return min(end, replica.offset or 0) if is_split else end


def _first_known(replica: ReplicaLog) -> int | None:
    """From where on all is known; None: nothing says what was before the log."""
    start = replica.start_offset
    return 0 if start == 0 else min((each.offset for each in replica.snapshots if each.offset >= start), default=None)


def _spans(replica: ReplicaLog, kept: list[int], diff_from: int | None, to: int) -> list[Span] | None:
    """Return what is read for the images below `to` and at `diff_from`; None: one of them cannot be made."""
    first = to if diff_from is None else min(diff_from, to)
    starts = [_image_start(replica, kept, first)]
    ends = [first]
    if diff_from is not None:
        goes_on = replica.held.size > 0 and replica.start_offset <= first
        starts.append(first if goes_on else _image_start(replica, kept, to))
        ends.append(to)
    known = [each for each in starts if each is not None]
    return list(zip(known, ends, strict=True)) if len(known) == len(ends) else None


def _image_start(replica: ReplicaLog, kept: list[int], end: int) -> int | None:
    """Behind the newest snapshot that an image below `end` can begin with: what lies between an older one and the log
    is gone. None: there is none, and the log begins later than at 0."""
    start = replica.start_offset
    return max((each for each in kept if start <= each <= end), default=0 if start == 0 else None)


def _from_segment(replica: ReplicaLog, segments: list[int], span: Span) -> Span:
    """From the beginning of the segment in which the span begins."""
    start, end = span
    if start >= end:
        return span
    base = max((each for each in segments if each <= start), default=start)
    return max(base, min(replica.start_offset, start)), end


def _holes(replica: ReplicaLog, span: Span) -> int:
    """Return how many records of the span are missing or damaged; one if it has any that are not the majority's."""
    start, end = span
    if start >= end:
        return 0
    inside = replica.held[:2, (replica.held[1] >= start) & (replica.held[0] < end)]
    there = np.minimum(inside[1] + 1, end) - np.maximum(inside[0], start)
    is_wrong = not replica.is_trusted and replica.offset is not None and start <= replica.offset < end
    return max(end - start - int(there.sum()), int(is_wrong))
