"""The hot path's interface: what a kernel set offers, and how one is chosen.

Two implementations have the same names, the same errors and the same error fields: `native` (Cython over C++, from
`ext/`) and `pure` (idiomatic Python, the baseline and the oracle). A set is chosen explicitly; `native` fails loudly
when it is missing, and nobody ever falls back in silence.

Rooms above take a kernel set as an argument and import only this module, never an implementation. Kernels know bytes,
checksums, files and offsets; no elections, no policy. Source of the formats: KIP-98 (record batch v2), KIP-101 (leader
epochs).
"""

import enum
import importlib
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

Buffer = bytes | bytearray | memoryview
"""Anything with contiguous bytes; native kernels take every object with the buffer protocol (numpy, Arrow too)."""
Int64Array = npt.NDArray[np.int64]

BATCH_HEADER_BYTES: Final = 61
"""Size of a v2 batch's header, from baseOffset up to the first record."""
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


class Accumulator(Protocol):
    """An open batch that values are encoded straight into, and sealed (header, CRC-32C) once. Not thread-safe.

    Records have a null key, no headers and timestamp delta 0, as KRaft writes them.
    """

    def __init__(self, batch_bytes_max: int = BATCH_BYTES_MAX) -> None: ...

    @property
    def is_open(self) -> bool: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def next_offset(self) -> int:
        """Offset the next value would get; the base offset while the batch is empty."""

    @property
    def record_count(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """Bytes `seal` would return now."""

    def open(self, base_offset: int, leader_epoch: int, timestamp_ms: int) -> None:
        """Begin an empty batch. UsageError if one is open."""

    def append(self, value: Buffer) -> int:
        """Encode one value; its offset. -1, and nothing changed, if it does not fit any more.

        RecordTooLarge, and nothing changed, if it would not even fit into an empty batch. UsageError if none is open.
        """

    def append_many(self, values: Sequence[Buffer]) -> int:
        """Encode all or none; the first one's offset. Otherwise as `append`. UsageError if `values` is empty."""

    def seal(self) -> bytes:
        """Finish the batch and return its bytes; the accumulator is closed then. UsageError if empty or not open."""

    def discard(self) -> None:
        """Forget the open batch, if any."""


class EpochCache(Protocol):
    """Which epoch begins at which offset (KIP-101): strictly ascending in both. O(log epochs) lookups. Not
    thread-safe."""

    def __init__(self, entries: Sequence[tuple[int, int]] = ()) -> None:
        """`entries` are (epoch, start offset); CorruptionError(reason="epoch") unless both strictly ascend from >=
        0."""

    def __len__(self) -> int: ...

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Epoch begins at start_offset. True if it is new.

        An epoch equal to the latest is ignored; entries at or beyond start_offset are replaced (an epoch without a
        record). CorruptionError(reason="epoch") if `epoch` is below the latest, CorruptionError(reason="offset") if
        start_offset is below the latest entry's start or negative.
        """

    @property
    def latest_epoch(self) -> int:
        """-1 if empty."""

    @property
    def latest_start(self) -> int:
        """-1 if empty."""

    def epoch_for(self, offset: int) -> int:
        """Epoch of the record at offset; -1 if it precedes the first entry or the cache is empty."""

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch', end offset) as Kafka's `RaftLog.endOffsetForEpoch` has it, snapshots left aside.

        The latest epoch -> (epoch, log end); above it -> (latest, log end); else the floor entry and the next one's
        start; without a floor -> (epoch, start of the first entry). Empty cache -> (-1, -1).
        """

    def truncate_to(self, end_offset: int) -> None:
        """Drop entries that start at or beyond end_offset."""

    def truncate_before(self, start_offset: int) -> None:
        """Log start moved: drop entries wholly below it; the one that covers it now starts there."""

    def entries(self) -> list[tuple[int, int]]: ...


class FrameSplitter(Protocol):
    """Cuts a byte stream into frames: int32 big-endian length, then that many bytes. Not thread-safe."""

    def __init__(self, frame_bytes_max: int) -> None: ...

    def feed(self, data: Buffer) -> list[bytes]:
        """The frames completed by `data`, without their lengths.

        FrameError as soon as a length is negative or above the maximum, decided from its 4 bytes, nothing allocated;
        the splitter is unusable then (every later feed raises the same error).
        """

    @property
    def pending_bytes(self) -> int:
        """Bytes held back of an incomplete frame, its length included."""


class SegmentFile(Protocol):
    """One segment's file. Positions are bytes. Writes and syncs hold no GIL (native).

    Every failure raises StorageFailed (FsyncFailed for `sync`) with operation, path and errno; short writes and EINTR
    are looped over. After a failed sync every later write and sync raises too (fail-stop).
    """

    def __init__(self, path: str, mode: Literal["create", "open", "read"] = "open") -> None:
        """`create` fails if it exists; `open` reads and writes; `read` only reads."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int:
        """The file's size now (fstat)."""

    @property
    def failed(self) -> bool: ...

    def write(self, position: int, data: Buffer) -> None: ...
    def read(self, position: int, size_bytes: int) -> bytes:
        """Up to size_bytes; shorter only at the end of the file."""

    def zero_fill(self, start: int, end: int) -> None:
        """Write zeros over [start, end) (real zeros, not a hole)."""

    def truncate(self, size_bytes: int) -> None: ...
    def sync(self) -> None:
        """One fdatasync."""

    def map(self) -> memoryview:
        """The whole file, read-only, memory-mapped; empty view for an empty file."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class Flusher(Protocol):
    """One thread that syncs files in the order submitted and reports through an eventfd; native: without the GIL.

    The caller reads `completions` when the eventfd is readable. A failed sync latches `failed` BEFORE it is reported,
    and nothing is synced after it.
    """

    def __init__(self) -> None: ...
    def fileno(self) -> int:
        """The eventfd; readable when completions wait."""

    @property
    def failed(self) -> bool: ...
    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        """Sync these files, in order, then report `token`. UsageError when closed."""

    def completions(self) -> list[tuple[int, int]]:
        """(token, errno) of all syncs done since the last call, in order; errno 0 = synced. Drains the eventfd."""

    def close(self) -> None:
        """Finish what was submitted, end the thread. Idempotent."""


@runtime_checkable
class Kernels(Protocol):
    """A kernel set: what `fastquorum.kernels.native` and `fastquorum.kernels.pure` both offer at module level."""

    NAME: str
    """"native" or "pure"."""
    Accumulator: type[Accumulator]
    EpochCache: type[EpochCache]
    FrameSplitter: type[FrameSplitter]
    SegmentFile: type[SegmentFile]
    Flusher: type[Flusher]

    def cpu_path(self) -> str:
        """Which CRC-32C path runs: "avx512-vpclmul", "sse42-pclmul", "sse42", "armv8-crc", "portable", or "crc32c
        <version>" (pure)."""
        ...

    def crc32c(self, data: Buffer, crc: int = 0) -> int:
        """CRC-32C (Castagnoli) of data, continuing from `crc`; 0..2^32-1."""
        ...

    def encode_values(
        self,
        values: Sequence[Buffer],
        *,
        base_offset: int,
        leader_epoch: int,
        timestamp_ms: int,
        attributes: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> bytes:
        """One batch of values: null keys, no headers, every timestamp delta 0 (KRaft's shape).

        UsageError if empty. `attributes` carries compression and flags. RecordTooLarge above 2^31-1 bytes.
        """
        ...

    def encode_records(
        self,
        records: Sequence[Record],
        *,
        base_offset: int,
        leader_epoch: int,
        timestamp_ms: int,
        attributes: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> bytes:
        """One batch of full records: keys, headers, timestamps (maxTimestamp = the largest). Otherwise as
        encode_values.

        Explicit record offsets must ascend from base_offset (UsageError).
        """
        ...

    def encode_columns(
        self,
        data: Buffer,
        offsets: "Buffer | Int64Array | npt.NDArray[np.int32]",
        *,
        base_offset: int,
        leader_epoch: int,
        timestamp_ms: int,
        attributes: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> bytes:
        """One batch from Arrow's layout: value i is data[offsets[i]:offsets[i+1]]; offsets int32 or int64, shape (n +
        1,).

        UsageError unless 0 <= offsets[0] <= ... <= offsets[n] <= len(data) and n >= 1.
        """
        ...

    def decode_batch(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> Columns:
        """Decode the batch at position. CorruptionError (reason: BatchFault), DecompressedTooLarge."""
        ...

    def decode_records(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> list[Record]:
        """The same as Python objects, for callers with few records."""
        ...

    def decode_values(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> list[bytes | None]:
        """Only the values, as bytes."""
        ...

    def batch_headers(
        self, buffer: Buffer, position: int = 0, *, verify_crc: bool = True, producers_only: bool = False
    ) -> list[BatchInfo]:
        """Headers of all whole batches from position to the end or the first byte that is no batch (never raises).

        `producers_only`: of those only that carry a producer id.
        """
        ...

    def scan(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        expected_offset: int = -1,
        epoch_min: int = 0,
        epoch_max: int = 2**31 - 1,
        verify_crc: bool = True,
        batch_bytes_max: int = 2**31 - 1,
    ) -> Scan:
        """Check batches one after another: framing, magic, CRC, counts, offsets that continue (from expected_offset
        unless -1) and epochs that do not fall (from epoch_min) nor exceed epoch_max. Records inside are not parsed.
        Never raises for bad bytes."""
        ...

    def slice_batches(self, buffer: Buffer, offset: int, bytes_max: int) -> tuple[int, int]:
        """(start, end) positions of the whole batches from the one that contains `offset` on, at most bytes_max long
        but at least one batch. (n, n) with n = len(buffer) if no batch contains or follows it. Headers only, no CRC."""
        ...

    def stamp_batch(self, batch: bytearray, base_offset: int, leader_epoch: int) -> None:
        """Give a client's batch its place in the log, in place: neither field is under the CRC. CorruptionError if it
        is no whole batch."""
        ...

    def high_watermark(self, end_offsets: Sequence[int], epoch_start_offset: int) -> int:
        """Largest offset that a majority of voters has durably reached.

        Args:
            end_offsets: flushed log end offset of each voter, leader included; shape (voter_count,),
                1 <= voter_count <= VOTERS_MAX, any order, exclusive, -1 if unknown.
            epoch_start_offset: log end offset when this leader's epoch began.
        Returns:
            The new high watermark (exclusive), or -1 while no record of this epoch is on a majority.
        Raises:
            VoterCountError: end_offsets is empty or longer than VOTERS_MAX.
        Source: KIP-595 "Fetch"; Raft section 5.4.2.
        """
        ...


def load(name: Literal["native", "pure"] = "native") -> Kernels:
    """The kernel set of that name.

    Raises ImportError, saying how to build it, if the native set is not there: there is no fallback (README,
    decision 6).
    """
    if name not in ("native", "pure"):
        raise ValueError(f"kernels are 'native' or 'pure', not {name!r}")
    try:
        module = importlib.import_module(f"fastquorum.kernels.{name}")
    except ImportError as error:
        raise ImportError(
            f"the {name} kernels cannot be loaded ({error}): install fastquorum with a C++ compiler present "
            "(Debian: apt-get install g++ python3-dev), or ask for kernels='pure'",
            name=error.name,
            path=error.path,
        ) from error
    return cast(Kernels, module)
