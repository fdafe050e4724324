"""Headers of batches as columns: what a table of batches is made of.

The kernels check the batches; numpy then reads all their headers at once, as each lies at a known place. Source:
KIP-98.
"""

import struct
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastquorum.errors import CorruptionError
from fastquorum.kernels import BATCH_HEADER_BYTES, Int64Array, Kernels, Scan
from fastquorum.spark.stored.reading import PieceWalk

HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records", ">i4"),
    ]
)
_LENGTH: Final = struct.Struct(">8xi")
_LENGTH_END: Final = 12


class Headers(NamedTuple):
    """n batches, shape (n,) each."""

    positions: Int64Array
    """Positions in the file."""
    fields: npt.NDArray[Any]
    """Header fields, of dtype HEADER."""

    def of(self, name: str) -> npt.NDArray[Any]:
        """Return a field in this machine's byte order."""
        found = self.fields[name]
        return found.astype(found.dtype.newbyteorder("="))

    @property
    def last_offsets(self) -> Int64Array:
        last_offsets: Int64Array = self.of("base_offset") + self.of("last_offset_delta")
        return last_offsets


def good_prefix(kernels: Kernels, view: memoryview, next_offset: int) -> Scan:
    """Scan the good batches at the start, at least one. CorruptionError if there is none."""
    scan = kernels.scan(view, expected_offset=next_offset)
    if not scan.batch_count:
        assert scan.fault is not None, "a scan without a batch and without a fault"
        raise CorruptionError(*scan.fault)
    return scan


class HeaderReader:
    """Collects headers, batch by batch, of a walk's window. Epochs that fall are no fault of a batch."""

    def __init__(self, kernels: Kernels, walk: PieceWalk) -> None:
        self.next_offset = -1
        self._kernels = kernels
        self._walk = walk
        self._found: list[Headers] = []

    def __len__(self) -> int:
        return sum(len(each.positions) for each in self._found)

    def read(self, buffer: bytes, position: int = 0) -> int:
        """Take in good batches from `position` on; return where they end, as RowReader does. CorruptionError."""
        if position == len(buffer):
            return position
        scan = good_prefix(self._kernels, memoryview(buffer)[position:], self.next_offset)
        starts = _starts(buffer, position, position + scan.valid_bytes)
        windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(buffer, np.uint8), BATCH_HEADER_BYTES)
        fields = np.ascontiguousarray(windows[starts]).view(HEADER)[:, 0]
        self._found.append(Headers(starts - self._walk.at + self._walk.position, fields))
        self.next_offset = scan.next_offset
        return position + scan.valid_bytes

    def take(self) -> Headers:
        """Return what was collected, and forget it."""
        found, self._found = self._found, []
        return Headers(
            np.concatenate([each.positions for each in found]), np.concatenate([each.fields for each in found])
        )


def _starts(buffer: bytes, start: int, end: int) -> Int64Array:
    """Return where each batch begins; the length of one says where the next one begins."""
    found: list[int] = []
    length_at = _LENGTH.unpack_from
    while start < end:
        found.append(start)
        start += _LENGTH_END + length_at(buffer, start)[0]
    return np.array(found, np.int64)
