"""The open batch."""

from libc.stdint cimport int64_t, uint8_t

from fastquorum.kernels.native.core cimport BatchHeader, Slice


cdef class Accumulator:
    cdef uint8_t *_buffer  # _batch_bytes_max bytes, allocated once
    cdef int64_t _batch_bytes_max
    cdef int64_t _size_bytes  # written so far, header included; 0 while no batch is open
    cdef int64_t _record_count
    cdef bint _is_open
    cdef BatchHeader _header
    cdef int64_t _append(self, const Slice *slices, int64_t count) except -2
