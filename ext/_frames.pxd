"""The frame splitter."""

from libc.stdint cimport int64_t, uint8_t


cdef class FrameSplitter:
    cdef int64_t _frame_bytes_max
    cdef uint8_t _length[4]  # the length of the next frame, as far as it has come
    cdef int64_t _length_bytes  # how far
    cdef bytes _frame  # the frame being filled, None until its length is known
    cdef int64_t _filled  # how far
    cdef int64_t _bad_length
    cdef bint _is_broken

    cdef int _cut(self, const uint8_t *data, int64_t size, list frames) except -1
    cdef int _start(self, int64_t length) except -1
