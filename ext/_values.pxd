"""Python's buffers as slices that C++ can read without the GIL."""

from libc.stdint cimport int64_t, uint8_t

from fastquorum.kernels.native.core cimport Slice


# Point *slice at the bytes of `item`; what is not bytes itself is copied, and the copy kept alive in `holders`.
cdef int to_slice(object item, Slice *slice, list holders) except -1


cdef class Source:
    """What a batch is encoded from: knows its size, and writes itself."""

    cdef int64_t size(self) noexcept nogil
    cdef void write(self, uint8_t *out) noexcept nogil


cdef class Values(Source):
    """Every item of a sequence as a slice: records of KRaft's shape. Holds references, so the slices stay good without the GIL, whatever the caller does."""

    cdef Slice *slices  # `count` of them
    cdef int64_t count
    cdef tuple _items
    cdef list _holders
