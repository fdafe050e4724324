"""Records of many batches as columns."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from fastquorum.errors import CorruptionError, DecompressedTooLarge, UsageError, WireError
from fastquorum.kernels.batches import DECOMPRESSED_BYTES_MAX, BatchInfo, Buffer, Columns, Int64Array
from fastquorum.kernels.json_text import message_text
from fastquorum.kernels.pure.batch_decode import decode_batch
from fastquorum.kernels.pure.batch_header import as_view, checked_header
from fastquorum.kernels.rows import (
    EVERY_ROW,
    NO_TYPE,
    ROWS_BYTES_MAX,
    ROWS_MAX,
    Packed,
    RowFault,
    RowFilter,
    Rows,
    TextLayout,
    Want,
    control_row_type,
)

_FRAME_VERSION: Final = 1
_KEY_MAX: Final = 127
_VERSION_MAX: Final = 0x7FFF
_CONTROL_KIND_MAX: Final = 100
_CONTROL_KEY_BYTES: Final = 4


class _Record(NamedTuple):
    """One record of a batch; its headers' keys are bytes, whether they are text or not."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes | None, bytes | None]]


class _Row(NamedTuple):
    record: _Record
    epoch: int
    type: int
    version: int
    fault: RowFault
    text: str | None


class _Kind(NamedTuple):
    """What a record is, and its message if that can be read."""

    type: int
    version: int
    fault: RowFault
    message: bytes = b""


class RowReader:
    """Collects rows, batch by batch."""

    def __init__(
        self,
        layouts: Sequence[TextLayout],
        want: int = Want.TEXTS,
        row_filter: RowFilter = EVERY_ROW,
        *,
        is_metadata: bool = True,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        for number in [each.type for each in layouts] + sorted(row_filter.types or ()):
            if not NO_TYPE <= number < -NO_TYPE:
                raise UsageError(f"{number} is not a type of rows")
        self._layouts = {(each.type, each.version): each for each in layouts}
        self._known = frozenset(each.type for each in layouts)
        self._want = Want(want)
        self._filter = row_filter
        self._is_metadata = is_metadata
        self._decompressed_bytes_max = decompressed_bytes_max
        self._next_offset = -1
        self._rows: list[_Row] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def next_offset(self) -> int:
        return self._next_offset

    @next_offset.setter
    def next_offset(self, offset: int) -> None:
        self._next_offset = offset

    def read(
        self,
        buffer: Buffer,
        position: int = 0,
        *,
        verify_crc: bool = True,
        rows_max: int = ROWS_MAX,
        bytes_max: int = ROWS_BYTES_MAX,
    ) -> int:
        view = as_view(buffer)
        if not 0 <= position <= len(view):
            raise UsageError(f"position {position} lies outside a buffer of {len(view)} bytes")
        at = position
        while at < len(view) and len(self._rows) < rows_max and self._bytes < bytes_max:
            try:
                at = self._read_batch(view, at, verify_crc)
            except (CorruptionError, DecompressedTooLarge):
                if at == position:
                    raise
                break
        return at

    def take(self) -> Rows:
        rows, self._rows, self._bytes = self._rows, [], 0
        records = [row.record for row in rows]
        want = self._want
        has_headers = Want.HEADERS in want
        headers = [header for record in records for header in record.headers] if has_headers else []
        counts = [len(record.headers) for record in records]
        return Rows(
            np.array([record.offset for record in records], np.int64),
            np.array([record.timestamp_ms for record in records], np.int64),
            np.array([row.epoch for row in rows], np.int32),
            np.array([row.type for row in rows], np.int16),
            np.array([row.version for row in rows], np.int16),
            np.array([row.fault for row in rows], np.uint8),
            _packed(record.value for record in records) if Want.VALUES in want else None,
            _packed(record.key for record in records) if Want.KEYS in want else None,
            _packed(None if row.text is None else row.text.encode() for row in rows) if Want.TEXTS in want else None,
            np.cumsum([0, *counts], dtype=np.int32) if has_headers else None,
            _packed(key for key, _ in headers) if has_headers else None,
            _packed(value for _, value in headers) if has_headers else None,
        )

    def _read_batch(self, view: memoryview, at: int, verify_crc: bool) -> int:
        """The position behind it. CorruptionError, DecompressedTooLarge."""
        info = checked_header(view, at, verify_crc=verify_crc, expected_offset=self._next_offset)
        if not self._skips(info):
            limit = self._decompressed_bytes_max
            columns = decode_batch(view, at, verify_crc=False, decompressed_bytes_max=limit)
            for record in _records(columns):
                self._add(info, record)
        self._next_offset = info.last_offset + 1
        return at + info.size_bytes

    def _skips(self, info: BatchInfo) -> bool:
        wanted = self._filter
        return not (
            info.last_offset >= wanted.offset_min
            and info.base_offset < wanted.offset_max
            and wanted.epoch_min <= info.leader_epoch < wanted.epoch_max
        )

    def _add(self, info: BatchInfo, record: _Record) -> None:
        wanted = self._filter
        if not wanted.offset_min <= record.offset < wanted.offset_max:
            return
        if not wanted.timestamp_ms_min <= record.timestamp_ms < wanted.timestamp_ms_max:
            return
        kind = self._kind(record, info.is_control)
        is_known = kind.type != NO_TYPE or kind.fault is RowFault.NONE
        if wanted.types is not None and kind.type not in wanted.types and is_known:
            return
        text, fault = self._text(kind)
        self._rows.append(_Row(record, info.leader_epoch, kind.type, kind.version, fault, text))
        self._bytes += self._size(record, text)

    def _kind(self, record: _Record, is_control: bool) -> _Kind:
        if is_control:
            return self._control_kind(record.key, record.value)
        if self._is_metadata:
            return self._metadata_kind(record.value)
        return _Kind(NO_TYPE, -1, RowFault.NONE)

    def _control_kind(self, key: bytes | None, value: bytes | None) -> _Kind:
        if key is None or len(key) != _CONTROL_KEY_BYTES or value is None:
            return _Kind(NO_TYPE, -1, RowFault.MALFORMED)
        version, number = (int.from_bytes(each, "big", signed=True) for each in (key[:2], key[2:]))
        if version != 0 or not 0 <= number <= _CONTROL_KIND_MAX:
            return _Kind(NO_TYPE, -1, RowFault.UNKNOWN_TYPE)
        return self._with_layout(control_row_type(number), 0, value)

    def _metadata_kind(self, value: bytes | None) -> _Kind:
        malformed = _Kind(NO_TYPE, -1, RowFault.MALFORMED)
        numbers: list[int] = []
        at = 0
        for _ in range(3):
            number, at = _uvarint(value or b"", at)
            if number < 0 or (not numbers and number != _FRAME_VERSION):
                return malformed
            numbers.append(number)
        _, key, version = numbers
        if key > _KEY_MAX or version > _VERSION_MAX:
            return _Kind(NO_TYPE, -1, RowFault.UNKNOWN_TYPE)
        return self._with_layout(key, version, (value or b"")[at:])

    def _with_layout(self, number: int, version: int, message: bytes) -> _Kind:
        if number not in self._known:
            return _Kind(number, version, RowFault.UNKNOWN_TYPE)
        is_known = (number, version) in self._layouts
        return _Kind(number, version, RowFault.NONE if is_known else RowFault.UNKNOWN_VERSION, message)

    def _text(self, kind: _Kind) -> tuple[str | None, RowFault]:
        layout = self._layouts.get((kind.type, kind.version))
        if layout is None or Want.TEXTS not in self._want:
            return None, kind.fault
        try:
            return message_text(layout.twin.decode(kind.message), layout.layout), kind.fault
        except WireError:
            return None, RowFault.MALFORMED

    def _size(self, record: _Record, text: str | None) -> int:
        parts: list[bytes | None] = [None if text is None else text.encode()]
        if Want.VALUES in self._want:
            parts.append(record.value)
        if Want.KEYS in self._want:
            parts.append(record.key)
        if Want.HEADERS in self._want:
            parts += [value for _, value in record.headers]
        return sum(len(part) for part in parts if part is not None)


def _records(columns: Columns) -> Iterator[_Record]:
    view = as_view(columns.data)

    def pieces(starts: Int64Array, lengths: Int64Array) -> list[bytes | None]:
        slices = zip(starts.tolist(), lengths.tolist(), strict=True)
        return [None if length < 0 else bytes(view[start : start + length]) for start, length in slices]

    names = pieces(columns.header_key_starts, columns.header_key_lengths)
    contents = pieces(columns.header_value_starts, columns.header_value_lengths)
    headers = list(zip(names, contents, strict=True))
    ends = columns.header_starts.tolist()
    keys = pieces(columns.key_starts, columns.key_lengths)
    values = pieces(columns.value_starts, columns.value_lengths)
    offsets, timestamps = columns.offsets.tolist(), columns.timestamps_ms.tolist()
    for row, (offset, timestamp_ms) in enumerate(zip(offsets, timestamps, strict=True)):
        yield _Record(offset, timestamp_ms, keys[row], values[row], headers[ends[row] : ends[row + 1]])


def _uvarint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 32 bits and where it ends; -1 if there is none."""
    read = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            return -1, at
        byte = data[at]
        at += 1
        read |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (read if read < 1 << 32 else -1), at
    return -1, at


def _packed(items: Iterable[bytes | None]) -> Packed:
    parts = list(items)
    ends = np.cumsum([0, *(len(part or b"") for part in parts)], dtype=np.int32)
    valid = np.array([part is not None for part in parts], np.uint8)
    return Packed(b"".join(part or b"" for part in parts), ends, valid)
