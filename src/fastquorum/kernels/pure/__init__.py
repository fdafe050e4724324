"""The pure kernel set: plain Python, the baseline that native is measured against and the oracle it is tested against.

Every name here is explained in `fastquorum.kernels`.
"""

from importlib.metadata import version
from typing import Any, Final

from crc32c import crc32c as _crc32c

from fastquorum.kernels import Buffer
from fastquorum.kernels.messages import MessageCodec, StructLayout
from fastquorum.kernels.pure.accumulator import Accumulator
from fastquorum.kernels.pure.batch_decode import check_records, decode_batch, decode_records, decode_values
from fastquorum.kernels.pure.batch_encode import encode_columns, encode_records, encode_rows, encode_values
from fastquorum.kernels.pure.batch_header import as_view
from fastquorum.kernels.pure.beats import SteadyBeats
from fastquorum.kernels.pure.epochs import EpochCache, high_watermark
from fastquorum.kernels.pure.flusher import Flusher
from fastquorum.kernels.pure.frames import FrameSplitter
from fastquorum.kernels.pure.offset_index import OffsetIndex
from fastquorum.kernels.pure.outcomes import Outcome, Turn, settle_all
from fastquorum.kernels.pure.partitions import PartitionRows
from fastquorum.kernels.pure.producers import Producers
from fastquorum.kernels.pure.rows import RowReader
from fastquorum.kernels.pure.scan import batch_headers, scan, slice_batches, stamp_batch
from fastquorum.kernels.pure.segment import SegmentFile

NAME: Final = "pure"


def cpu_path() -> str:
    """Which CRC-32C runs: the package's name and version."""
    return f"crc32c {version('crc32c')}"


def crc32c(data: Buffer, crc: int = 0) -> int:
    return _crc32c(as_view(data), crc)


def message_codec(layout: StructLayout, twin: MessageCodec) -> MessageCodec:
    """The twin itself."""
    return twin


def untrack_young(kinds: tuple[type, ...]) -> None:
    """Python cannot have that."""


def untracked(items: list[Any]) -> tuple[Any, ...]:
    """A tuple."""
    return tuple(items)
