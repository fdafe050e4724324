"""Records of many batches as columns in Arrow's layout, filtered, with their JSON text: what a table of records is made
of.

Plain data and an interface, the same for every kernel set. What types of records there are is told by layouts: a kernel
knows none. Source: KIP-98 (batches), KIP-631 (the frame of a metadata record), KIP-595 (control records).
"""

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fastquorum.kernels.batches import DECOMPRESSED_BYTES_MAX, Buffer, Int64Array
from fastquorum.kernels.messages import MessageCodec, StructLayout

NO_TYPE: Final = -128
"""The type of a record that is neither metadata nor control, or is so broken that its type cannot be told."""
ROWS_MAX: Final = 1 << 16
ROWS_BYTES_MAX: Final = 64 << 20


def control_row_type(kind: int) -> int:
    """What the type column says of a control record of that kind; of a metadata record it says its key."""
    return -1 - kind


class RowFault(enum.IntEnum):
    """Why a row has no text. The numbers are those of ext/core/rows.h."""

    NONE = 0
    UNKNOWN_TYPE = 1
    UNKNOWN_VERSION = 2
    MALFORMED = 3


class Want(enum.IntFlag):
    """The columns beside the numbers. The bits are those of ext/core/rows.h."""

    VALUES = 1
    KEYS = 2
    HEADERS = 4
    TEXTS = 8


class TextLayout(NamedTuple):
    """A type of record in one version."""

    type: int
    version: int
    layout: StructLayout
    twin: MessageCodec
    """Its codec in Python, which pure reads by."""


class RowFilter(NamedTuple):
    """Which rows there are; upper bounds are exclusive. A row whose type cannot be told is always there."""

    offset_min: int = 0
    offset_max: int = 2**63 - 1
    epoch_min: int = -(2**31)
    epoch_max: int = 2**63 - 1
    timestamp_ms_min: int = -(2**63)
    timestamp_ms_max: int = 2**63 - 1
    types: frozenset[int] | None = None
    """None: all."""


EVERY_ROW: Final = RowFilter()


class Packed(NamedTuple):
    """n byte strings, as Arrow has them: i is data[ends[i]:ends[i + 1]], and null where valid[i] is 0."""

    data: bytes
    ends: npt.NDArray[np.int32]
    """shape (n + 1,)"""
    valid: npt.NDArray[np.uint8]


class PackedHeaders(NamedTuple):
    """The headers of n records."""

    ends: npt.NDArray[np.int32]
    """shape (n + 1,): those of record i are rows ends[i]:ends[i + 1] of the next two."""
    keys: Packed
    """UTF-8, and none is null."""
    values: Packed


class Rows(NamedTuple):
    """n records, shape (n,) each; a column that nobody wanted is None."""

    offsets: Int64Array
    timestamps_ms: Int64Array
    epochs: npt.NDArray[np.int32]
    types: npt.NDArray[np.int16]
    versions: npt.NDArray[np.int16]
    """-1 where there is none."""
    faults: npt.NDArray[np.uint8]
    """RowFault; that a message is malformed is seen only where texts are wanted."""
    values: Packed | None
    keys: Packed | None
    texts: Packed | None
    """The JSON object of the message: fields in wire order, then those that are tagged and not at their default."""
    header_ends: npt.NDArray[np.int32] | None
    """shape (n + 1,): the headers of record i are rows header_ends[i]:header_ends[i + 1] of the next two."""
    header_keys: Packed | None
    header_values: Packed | None


class RowReader(Protocol):
    """Collects rows, batch by batch. Not thread-safe; after a MemoryError it is of no use."""

    def __init__(
        self,
        layouts: Sequence[TextLayout],
        want: int = Want.TEXTS,
        row_filter: RowFilter = EVERY_ROW,
        *,
        is_metadata: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        """`is_metadata` False: values that are not control records' mean what users mean by them, and have no type."""

    def __len__(self) -> int:
        """Rows since the last `take`."""

    @property
    def next_offset(self) -> int:
        """What the next batch must begin with; -1: anything. It moves on with every batch that is read."""

    @next_offset.setter
    def next_offset(self, offset: int) -> None: ...

    def read(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        rows_max: int = ROWS_MAX,
        bytes_max: int = ROWS_BYTES_MAX,
    ) -> int:
        """Rows of the batches from `position` on; the position behind the last one read.

        It ends with the buffer, or as soon as there are `rows_max` rows or `bytes_max` bytes of them, which the last
        batch may exceed. At bytes that are no good batch it ends as well; if they stand at `position`, CorruptionError,
        and no row was added (DecompressedTooLarge, likewise). UsageError if `position` lies outside the buffer.
        """

    def take(self) -> Rows:
        """What was collected; there is nothing then."""
