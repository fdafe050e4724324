"""Walks over many batches that look at headers only: the recovery scan, listing, slicing, and placing a client's batch.

Source: KIP-98; the order of checks is BatchFault's.
"""

from collections.abc import Iterator

from fastquorum.errors import UsageError
from fastquorum.kernels import INDEX_INTERVAL_BYTES, BatchFault, BatchInfo, Buffer, Fault, Scan
from fastquorum.kernels.pure.batch_header import (
    BASE_OFFSET,
    BATCH_SIZE_MAX,
    INT32_MAX,
    INT64_MAX,
    LEADER_EPOCH,
    LEADER_EPOCH_POSITION,
    as_view,
    corruption,
    fault_at,
    framing_fault,
    header_fault,
    read_header,
    view_from,
)


def batch_headers(
    buffer: Buffer, position: int = 0, *, verify_crc: bool = True, producers_only: bool = False
) -> list[BatchInfo]:
    walked = _walk(view_from(buffer, position), position, verify_crc=verify_crc)
    return [info for info in walked if not producers_only or info.producer_id >= 0]


def scan(
    buffer: Buffer,
    position: int = 0,
    *,
    expected_offset: int = -1,
    epoch_min: int = 0,
    epoch_max: int = INT32_MAX,
    verify_crc: bool = True,
    batch_bytes_max: int = BATCH_SIZE_MAX,
) -> Scan:
    view = view_from(buffer, position)
    first: BatchInfo | None = None
    batch_count = control_count = record_count = 0
    max_timestamp_ms = -1
    epoch_starts: list[tuple[int, int]] = []
    index: list[tuple[int, int]] = []
    next_offset, epoch, bytes_since_entry = expected_offset, epoch_min, 0
    at = position
    fault: Fault | None = None
    while at < len(view):
        reason = framing_fault(view, at, batch_bytes_max)
        if reason is not None:
            fault = fault_at(view, at, reason)
            break
        info, computed = read_header(view, at, verify_crc=verify_crc)
        reason = header_fault(info, expected_offset=next_offset, epoch_min=epoch, epoch_max=epoch_max)
        if reason is not None:
            fault = fault_at(view, at, reason, computed)
            break
        if first is None or info.leader_epoch != epoch:
            epoch_starts.append((info.leader_epoch, info.base_offset))
        if bytes_since_entry >= INDEX_INTERVAL_BYTES:
            index.append((info.base_offset, at))
            bytes_since_entry = 0
        first = first or info
        batch_count += 1
        control_count += info.is_control
        record_count += info.records_count
        max_timestamp_ms = max(max_timestamp_ms, info.max_timestamp_ms)
        next_offset, epoch = info.last_offset + 1, info.leader_epoch
        bytes_since_entry += info.size_bytes
        at += info.size_bytes
    return Scan(
        valid_bytes=at - position,
        batch_count=batch_count,
        control_count=control_count,
        record_count=record_count,
        first_offset=first.base_offset if first else -1,
        next_offset=next_offset,
        first_epoch=first.leader_epoch if first else -1,
        last_epoch=epoch if first else -1,
        max_timestamp_ms=max_timestamp_ms,
        epoch_starts=tuple(epoch_starts),
        index=tuple(index),
        fault=fault,
    )


def slice_batches(buffer: Buffer, offset: int, bytes_max: int) -> tuple[int, int]:
    view = as_view(buffer)
    start = end = -1
    for info in _walk(view, 0, verify_crc=False):
        batch_end = info.position + info.size_bytes
        if start < 0:
            if info.last_offset >= offset:
                start, end = info.position, batch_end
        elif batch_end - start <= bytes_max:
            end = batch_end
        else:
            break
    return (start, end) if start >= 0 else (len(view), len(view))


def stamp_batch(batch: bytearray, base_offset: int, leader_epoch: int) -> None:
    if not 0 <= base_offset <= INT64_MAX or not 0 <= leader_epoch <= INT32_MAX:
        raise UsageError(f"offset {base_offset} and epoch {leader_epoch} are not a place in a log")
    view = as_view(batch)
    reason = framing_fault(view, 0)
    if reason is None and read_header(view, 0, verify_crc=False)[0].size_bytes != len(view):
        reason = BatchFault.LENGTH
    if reason is not None:
        raise corruption(fault_at(view, 0, reason))
    BASE_OFFSET.pack_into(batch, 0, base_offset)
    LEADER_EPOCH.pack_into(batch, LEADER_EPOCH_POSITION, leader_epoch)


def _walk(view: memoryview, position: int, *, verify_crc: bool) -> Iterator[BatchInfo]:
    """Batches that follow one another, for as long as their framing is sound."""
    while framing_fault(view, position) is None:
        info, _ = read_header(view, position, verify_crc=verify_crc)
        yield info
        position += info.size_bytes
