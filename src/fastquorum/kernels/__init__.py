"""The hot path's interface: what a kernel set offers, and how one is chosen.

Two implementations have the same names, the same errors and the same error fields: `native` (Cython over C++, from
`ext/`) and `pure` (idiomatic Python, the baseline and the oracle). A set is chosen explicitly; `native` fails loudly
when it is missing, and nobody ever falls back in silence.

Rooms above take a kernel set as an argument and import only this module, never an implementation. Kernels know bytes,
checksums, files and offsets; no elections, no policy. Source of the formats: KIP-98 (record batch v2), KIP-101 (leader
epochs).
"""

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from fastquorum.kernels.accumulator import Accumulator
from fastquorum.kernels.batches import (
    BATCH_BYTES_MAX,
    BATCH_HEADER_BYTES,
    DECOMPRESSED_BYTES_MAX,
    INDEX_INTERVAL_BYTES,
    RECORD_OVERHEAD_MAX,
    Attribute,
    BatchFault,
    BatchInfo,
    Buffer,
    Columns,
    Compression,
    Fault,
    Header,
    Int64Array,
    Record,
    Scan,
)
from fastquorum.kernels.beats import SteadyBeats
from fastquorum.kernels.epochs import EpochCache
from fastquorum.kernels.files import Flusher, OffsetIndex, SegmentFile
from fastquorum.kernels.frames import FrameSplitter
from fastquorum.kernels.messages import MessageCodec, StructLayout
from fastquorum.kernels.outcomes import Outcome, Turn
from fastquorum.kernels.partitions import PartitionRows
from fastquorum.kernels.producers import Producers
from fastquorum.kernels.rows import Packed, PackedHeaders, RowReader


@runtime_checkable
class Kernels(Protocol):
    """A kernel set: what `fastquorum.kernels.native` and `fastquorum.kernels.pure` both offer at module level."""

    NAME: str
    """"native" or "pure"."""
    Accumulator: type[Accumulator]
    EpochCache: type[EpochCache]
    FrameSplitter: type[FrameSplitter]
    OffsetIndex: type[OffsetIndex]
    Outcome: type[Outcome]
    PartitionRows: type[PartitionRows]
    Producers: type[Producers]
    RowReader: type[RowReader]
    SegmentFile: type[SegmentFile]
    SteadyBeats: type[SteadyBeats]
    Turn: type[Turn]
    Flusher: type[Flusher]

    def cpu_path(self) -> str:
        """Which CRC-32C path runs: "avx512-vpclmul", "sse42-pclmul", "sse42", "armv8-crc", "portable", or "crc32c
        <version>" (pure)."""

    def crc32c(self, data: Buffer, crc: int = 0) -> int:
        """CRC-32C (Castagnoli) of data, continuing from `crc`; 0..2^32-1."""

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

    def encode_rows(
        self,
        values: Packed,
        keys: Packed | None = None,
        headers: PackedHeaders | None = None,
        *,
        base_offset: int,
        leader_epoch: int,
        timestamp_ms: int,
        attributes: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> bytes:
        """One batch of full records from Arrow's layout, as `RowReader` gives it: no Python object for a record. Every
        timestamp delta is 0. Otherwise as encode_values.

        UsageError: the columns do not fit together, or lie outside their data; a header has no key.
        """

    def check_records(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> BatchInfo:
        """The header of the batch at position, whose records `decode_batch` would take. Nothing is kept of them."""

    def decode_batch(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> Columns:
        """Decode the batch at position. CorruptionError (reason: BatchFault), DecompressedTooLarge."""

    def decode_records(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> list[Record]:
        """The same as Python objects, for callers with few records."""

    def decode_values(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> list[bytes | None]:
        """Only the values, as bytes."""

    def batch_headers(
        self, buffer: Buffer, position: int = 0, *, verify_crc: bool = True, producers_only: bool = False
    ) -> list[BatchInfo]:
        """Headers of all whole batches from position to the end or the first byte that is no batch (never raises).

        `producers_only`: of those only that carry a producer id.
        """

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

    def slice_batches(self, buffer: Buffer, offset: int, bytes_max: int) -> tuple[int, int]:
        """(start, end) positions of the whole batches from the one that contains `offset` on, at most bytes_max long
        but at least one batch. (n, n) with n = len(buffer) if no batch contains or follows it. Headers only, no CRC."""

    def stamp_batch(self, batch: bytearray, base_offset: int, leader_epoch: int) -> None:
        """Give a client's batch its place in the log, in place: neither field is under the CRC. CorruptionError if it
        is no whole batch."""

    def message_codec(self, layout: StructLayout, twin: MessageCodec) -> MessageCodec:
        """The codec of the message that `layout` describes. `twin` is its codec in Python, generated from the same
        declaration: pure is the twin itself; native asks it why a message does not fit, and to write what native does
        not (objects with `__index__`, sequences other than list and tuple, unknown tags)."""

    def untracked(self, items: list[Any]) -> tuple[Any, ...]:
        """A tuple of items that cannot refer back to it, as immutable values cannot: the garbage collector does not
        look through it, where that can be had (pure: a tuple)."""

    def untrack_young(self, kinds: tuple[type, ...]) -> None:
        """Have the garbage collector never look through what was made since it last looked and is of one of these
        classes, whose objects cannot refer back to themselves; where that can be had (pure: nothing)."""

    def settle_all(self, outcomes: Iterable[Any], result: int, at_once: bool = True) -> bool:
        """Tell those of these outcomes that are not known yet one result. In a callback of their event loop, outside
        every task: tasks that wait may go on in it, unless something that this callback put into the loop's queue
        would be overtaken (`at_once` False). Returns `at_once` for what this callback tells next."""

    def high_watermark(self, end_offsets: Sequence[int], epoch_start_offset: int) -> int:
        """Largest offset that a majority of voters has durably reached.

        Args:
            end_offsets: flushed log end offset of each voter, leader included; shape (voter_count,),
                voter_count >= 1, any order, exclusive, -1 if unknown.
            epoch_start_offset: log end offset when this leader's epoch began.
        Returns:
            The new high watermark (exclusive), or -1 while no record of this epoch is on a majority.
        Raises:
            VoterCountError: end_offsets is empty.
        Source: KIP-595 "Fetch"; Raft section 5.4.2.
        """


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
