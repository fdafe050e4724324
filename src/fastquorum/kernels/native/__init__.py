"""The native kernel set: Cython over C++, compiled from `ext/`. `fastquorum.kernels` explains every name."""

from typing import Final

from fastquorum.kernels.messages import MessageCodec, StructLayout
from fastquorum.kernels.native._accumulator import Accumulator
from fastquorum.kernels.native._beats import SteadyBeats
from fastquorum.kernels.native._crc32c import cpu_path, cpu_paths, crc32c, force_cpu_path
from fastquorum.kernels.native._decode import check_records, decode_batch, decode_records, decode_values
from fastquorum.kernels.native._encode import encode_columns, encode_records, encode_rows, encode_values
from fastquorum.kernels.native._epochs import EpochCache, high_watermark
from fastquorum.kernels.native._frames import FrameSplitter
from fastquorum.kernels.native._index import OffsetIndex
from fastquorum.kernels.native._messages import MessageCodec as _MessageCodec
from fastquorum.kernels.native._outcomes import Outcome, settle_all
from fastquorum.kernels.native._partitions import PartitionRows, untrack_young, untracked
from fastquorum.kernels.native._producers import Producers
from fastquorum.kernels.native._rows import RowReader
from fastquorum.kernels.native._scan import batch_headers, scan, slice_batches, stamp_batch
from fastquorum.kernels.native._segment import Flusher, SegmentFile
from fastquorum.kernels.native._turn import Turn

NAME: Final = "native"


def message_codec(layout: StructLayout, twin: MessageCodec) -> MessageCodec:
    return _MessageCodec(layout, twin)
