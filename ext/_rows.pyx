"""Records of many batches as columns (ext/core/rows.h).

The GIL is released while batches are checked, parsed and written as text. What was collected is copied once, into the
numpy arrays and bytes that `take` gives away.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native._faults cimport raise_fault
from fastquorum.kernels.native._layouts cimport CppStructLayout, fill_struct
from fastquorum.kernels.native.core cimport BatchHeader, Fault, Status, compression_mask, header_bytes

import numpy as np

from fastquorum.errors import CorruptionError, DecompressedTooLarge, UsageError
from fastquorum.kernels.batches import DECOMPRESSED_BYTES_MAX
from fastquorum.kernels.compression import decompress
from fastquorum.kernels.rows import EVERY_ROW, ROWS_BYTES_MAX, ROWS_MAX, Packed, Rows, Want


cdef extern from "rows.h" namespace "fastquorum" nogil:
    const int want_values
    const int want_keys
    const int want_headers
    const int want_texts

    cdef enum class RowFault(uint8_t):
        none

    cppclass CppTypes "std::bitset<256>":
        void set(size_t place) noexcept

    cppclass CppRowFilter "fastquorum::RowFilter":
        int64_t offset_min
        int64_t offset_max
        int64_t epoch_min
        int64_t epoch_max
        int64_t timestamp_min
        int64_t timestamp_max
        cbool any_type
        CppTypes types

    cppclass CppPacked "fastquorum::Packed":
        string data
        vector[int32_t] ends
        vector[uint8_t] valid

    cppclass RowColumns:
        RowColumns() except +
        vector[int64_t] offsets
        vector[int64_t] timestamps_ms
        vector[int32_t] epochs
        vector[int16_t] types
        vector[int16_t] versions
        vector[RowFault] faults
        CppPacked values
        CppPacked keys
        CppPacked texts
        CppPacked header_keys
        CppPacked header_values
        vector[int32_t] header_ends
        int64_t size() noexcept

    cppclass RowBuilder:
        RowBuilder() except +
        RowColumns columns
        CppRowFilter filter
        int want
        cbool is_metadata
        int64_t next_offset
        void add_layout(int16_t type, int16_t version, const CppStructLayout *layout) except +

    cppclass RowsRead:
        int64_t position
        Status status
        BatchHeader header
        cbool needs_data
        cbool no_memory

    RowsRead read_rows(
        RowBuilder *builder, const uint8_t *data, int64_t size, int64_t position, cbool verify_crc, int64_t rows_max,
        int64_t bytes_max
    ) noexcept
    RowsRead add_section(RowBuilder *builder, const RowsRead &at, const uint8_t *section, int64_t size) noexcept


cdef object _empty = np.empty


cdef object _array(object dtype, const void *data, size_t count, size_t item_bytes):
    """A copy of numbers that C++ keeps."""
    cdef Py_buffer view
    array = _empty(count, dtype)
    if count > 0:
        PyObject_GetBuffer(array, &view, PyBUF_WRITABLE)
        memcpy(view.buf, data, count * item_bytes)
        PyBuffer_Release(&view)
    return array


cdef object _packed(const CppPacked &packed):
    return Packed(
        PyBytes_FromStringAndSize(packed.data.data(), <Py_ssize_t>packed.data.size()),
        _array(np.int32, packed.ends.data(), packed.ends.size(), sizeof(int32_t)),
        _array(np.uint8, packed.valid.data(), packed.valid.size(), sizeof(uint8_t)),
    )


@cython.final
cdef class _Layout:
    """One type of record in one version, kept where it is for as long as this lives."""

    cdef CppStructLayout root
    cdef object _layout  # keeps alive what root points to

    def __cinit__(self, layout):
        self._layout = layout
        fill_struct(&self.root, layout)


@cython.final
cdef class RowReader:
    """Collects rows, batch by batch."""

    cdef RowBuilder _builder
    cdef list _layouts  # kept alive
    cdef object _decompressed_bytes_max

    def __init__(
        self,
        layouts,
        int want=Want.TEXTS,
        row_filter=EVERY_ROW,
        *,
        bint is_metadata=True,
        decompressed_bytes_max=DECOMPRESSED_BYTES_MAX,
    ):
        cdef _Layout made
        self._builder.want = want
        self._builder.is_metadata = is_metadata
        self._decompressed_bytes_max = decompressed_bytes_max
        self._layouts = []
        for each in layouts:
            made = _Layout(each.layout)
            self._layouts.append(made)
            self._builder.add_layout(_type(each.type), each.version, &made.root)
        self._filter_by(row_filter)

    cdef int _filter_by(self, row_filter) except -1:
        cdef CppRowFilter *to = &self._builder.filter
        to.offset_min = row_filter.offset_min
        to.offset_max = row_filter.offset_max
        to.epoch_min = row_filter.epoch_min
        to.epoch_max = row_filter.epoch_max
        to.timestamp_min = row_filter.timestamp_ms_min
        to.timestamp_max = row_filter.timestamp_ms_max
        to.any_type = row_filter.types is None
        if row_filter.types is not None:
            for each in row_filter.types:
                to.types.set(<size_t>(_type(each) + 128))
        return 0

    def __len__(self):
        return self._builder.columns.size()

    @property
    def next_offset(self):
        return self._builder.next_offset

    @next_offset.setter
    def next_offset(self, int64_t offset):
        self._builder.next_offset = offset

    def read(
        self, buffer, position=0, *, bint verify_crc=True, int64_t rows_max=ROWS_MAX, int64_t bytes_max=ROWS_BYTES_MAX
    ):
        cdef Py_buffer view
        cdef int64_t start = position
        cdef RowsRead run
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= start <= view.len:
                raise UsageError(f"position {position} lies outside a buffer of {view.len} bytes")
            run.position = start
            while True:
                with nogil:
                    run = read_rows(
                        &self._builder, <const uint8_t *>view.buf, view.len, run.position, verify_crc, rows_max,
                        bytes_max
                    )
                if run.no_memory:
                    raise MemoryError
                if not run.needs_data:
                    break
                if not self._add_compressed(run, <const uint8_t *>view.buf, start):
                    return run.position
                run.position += run.header.size_bytes
            if run.status.fault != Fault.none and run.position == start:
                raise_fault(run.status)
            return run.position
        finally:
            PyBuffer_Release(&view)

    cdef bint _add_compressed(self, const RowsRead &run, const uint8_t *data, int64_t start) except? 0:
        """False if the batch is not good and does not stand at `start`: whoever goes on from it is told."""
        cdef const uint8_t *batch = data + run.position
        cdef bytes section = PyBytes_FromStringAndSize(
            <const char *>(batch + header_bytes), run.header.size_bytes - header_bytes
        )
        cdef bytes plain
        cdef RowsRead added
        try:
            plain = decompress(run.header.attributes & compression_mask, section, self._decompressed_bytes_max)
        except DecompressedTooLarge as error:
            if run.position != start:
                return False
            raise DecompressedTooLarge(
                position=run.position,
                offset=run.header.base_offset,
                limit_bytes=self._decompressed_bytes_max,
            ) from error
        except CorruptionError as error:
            if run.position != start:
                return False
            raise CorruptionError(error.reason, run.position, run.header.base_offset) from error
        cdef const uint8_t *begin = plain
        cdef int64_t size = len(plain)
        with nogil:
            added = add_section(&self._builder, run, begin, size)
        if added.no_memory:
            raise MemoryError
        if added.status.fault == Fault.none:
            return True
        if run.position == start:
            raise_fault(added.status)
        return False

    def take(self):
        cdef RowColumns *columns = &self._builder.columns
        cdef int want = self._builder.want
        cdef bint has_headers = (want & want_headers) != 0
        cdef size_t count = columns.offsets.size()
        taken = Rows(
            _array(np.int64, columns.offsets.data(), count, sizeof(int64_t)),
            _array(np.int64, columns.timestamps_ms.data(), count, sizeof(int64_t)),
            _array(np.int32, columns.epochs.data(), count, sizeof(int32_t)),
            _array(np.int16, columns.types.data(), count, sizeof(int16_t)),
            _array(np.int16, columns.versions.data(), count, sizeof(int16_t)),
            _array(np.uint8, columns.faults.data(), count, sizeof(RowFault)),
            _packed(columns.values) if want & want_values else None,
            _packed(columns.keys) if want & want_keys else None,
            _packed(columns.texts) if want & want_texts else None,
            _array(np.int32, columns.header_ends.data(), columns.header_ends.size(), sizeof(int32_t))
            if has_headers
            else None,
            _packed(columns.header_keys) if has_headers else None,
            _packed(columns.header_values) if has_headers else None,
        )
        columns[0] = RowColumns()
        return taken


cdef int16_t _type(int64_t number) except? -1:
    if not -128 <= number < 128:
        raise UsageError(f"{number} is not a type of rows")
    return <int16_t>number
