"""The 61 bytes in front of every v2 batch: layout, the checks in the order of BatchFault, and the sealing of a batch.

Knows nothing of the records inside. Source: KIP-98.
"""

import struct
from collections.abc import Sequence
from typing import Final

from crc32c import crc32c

from fastquorum.errors import CorruptionError, RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, Attribute, BatchFault, BatchInfo, Buffer, Compression, Fault

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
assert HEADER.size == BATCH_HEADER_BYTES
FRAMING: Final = struct.Struct(">qi")
"""baseOffset and batchLength: what a batch must show before its size is known."""
BASE_OFFSET: Final = struct.Struct(">q")
LEADER_EPOCH: Final = struct.Struct(">i")
LEADER_EPOCH_POSITION: Final = 12
CRC_START: Final = 21
"""The checksum covers everything from the attributes on."""
LENGTH_MIN: Final = BATCH_HEADER_BYTES - FRAMING.size
MAGIC: Final = 2
MAGIC_POSITION: Final = 16
BATCH_SIZE_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT32_MAX: Final = 2**31 - 1

_COMPRESSION_MASK: Final = 0x07
_KNOWN_ATTRIBUTES: Final = _COMPRESSION_MASK | sum(Attribute)


def as_view(buffer: Buffer) -> memoryview:
    """Any contiguous buffer as a view of bytes."""
    view = memoryview(buffer)
    if view.nbytes == 0:
        return memoryview(b"")
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def view_from(buffer: Buffer, position: int) -> memoryview:
    """The view of a buffer that is to be read from position on. UsageError if position lies outside it."""
    view = as_view(buffer)
    if not 0 <= position <= len(view):
        raise UsageError(f"position {position} lies outside a buffer of {len(view)} bytes")
    return view


def framing_fault(view: memoryview, position: int, batch_bytes_max: int = BATCH_SIZE_MAX) -> BatchFault | None:
    """Is there a whole v2 batch at position? The checks that need no more than its framing, up to MAGIC."""
    remaining = len(view) - position
    if remaining < FRAMING.size:
        return BatchFault.TRUNCATED
    _, length = FRAMING.unpack_from(view, position)
    if length > remaining - FRAMING.size:
        return BatchFault.TRUNCATED
    if remaining > MAGIC_POSITION and not any(view[position : position + MAGIC_POSITION + 1]):
        return BatchFault.ZEROED
    if length < LENGTH_MIN or FRAMING.size + length > batch_bytes_max:
        return BatchFault.LENGTH
    if view[position + MAGIC_POSITION] != MAGIC:
        return BatchFault.MAGIC
    return None


def read_header(view: memoryview, position: int, *, verify_crc: bool) -> tuple[BatchInfo, int]:
    """Header of the batch that framing_fault found whole, and the checksum computed (-1 if not asked for)."""
    (
        base_offset,
        length,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    ) = HEADER.unpack_from(view, position)
    size_bytes = FRAMING.size + length
    computed = crc32c(view[position + CRC_START : position + size_bytes]) if verify_crc else -1
    info = BatchInfo(
        position=position,
        size_bytes=size_bytes,
        base_offset=base_offset,
        last_offset=base_offset + last_offset_delta,
        leader_epoch=leader_epoch,
        magic=magic,
        crc=crc,
        attributes=attributes,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=records_count,
        crc_valid=computed == crc if verify_crc else None,
    )
    return info, computed


def header_fault(
    info: BatchInfo, *, expected_offset: int = -1, epoch_min: int = 0, epoch_max: int = INT32_MAX
) -> BatchFault | None:
    """Return the first fault of a whole batch's header: the checks from CRC to EPOCH."""
    last_offset_delta = info.last_offset - info.base_offset
    if info.crc_valid is False:
        return BatchFault.CRC
    if info.attributes & ~_KNOWN_ATTRIBUTES or info.attributes & _COMPRESSION_MASK > max(Compression):
        return BatchFault.ATTRIBUTES
    if info.records_count < 1 or last_offset_delta < 0 or last_offset_delta + 1 < info.records_count:
        return BatchFault.COUNT
    if info.base_offset < 0 or info.last_offset >= INT64_MAX or expected_offset not in (-1, info.base_offset):
        return BatchFault.OFFSET
    if info.leader_epoch < max(0, epoch_min) or info.leader_epoch > epoch_max:
        return BatchFault.EPOCH
    return None


def fault_at(view: memoryview, position: int, reason: BatchFault, computed_crc: int = -1) -> Fault:
    """The fault of the bytes at position, with what little can be read of them."""
    offset = FRAMING.unpack_from(view, position)[0] if len(view) - position >= FRAMING.size else -1
    if reason is not BatchFault.CRC:
        return Fault(reason, position, offset, -1, -1)
    return Fault(reason, position, offset, HEADER.unpack_from(view, position)[4], computed_crc)


def corruption(fault: Fault) -> CorruptionError:
    """A fault as the error to raise."""
    return CorruptionError(fault.reason, fault.position, fault.offset, fault.stored_crc, fault.computed_crc)


def check_encoding(
    base_offset: int, leader_epoch: int, timestamp_ms: int, attributes: int, producer: tuple[int, int, int]
) -> None:
    """UsageError unless every argument fits its header field and the attributes are known."""
    producer_id, producer_epoch, base_sequence = producer
    fields = (
        ("base_offset", base_offset, 0, INT64_MAX),
        ("leader_epoch", leader_epoch, -INT32_MAX - 1, INT32_MAX),
        ("timestamp_ms", timestamp_ms, -INT64_MAX - 1, INT64_MAX),
        ("producer_id", producer_id, -INT64_MAX - 1, INT64_MAX),
        ("producer_epoch", producer_epoch, -(2**15), 2**15 - 1),
        ("base_sequence", base_sequence, -INT32_MAX - 1, INT32_MAX),
    )
    for name, value, low, high in fields:
        if not low <= value <= high:
            raise UsageError(f"{name} {value} lies outside {low}..{high}")
    if attributes & ~_KNOWN_ATTRIBUTES or attributes & _COMPRESSION_MASK > max(Compression):
        raise UsageError(f"attributes {attributes:#x} name no known compression or flag")


def seal(
    sections: Sequence[Buffer],
    *,
    base_offset: int,
    last_offset_delta: int,
    records_count: int,
    leader_epoch: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """Put the header and its checksum in front of an encoded records section, given in pieces."""
    if base_offset + last_offset_delta >= INT64_MAX:
        raise UsageError(f"base_offset {base_offset} leaves no room for {last_offset_delta + 1} offsets")
    size_bytes = BATCH_HEADER_BYTES + sum(map(len, sections))
    if size_bytes > BATCH_SIZE_MAX:
        raise RecordTooLarge(size_bytes=size_bytes, limit_bytes=BATCH_SIZE_MAX)
    header = bytearray(BATCH_HEADER_BYTES)
    HEADER.pack_into(
        header,
        0,
        base_offset,
        size_bytes - FRAMING.size,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        *producer,
        records_count,
    )
    crc = crc32c(memoryview(header)[CRC_START:])
    for section in sections:
        crc = crc32c(section, crc)
    header[MAGIC_POSITION + 1 : CRC_START] = crc.to_bytes(4, "big")
    return b"".join((header, *sections))


def checked_header(view: memoryview, position: int, *, verify_crc: bool, expected_offset: int = -1) -> BatchInfo:
    """The header of the good batch at position. CorruptionError."""
    reason = framing_fault(view, position)
    if reason is not None:
        raise corruption(fault_at(view, position, reason))
    info, computed = read_header(view, position, verify_crc=verify_crc)
    reason = header_fault(info, expected_offset=expected_offset)
    if reason is not None:
        raise corruption(fault_at(view, position, reason, computed))
    return info
