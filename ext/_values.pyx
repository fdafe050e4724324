"""Python's buffers as slices that C++ can read without the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint8_t

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native.core cimport Slice


cdef int to_slice(object item, Slice *slice, list holders) except -1:
    if not PyBytes_CheckExact(item):
        # A copy: a bytearray or an array may change, or shrink, while the GIL is released.
        item = bytes(memoryview(item))
        holders.append(item)
    slice.data = <const uint8_t *>PyBytes_AS_STRING(item)
    slice.size = PyBytes_GET_SIZE(item)
    return 0


cdef class Source:
    cdef int64_t size(self) noexcept nogil:
        return 0

    cdef void write(self, uint8_t *out) noexcept nogil:
        pass


@cython.final
cdef class Values(Source):
    def __cinit__(self, values):
        cdef int64_t i
        self._items = tuple(values)
        self._holders = []
        self.count = len(self._items)
        self.slices = <Slice *>PyMem_Malloc(<size_t>(self.count + 1) * sizeof(Slice))
        if self.slices == NULL:
            raise MemoryError
        for i in range(self.count):
            to_slice(self._items[i], &self.slices[i], self._holders)

    def __dealloc__(self):
        PyMem_Free(self.slices)

    cdef int64_t size(self) noexcept nogil:
        return core.values_size(self.slices, self.count, 0)

    cdef void write(self, uint8_t *out) noexcept nogil:
        core.write_values(out, self.slices, self.count, 0)
