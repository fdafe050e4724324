"""Record batches, written: from values, from full records, and from columns.

Sizes are known before a byte is written, so each batch is encoded straight into the bytes object that is returned; only
compression needs a section of its own. The GIL is released around a whole batch, never held for one record at a time.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._values cimport Source, Values, to_slice
from fastquorum.kernels.native.core cimport BatchHeader, HeaderSlices, RecordSlices, Slice

import numpy as np

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels.compression import compress
from fastquorum.kernels.packing import checked_rows

# Up to here handing over the GIL would cost more than the work.
cdef enum:
    _GIL_HELD_RECORDS_MAX = 64
    _GIL_HELD_BYTES_MAX = 16384


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


cdef int64_t _in_range(str name, object value, int64_t low, int64_t high) except? -1:
    cdef int overflow
    cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < low or number > high:
        raise UsageError(f"{name} {value} lies outside {low}..{high}")
    return number


cdef int _describe(BatchHeader *header, base_offset, leader_epoch, timestamp_ms, attributes, producer_id, producer_epoch,
                   base_sequence) except -1:
    """Fill in what the caller gave. UsageError unless every argument fits its field and the attributes are known."""
    cdef int overflow
    cdef int64_t bits
    header.base_offset = _in_range("base_offset", base_offset, 0, INT64_MAX)
    header.leader_epoch = <int32_t>_in_range("leader_epoch", leader_epoch, INT32_MIN, INT32_MAX)
    header.base_timestamp_ms = _in_range("timestamp_ms", timestamp_ms, INT64_MIN, INT64_MAX)
    header.max_timestamp_ms = header.base_timestamp_ms
    header.producer_id = _in_range("producer_id", producer_id, INT64_MIN, INT64_MAX)
    header.producer_epoch = <int16_t>_in_range("producer_epoch", producer_epoch, INT16_MIN, INT16_MAX)
    header.base_sequence = <int32_t>_in_range("base_sequence", base_sequence, INT32_MIN, INT32_MAX)
    bits = PyLong_AsLongLongAndOverflow(attributes, &overflow)
    if overflow or bits & ~<int64_t>core.known_attributes or (bits & core.compression_mask) > core.compression_max:
        raise UsageError(f"attributes {attributes:#x} name no known compression or flag")
    header.attributes = <int16_t>bits
    return 0


cdef int _refuse_too_large(int64_t section_bytes) except -1:
    if core.header_bytes + section_bytes > core.batch_size_max:
        raise RecordTooLarge(size_bytes=core.header_bytes + section_bytes, limit_bytes=core.batch_size_max)
    return 0


cdef int _count(BatchHeader *header, int64_t records_count, int64_t last_offset_delta) except -1:
    if header.base_offset >= INT64_MAX - last_offset_delta:
        raise UsageError(f"base_offset {header.base_offset} leaves no room for {last_offset_delta + 1} offsets")
    header.records_count = <int32_t>records_count
    header.last_offset_delta = <int32_t>last_offset_delta
    return 0


@cython.final
cdef class _ColumnsSource(Source):
    cdef const uint8_t *data
    cdef const int64_t *bounds
    cdef int64_t count

    cdef int64_t size(self) noexcept nogil:
        return core.columns_size(self.bounds, self.count)

    cdef void write(self, uint8_t *out) noexcept nogil:
        core.write_columns(out, self.data, self.bounds, self.count)


@cython.final
cdef class _RecordsSource(Source):
    cdef RecordSlices *records
    cdef HeaderSlices *headers
    cdef int64_t count
    cdef list holders

    def __cinit__(self, int64_t count, int64_t headers_count):
        self.count = count
        self.holders = []
        self.records = <RecordSlices *>PyMem_Malloc(<size_t>(count + 1) * sizeof(RecordSlices))
        self.headers = <HeaderSlices *>PyMem_Malloc(<size_t>(headers_count + 1) * sizeof(HeaderSlices))
        if self.records == NULL or self.headers == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.records)
        PyMem_Free(self.headers)

    cdef int64_t size(self) noexcept nogil:
        return core.records_size(self.records, self.count, self.headers)

    cdef void write(self, uint8_t *out) noexcept nogil:
        core.write_records(out, self.records, self.count, self.headers)


cdef bytes _build(Source source, BatchHeader *header, int64_t count, int64_t last_offset_delta):
    """The batch: records written (and compressed), header in front."""
    cdef int64_t section_bytes
    cdef uint8_t *out
    cdef bytes batch
    if count <= _GIL_HELD_RECORDS_MAX:
        section_bytes = source.size()
    else:
        with nogil:
            section_bytes = source.size()
    _refuse_too_large(section_bytes)
    if header.attributes & core.compression_mask:
        return _build_compressed(source, header, section_bytes, count, last_offset_delta)
    _count(header, count, last_offset_delta)
    header.size_bytes = core.header_bytes + section_bytes
    batch = PyBytes_FromStringAndSize(NULL, header.size_bytes)
    out = <uint8_t *>PyBytes_AS_STRING(batch)
    if count <= _GIL_HELD_RECORDS_MAX and section_bytes <= _GIL_HELD_BYTES_MAX:
        source.write(out + core.header_bytes)
        core.seal(out, header[0])
    else:
        with nogil:
            source.write(out + core.header_bytes)
            core.seal(out, header[0])
    return batch


cdef bytes _build_compressed(Source source, BatchHeader *header, int64_t section_bytes, int64_t count,
                             int64_t last_offset_delta):
    cdef uint8_t *out
    cdef bytes batch
    cdef bytes section = PyBytes_FromStringAndSize(NULL, section_bytes)
    out = <uint8_t *>PyBytes_AS_STRING(section)
    with nogil:
        source.write(out)
    section = compress(header.attributes & core.compression_mask, section)
    _count(header, count, last_offset_delta)
    _refuse_too_large(len(section))
    header.size_bytes = core.header_bytes + len(section)
    batch = PyBytes_FromStringAndSize(NULL, header.size_bytes)
    out = <uint8_t *>PyBytes_AS_STRING(batch)
    memcpy(out + core.header_bytes, PyBytes_AS_STRING(section), <size_t>len(section))
    with nogil:
        core.seal(out, header[0])
    return batch


def encode_values(values, *, base_offset, leader_epoch, timestamp_ms, attributes=0, producer_id=-1, producer_epoch=-1,
                  base_sequence=-1):
    cdef BatchHeader header
    cdef Values source
    _describe(&header, base_offset, leader_epoch, timestamp_ms, attributes, producer_id, producer_epoch, base_sequence)
    source = Values(values)
    if source.count == 0:
        raise UsageError("a batch needs at least one record")
    return _build(source, &header, source.count, source.count - 1)


def encode_columns(data, offsets, *, base_offset, leader_epoch, timestamp_ms, attributes=0, producer_id=-1,
                   producer_epoch=-1, base_sequence=-1):
    cdef BatchHeader header
    cdef Py_buffer view
    cdef const int64_t[::1] bounds
    cdef int64_t size
    cdef _ColumnsSource source = _ColumnsSource()
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        array = np.asarray(offsets)
        if array.ndim != 1 or array.dtype not in (np.int32, np.int64) or len(array) < 2:
            raise UsageError("offsets must be int32 or int64 of shape (n + 1,) with n >= 1")
        # A copy of our own: another thread may write to the caller's after it has been checked.
        bounds = np.array(array, dtype=np.int64, order="C")
        source.data = <const uint8_t *>view.buf
        source.bounds = &bounds[0]
        source.count = bounds.shape[0] - 1
        size = view.len
        if not core.columns_ascend(source.bounds, source.count, size):
            raise UsageError(f"offsets must ascend within 0..{size}")
        _describe(
            &header, base_offset, leader_epoch, timestamp_ms, attributes, producer_id, producer_epoch, base_sequence
        )
        return _build(source, &header, source.count, source.count - 1)
    finally:
        PyBuffer_Release(&view)


def encode_records(records, *, base_offset, leader_epoch, timestamp_ms, attributes=0, producer_id=-1, producer_epoch=-1,
                   base_sequence=-1):
    cdef BatchHeader header
    cdef _RecordsSource source
    cdef int64_t last_offset_delta
    cdef tuple items = tuple(records)
    _describe(&header, base_offset, leader_epoch, timestamp_ms, attributes, producer_id, producer_epoch, base_sequence)
    if not items:
        raise UsageError("a batch needs at least one record")
    source = _RecordsSource(len(items), sum([len(record.headers) for record in items]))
    last_offset_delta = _place(source, items, header.base_offset)
    header.max_timestamp_ms = _stamp(source, items, header.base_timestamp_ms)
    _point(source, items)
    return _build(source, &header, source.count, last_offset_delta)


cdef int64_t _place(_RecordsSource source, tuple items, int64_t base_offset) except -1:
    """The offset deltas; returns the last."""
    cdef int64_t next_delta = 0
    cdef int64_t delta, number, i
    cdef int overflow
    for i in range(source.count):
        offset = items[i].offset
        number = PyLong_AsLongLongAndOverflow(offset, &overflow)
        if overflow == 0 and number == -1:
            delta = next_delta
        elif overflow < 0 or (overflow == 0 and (number < base_offset or number - base_offset < next_delta)):
            following = <object>base_offset + next_delta
            raise UsageError(f"record offset {offset} does not ascend", f"at least {following} must follow")
        else:
            delta = INT64_MAX if overflow else number - base_offset
        if delta > INT32_MAX:
            offset = <object>base_offset + delta if number == -1 and not overflow else offset
            raise UsageError(f"record offset {offset} is too far from base offset {base_offset} for one batch")
        source.records[i].offset_delta = delta
        next_delta = delta + 1
    return next_delta - 1


cdef int64_t _stamp(_RecordsSource source, tuple items, int64_t base_timestamp_ms) except? -1:
    """The timestamp deltas; returns the largest timestamp."""
    cdef int64_t largest = INT64_MIN
    cdef int64_t timestamp, i
    cdef int overflow
    for i in range(source.count):
        given = items[i].timestamp_ms
        timestamp = PyLong_AsLongLongAndOverflow(given, &overflow)
        if overflow:
            raise UsageError(f"timestamp_ms {given} is not an int64")
        if timestamp == -1:
            timestamp = base_timestamp_ms
        # Wraps as Java's long arithmetic does: base + delta gives the timestamp back, whatever the two are.
        source.records[i].timestamp_delta = <int64_t>(<uint64_t>timestamp - <uint64_t>base_timestamp_ms)
        largest = max(largest, timestamp)
    return largest


cdef int _nullable(object item, Slice *slice, list holders) except -1:
    if item is None:
        slice.data = NULL
        slice.size = -1
        return 0
    return to_slice(item, slice, holders)


cdef int _point(_RecordsSource source, tuple items) except -1:
    """Keys, values and headers, as slices of what the records hold."""
    cdef int64_t row = 0
    cdef int64_t i
    cdef RecordSlices *record
    source.holders.append(items)
    for i in range(source.count):
        record = &source.records[i]
        item = items[i]
        key, value, headers = item.key, item.value, tuple(item.headers)
        source.holders.append((key, value))
        _nullable(key, &record.key, source.holders)
        _nullable(value, &record.value, source.holders)
        record.headers_begin = row
        for name, header_value in headers:
            try:
                encoded = name.encode()
            except UnicodeEncodeError as error:
                raise UsageError(f"header key {name!r} is not valid Unicode text") from error
            source.holders.append((encoded, header_value))
            to_slice(encoded, &source.headers[row].key, source.holders)
            _nullable(header_value, &source.headers[row].value, source.holders)
            row += 1
        record.headers_end = row
    return 0


@cython.final
cdef class _Column:
    """Byte strings that were checked, as slices."""

    cdef Py_buffer view
    cdef const int64_t[::1] ends
    cdef const uint8_t[::1] valid
    cdef int64_t count

    def __cinit__(self, column):
        PyObject_GetBuffer(column.data, &self.view, PyBUF_SIMPLE)
        self.ends = column.ends
        self.valid = column.valid
        self.count = self.valid.shape[0]

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    cdef Slice at(self, int64_t i) noexcept nogil:
        cdef Slice slice
        slice.data = NULL
        slice.size = -1
        if self.valid[i]:
            slice.data = <const uint8_t *>self.view.buf + self.ends[i]
            slice.size = self.ends[i + 1] - self.ends[i]
        return slice


def encode_rows(values, keys=None, headers=None, *, base_offset, leader_epoch, timestamp_ms, attributes=0, producer_id=-1,
                producer_epoch=-1, base_sequence=-1):
    cdef BatchHeader header
    cdef _RecordsSource source
    cdef _Column column
    rows = checked_rows(values, keys, headers)
    _describe(&header, base_offset, leader_epoch, timestamp_ms, attributes, producer_id, producer_epoch, base_sequence)
    column = _Column(rows.values)
    source = _RecordsSource(column.count, 0 if rows.header_keys is None else len(rows.header_keys.valid))
    _point_rows(source, column, None if rows.keys is None else _Column(rows.keys))
    if rows.header_keys is not None:
        _point_headers(source, rows.header_ends, _Column(rows.header_keys), _Column(rows.header_values))
    return _build(source, &header, source.count, source.count - 1)


cdef int _point_rows(_RecordsSource source, _Column values, _Column keys) except -1:
    cdef int64_t i
    cdef bint has_keys = keys is not None
    source.holders.append((values, keys))
    with nogil:
        for i in range(source.count):
            source.records[i].timestamp_delta = 0
            source.records[i].offset_delta = i
            source.records[i].headers_begin = 0
            source.records[i].headers_end = 0
            source.records[i].value = values.at(i)
            source.records[i].key.data = NULL
            source.records[i].key.size = -1
            if has_keys:
                source.records[i].key = keys.at(i)
    return 0


cdef int _point_headers(_RecordsSource source, ends, _Column keys, _Column values) except -1:
    cdef int64_t i
    cdef const int64_t[::1] bounds = ends
    source.holders.append((keys, values))
    with nogil:
        for i in range(source.count):
            source.records[i].headers_begin = bounds[i]
            source.records[i].headers_end = bounds[i + 1]
        for i in range(keys.count):
            source.headers[i].key = keys.at(i)
            source.headers[i].value = values.at(i)
    return 0
