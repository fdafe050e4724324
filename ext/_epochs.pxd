"""Leader epochs and the high watermark."""

from libc.stdint cimport int64_t

from fastquorum.kernels.native.core cimport EpochTable


cdef class EpochCache:
    cdef EpochTable table  # strictly ascending in both columns
    cdef int _append(self, int64_t epoch, int64_t start_offset) except -1
