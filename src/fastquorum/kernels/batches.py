"""The values that kernels take and give: batches, their records, and what a scan saw of them.

Plain data, the same for every kernel set. Callers import them from `fastquorum.kernels`. Source: KIP-98 (record batch
v2).
"""

import enum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Buffer = bytes | bytearray | memoryview
"""Anything with contiguous bytes; native kernels take every object with the buffer protocol (numpy, Arrow too)."""
Int64Array = npt.NDArray[np.int64]

BATCH_HEADER_BYTES: Final = 61
"""Size of a v2 batch's header, from baseOffset up to the first record."""
RECORD_OVERHEAD_MAX: Final = 24
"""Bytes that a value takes in a batch beside itself, at most: four varints and an attribute byte."""
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
"""Kafka's `KafkaRaftClient.MAX_BATCH_SIZE_BYTES`."""
DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Default cap on what one compressed batch may grow to."""
INDEX_INTERVAL_BYTES: Final = 4096


class Compression(enum.IntEnum):
    """Bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Attribute(enum.IntFlag):
    """The other bits of a batch's attributes."""

    LOG_APPEND_TIME = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    DELETE_HORIZON = 0x40


class BatchFault(enum.StrEnum):
    """Why bytes are not (or not wholly) a good batch: the `reason` of a CorruptionError, in the order of checking."""

    TRUNCATED = "truncated"
    """The buffer ends inside the batch (fewer than 12 bytes, or fewer than batchLength says)."""
    ZEROED = "zeroed"
    """At least the 17 bytes up to and including magic are all zero: a zero-filled tail, not a batch."""
    LENGTH = "length"
    """batchLength is below 49 (an empty batch) or above the limit."""
    MAGIC = "magic"
    CRC = "crc"
    ATTRIBUTES = "attributes"
    """Unknown compression (5-7), or a reserved attribute bit (7-15) is set."""
    COUNT = "count"
    """recordsCount < 1 or lastOffsetDelta < 0, or they contradict each other (lastOffsetDelta + 1 < recordsCount)."""
    OFFSET = "offset"
    """The base offset is negative, or not the expected one."""
    EPOCH = "epoch"
    """The leader epoch is negative, falls, or exceeds the epoch allowed."""
    RECORD = "record"
    """A record inside does not parse: varint, length, offset delta, or bytes left over."""
    COMPRESSION = "compression"
    """The compressed section does not decompress."""


class Header(NamedTuple):
    """A record header; a null value is None."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record, for encoding or after decoding. `offset` and `timestamp_ms` are absolute."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int = -1
    """-1 when encoding: the batch's base timestamp."""
    offset: int = -1
    """-1 when encoding: consecutive offsets from the batch's base offset."""


class BatchInfo(NamedTuple):
    """A batch's header. `crc_valid` is None when the checksum was not looked at."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int
    crc_valid: bool | None

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & Attribute.CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & Attribute.TRANSACTIONAL)

    @property
    def compression(self) -> int:
        return self.attributes & 7


class Fault(NamedTuple):
    """Where and why a scan stopped; `stored_crc`/`computed_crc` are -1 unless reason is CRC."""

    reason: BatchFault
    position: int
    offset: int
    stored_crc: int
    computed_crc: int


class Scan(NamedTuple):
    """What `scan` saw: the good prefix, and why it ends.

    `fault` is None when the buffer ends exactly at a batch's end. Counts and offsets speak of the good prefix only.
    """

    valid_bytes: int
    """Length of the good prefix, counted from the `position` scanned from."""
    batch_count: int
    control_count: int
    record_count: int
    first_offset: int
    """Base offset of the first batch, -1 if none."""
    next_offset: int
    """Last offset + 1 of the last good batch; the expected offset (or -1) if none."""
    first_epoch: int
    last_epoch: int
    """-1 if no batch."""
    max_timestamp_ms: int
    epoch_starts: tuple[tuple[int, int], ...]
    """(epoch, base offset) of each batch whose epoch differs from the one before it (the first batch's included)."""
    index: tuple[tuple[int, int], ...]  # type: ignore[assignment]
    """(base offset, absolute position) of a batch at least every INDEX_INTERVAL_BYTES; the first batch is not
    listed."""
    fault: Fault | None


class Columns(NamedTuple):
    """A decoded batch as columns; shape (records_count,) each, int64.

    Keys and values are slices of `data` (the caller's buffer, or the decompressed section): start and length, length -1
    = null. Headers of record i are rows header_starts[i]:header_starts[i + 1] of the header columns.
    """

    info: BatchInfo
    data: Buffer
    offsets: Int64Array
    timestamps_ms: Int64Array
    key_starts: Int64Array
    key_lengths: Int64Array
    value_starts: Int64Array
    value_lengths: Int64Array
    header_starts: Int64Array
    """shape (records_count + 1,)"""
    header_key_starts: Int64Array
    header_key_lengths: Int64Array
    header_value_starts: Int64Array
    header_value_lengths: Int64Array
