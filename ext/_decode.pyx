"""Record batches, read: to columns, to Python records, to values.

The GIL is released for checking and parsing. The buffer is exported meanwhile, so it cannot be resized; if another thread
writes into it, the result is garbage within its bounds, never an access outside them.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t

cimport cython

from fastquorum.kernels.native._faults cimport batch_info, raise_fault
from fastquorum.kernels.native.core cimport (
    BatchHeader,
    ColumnSink,
    Expectation,
    Fault,
    Status,
    batch_size_max,
    check_batch,
    check_section,
    compression_mask,
    count_is_possible,
    decode_section,
    header_bytes,
)

import numpy as np

from fastquorum.errors import CorruptionError, DecompressedTooLarge, UsageError
from fastquorum.kernels import DECOMPRESSED_BYTES_MAX, Columns, Header, Record
from fastquorum.kernels.compression import decompress

cdef object _new_tuple = tuple.__new__
cdef object _empty = np.empty
cdef object _int64 = np.dtype(np.int64)
cdef object _Columns = Columns
cdef object _Record = Record
cdef object _Header = Header

cdef tuple _NO_HEADERS = (np.empty(0, np.int64),) * 4

# Columns of one row per record, and of one row per header.
cdef enum:
    _RECORD_COLUMNS = 7
    _HEADER_COLUMNS = 4


@cython.final
cdef class _Section:
    """A batch whose header is good, its records section decompressed if need be, and the columns it is parsed into."""

    cdef Py_buffer _view
    cdef bint _has_view
    cdef BatchHeader header
    cdef int64_t position
    cdef object data  # what the columns' starts point into
    cdef const uint8_t *origin
    cdef const uint8_t *start
    cdef const uint8_t *end
    cdef ColumnSink columns
    cdef int64_t headers_total

    def __cinit__(self, buffer, position, bint verify_crc, decompressed_bytes_max):
        cdef Expectation anything
        cdef Status status
        cdef int64_t start
        PyObject_GetBuffer(buffer, &self._view, PyBUF_SIMPLE)
        self._has_view = True
        if not 0 <= position <= self._view.len:
            raise UsageError(f"position {position} lies outside a buffer of {self._view.len} bytes")
        self.position = start = position
        self.data = buffer
        self.origin = <const uint8_t *>self._view.buf
        with nogil:
            status = check_batch(
                self.origin, self._view.len, start, verify_crc, batch_size_max, anything, &self.header
            )
        if status.fault != Fault.none:
            raise_fault(status)
        self.start = self.origin + start + header_bytes
        self.end = self.origin + start + self.header.size_bytes
        if self.header.attributes & compression_mask:
            self._decompress(decompressed_bytes_max)
        if not count_is_possible(self.header, self.end - self.start):
            self.refuse_record()

    def __dealloc__(self):
        if self._has_view:
            PyBuffer_Release(&self._view)

    cdef int _decompress(self, decompressed_bytes_max) except -1:
        cdef bytes section = PyBytes_FromStringAndSize(<const char *>self.start, self.end - self.start)
        try:
            self.data = decompress(self.header.attributes & compression_mask, section, decompressed_bytes_max)
        except DecompressedTooLarge as error:
            raise DecompressedTooLarge(
                position=self.position, offset=self.header.base_offset, limit_bytes=decompressed_bytes_max
            ) from error
        except CorruptionError as error:
            raise CorruptionError(error.reason, self.position, self.header.base_offset) from error
        self._switch_to(self.data)
        return 0

    cdef int _switch_to(self, data) except -1:
        PyBuffer_Release(&self._view)
        self._has_view = False
        PyObject_GetBuffer(data, &self._view, PyBUF_SIMPLE)
        self._has_view = True
        self.origin = self.start = <const uint8_t *>self._view.buf
        self.end = self.start + self._view.len
        return 0

    cdef int refuse_record(self) except -1:
        cdef Status status
        status.fault = Fault.record
        status.position = self.position
        status.offset = self.header.base_offset
        return raise_fault(status)

    cdef int parse(self, int64_t *rows) except -1:
        """Into 7 columns of records_count rows, the last with one more; headers are only counted."""
        cdef int64_t count = self.header.records_count
        cdef bint good
        self.columns.offsets = rows
        self.columns.timestamps_ms = rows + count
        self.columns.key_starts = rows + 2 * count
        self.columns.key_lengths = rows + 3 * count
        self.columns.value_starts = rows + 4 * count
        self.columns.value_lengths = rows + 5 * count
        self.columns.header_starts = rows + 6 * count
        with nogil:
            good = decode_section(self.header, self.origin, self.start, self.end, self.columns, &self.headers_total)
        if not good:
            self.refuse_record()
        return 0

    cdef int parse_headers(self, int64_t *rows) except -1:
        """Again, now with the headers, into 4 columns of headers_total rows."""
        cdef int64_t total = self.headers_total
        cdef bint good
        self.columns.header_key_starts = rows
        self.columns.header_key_lengths = rows + total
        self.columns.header_value_starts = rows + 2 * total
        self.columns.header_value_lengths = rows + 3 * total
        self.columns.headers_max = total
        with nogil:
            good = decode_section(self.header, self.origin, self.start, self.end, self.columns, &self.headers_total)
        if not good or self.headers_total != total:
            self.refuse_record()
        return 0


cdef int64_t *_rows_of(array) except? NULL:
    """Where a new array's numbers are; good for as long as the array lives."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_WRITABLE)
    PyBuffer_Release(&view)
    return <int64_t *>view.buf


def decode_batch(buffer, position=0, *, verify_crc=True, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX):
    cdef _Section section = _Section(buffer, position, verify_crc, decompressed_bytes_max)
    cdef int64_t n = section.header.records_count
    cdef int64_t h
    records = _empty(_RECORD_COLUMNS * n + 1, _int64)
    section.parse(_rows_of(records))
    h = section.headers_total
    if h:
        headers = _empty(_HEADER_COLUMNS * h, _int64)
        section.parse_headers(_rows_of(headers))
        header_columns = headers[:h], headers[h:2 * h], headers[2 * h:3 * h], headers[3 * h:]
    else:
        header_columns = _NO_HEADERS
    return _new_tuple(_Columns, (
        batch_info(section.header, section.position, True if verify_crc else None),
        section.data,
        records[:n],
        records[n:2 * n],
        records[2 * n:3 * n],
        records[3 * n:4 * n],
        records[4 * n:5 * n],
        records[5 * n:6 * n],
        records[6 * n:],
        *header_columns,
    ))


cdef object _slice(const uint8_t *origin, int64_t start, int64_t length):
    if length < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *>(origin + start), length)


cdef tuple _headers(_Section section, int64_t begin, int64_t end):
    cdef const uint8_t *origin = section.origin
    if begin == end:
        return ()
    found = []
    for row in range(begin, end):
        # Kafka replaces bytes that are no UTF-8 as well: one client's bad header must not stop every reader of the log.
        name = _slice(origin, section.columns.header_key_starts[row], section.columns.header_key_lengths[row])
        value = _slice(origin, section.columns.header_value_starts[row], section.columns.header_value_lengths[row])
        found.append(_new_tuple(_Header, (name.decode("utf-8", "replace"), value)))
    return tuple(found)


def decode_records(buffer, position=0, *, verify_crc=True, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX):
    cdef _Section section = _Section(buffer, position, verify_crc, decompressed_bytes_max)
    cdef ColumnSink *columns = &section.columns
    cdef int64_t i
    rows = _empty(_RECORD_COLUMNS * section.header.records_count + 1, _int64)
    section.parse(_rows_of(rows))
    if section.headers_total:
        header_rows = _empty(_HEADER_COLUMNS * section.headers_total, _int64)
        section.parse_headers(_rows_of(header_rows))
    found = []
    for i in range(section.header.records_count):
        found.append(_new_tuple(_Record, (
            _slice(section.origin, columns.value_starts[i], columns.value_lengths[i]),
            _slice(section.origin, columns.key_starts[i], columns.key_lengths[i]),
            _headers(section, columns.header_starts[i], columns.header_starts[i + 1]),
            columns.timestamps_ms[i],
            columns.offsets[i],
        )))
    return found


def decode_values(buffer, position=0, *, verify_crc=True, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX):
    cdef _Section section = _Section(buffer, position, verify_crc, decompressed_bytes_max)
    cdef int64_t count = section.header.records_count
    cdef int64_t i
    cdef int64_t *rows = <int64_t *>PyMem_Malloc(<size_t>(_RECORD_COLUMNS * count + 1) * sizeof(int64_t))
    if rows == NULL:
        raise MemoryError
    try:
        section.parse(rows)
        return [
            _slice(section.origin, section.columns.value_starts[i], section.columns.value_lengths[i])
            for i in range(count)
        ]
    finally:
        PyMem_Free(rows)


def check_records(buffer, position=0, *, verify_crc=True, decompressed_bytes_max=DECOMPRESSED_BYTES_MAX):
    cdef _Section section = _Section(buffer, position, verify_crc, decompressed_bytes_max)
    cdef bint good
    with nogil:
        good = check_section(section.header, section.start, section.end)
    if not good:
        section.refuse_record()
    return batch_info(section.header, section.position, True if verify_crc else None)
