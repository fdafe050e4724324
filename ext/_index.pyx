"""A segment's offset index: where, roughly, an offset lies in the file.

The GIL is held but for `encode`: the rest is short, and whoever else holds the index's lock never waits for the GIL.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native.core cimport make_index

from fastquorum.errors import UsageError


@cython.final
cdef class OffsetIndex:
    """Sparse, ascending in both columns. 8 bytes of memory an entry. One thread may add while others look up."""

    def __cinit__(self, int64_t base_offset):
        self.index = make_index(base_offset)
        if self.index.get() == NULL:
            raise MemoryError

    @property
    def base_offset(self):
        return self.index.get().base_offset()

    def __len__(self):
        return self.index.get().size()

    def add(self, buffer, int64_t at, int64_t base_offset, int64_t position):
        cdef Py_buffer view
        cdef bint added
        if not self.index.get().is_due(position):
            return
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= at <= view.len - core.header_bytes:
                raise UsageError(f"no batch header fits at {at} into a buffer of {view.len} bytes")
            added = self.index.get().add_batch(<const uint8_t *>view.buf + at, base_offset, position)
        finally:
            PyBuffer_Release(&view)
        if not added:
            raise MemoryError

    def lookup(self, int64_t offset):
        return self.index.get().lookup(offset)

    def truncate_to(self, int64_t position):
        self.index.get().truncate_to(position)

    def encode(self):
        cdef vector[uint8_t] data
        cdef bint encoded
        with nogil:
            encoded = self.index.get().encode(&data)
        if not encoded:
            raise MemoryError
        return core.bytes_of(data)
