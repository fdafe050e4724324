"""Kafka's stream framing: an int32 length in front of every message.

Each byte is copied once, from the caller's buffer into the bytes object of its frame. The GIL is held: what a socket
gives at a time is copied faster than a lock is handed over.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

cimport cython

from fastquorum.kernels.native cimport core

from fastquorum.errors import FrameError, UsageError

cdef enum:
    _LENGTH_BYTES = 4


@cython.final
cdef class FrameSplitter:
    """Cuts a byte stream into frames. Not thread-safe."""

    def __cinit__(self, frame_bytes_max):
        if not 0 <= frame_bytes_max <= INT32_MAX:
            raise UsageError(f"frame_bytes_max {frame_bytes_max} lies outside 0..{INT32_MAX}")
        self._frame_bytes_max = frame_bytes_max
        self._length_bytes = 0
        self._frame = None
        self._filled = 0
        self._is_broken = False

    @property
    def pending_bytes(self):
        return self._length_bytes + self._filled

    def feed(self, data):
        cdef Py_buffer view
        cdef list frames = []
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if not self._is_broken:
                self._cut(<const uint8_t *>view.buf, view.len, frames)
        finally:
            PyBuffer_Release(&view)
        if self._is_broken:
            raise FrameError(length=self._bad_length, limit=self._frame_bytes_max)
        return frames

    cdef int _cut(self, const uint8_t *data, int64_t size, list frames) except -1:
        cdef int64_t taken
        while True:
            if self._frame is None:
                taken = min(size, _LENGTH_BYTES - self._length_bytes)
                if taken:
                    memcpy(self._length + self._length_bytes, data, <size_t>taken)
                self._length_bytes += taken
                data += taken
                size -= taken
                if self._length_bytes < _LENGTH_BYTES:
                    return 0
                self._start(core.load_big_endian[int32_t](self._length))
                if self._is_broken:
                    return 0
            taken = min(size, PyBytes_GET_SIZE(self._frame) - self._filled)
            if taken:
                memcpy(PyBytes_AS_STRING(self._frame) + self._filled, data, <size_t>taken)
            self._filled += taken
            data += taken
            size -= taken
            if self._filled < PyBytes_GET_SIZE(self._frame):
                return 0
            frames.append(self._frame)
            self._frame = None
            self._filled = self._length_bytes = 0

    cdef int _start(self, int64_t length) except -1:
        """The length is known: refuse it, or make room for its frame (whose pages are touched only as bytes arrive)."""
        if 0 <= length <= self._frame_bytes_max:
            self._frame = PyBytes_FromStringAndSize(NULL, length)
            return 0
        self._is_broken = True
        self._bad_length = length
        self._length_bytes = 0
        return 0
