"""What `committed()` yields, and the step by which both twins read it: whole batches below the high watermark."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.errors import OffsetOutOfRange
from fastquorum.kernels import Header
from fastquorum.node.io.running import RunningNode
from fastquorum.types import Epoch, Offset

READ_BYTES_MAX: Final = 1024 * 1024


class CommittedRecord(NamedTuple):
    """One record that a majority has on disk."""

    offset: Offset
    epoch: Epoch
    timestamp_ms: int
    """The leader's wall clock at the append, in milliseconds since 1970; it may jump, offsets do not."""
    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()


class Batch(NamedTuple):
    """Records that were appended together. Those below the offset asked for are left out."""

    records: tuple[CommittedRecord, ...]
    base_offset: Offset
    last_offset: Offset
    epoch: Epoch

    @property
    def next_offset(self) -> Offset:
        """Where to resume after this item."""
        return self.last_offset + 1


class Progress(NamedTuple):
    """All committed records up to `next_offset` have been delivered (only with `progress=True`).

    Says how far a watcher is even while nothing, or only control records, are committed: the offset to remember.
    """

    next_offset: Offset
    high_watermark: Offset
    records: tuple[CommittedRecord, ...] = ()
    """Always empty, so that every item can be treated alike."""


class SnapshotLoaded(NamedTuple):
    """The replica's log begins anew behind a snapshot, which stands for everything below `next_offset`.

    The records that led there are not here any more; the snapshot is the newest `.checkpoint` in the log directory.
    """

    next_offset: Offset
    epoch: Epoch
    records: tuple[CommittedRecord, ...] = ()


Committed = Batch | Progress | SnapshotLoaded
"""An item of `committed()`; every one has `records` and `next_offset`."""


def check_from_offset(node: RunningNode, offset: Offset) -> None:
    """An offset that was never written, or no longer is, is refused; one that is yet to come is waited for."""
    start = node.log.start_offset
    if offset < start:
        raise OffsetOutOfRange(offset=offset, start_offset=start, end_offset=node.log.end_offset)


def read_committed(
    node: RunningNode, offset: Offset, end_offset: Offset
) -> tuple[Sequence[Batch | SnapshotLoaded], Offset]:
    """Some batches from `offset` on, below end_offset (offset < end_offset), and where the next read begins. Control
    batches are skipped. Where the log has begun anew meanwhile, that is told instead.
    """
    try:
        data = node.read(offset, READ_BYTES_MAX, end_offset)
    except OffsetOutOfRange:
        start, snapshot = node.log.start_offset, node.log.snapshots.latest
        if offset >= start or snapshot is None:
            raise
        return [SnapshotLoaded(start, snapshot.epoch)], start
    kernels = node.kernels
    batches: list[Batch] = []
    for info in kernels.batch_headers(data, verify_crc=False):
        if not info.is_control:
            records = tuple(
                CommittedRecord(each.offset, info.leader_epoch, each.timestamp_ms, each.value, each.key, each.headers)
                for each in kernels.decode_records(data, info.position, verify_crc=False)
                if each.offset >= offset
            )
            batches.append(Batch(records, info.base_offset, info.last_offset, info.leader_epoch))
        offset = max(offset, info.last_offset + 1)
    return batches, offset
