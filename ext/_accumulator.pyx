"""The open batch: values are encoded straight into its buffer, the header is written once, when it is sealed.

Not thread-safe: the caller's lock (or the GIL, which no method but `seal` releases, and that one only once it works on a
copy of its own) keeps it whole.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._values cimport Values, to_slice
from fastquorum.kernels.native.core cimport BatchHeader, Slice

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_BYTES_MAX


@cython.final
cdef class Accumulator:
    """An open batch that values are encoded straight into, and sealed once. Not thread-safe."""

    def __cinit__(self, batch_bytes_max=BATCH_BYTES_MAX):
        if not core.header_bytes < batch_bytes_max <= core.batch_size_max:
            raise UsageError(
                f"batch_bytes_max {batch_bytes_max} lies outside {core.header_bytes + 1}..{core.batch_size_max}"
            )
        self._batch_bytes_max = batch_bytes_max
        # Not zeroed: the pages of a large buffer are touched only as far as batches grow.
        self._buffer = <uint8_t *>malloc(<size_t>self._batch_bytes_max)
        if self._buffer == NULL:
            raise MemoryError
        self._is_open = False
        self._size_bytes = 0
        self._record_count = 0
        self._header.base_offset = -1
        self._header.attributes = 0
        self._header.producer_id = -1
        self._header.producer_epoch = -1
        self._header.base_sequence = -1

    def __dealloc__(self):
        free(self._buffer)

    @property
    def is_open(self):
        return self._is_open

    @property
    def base_offset(self):
        """-1 while no batch is open."""
        return self._header.base_offset

    @property
    def next_offset(self):
        """Offset the next value would get; -1 while no batch is open."""
        return self._header.base_offset + self._record_count

    @property
    def record_count(self):
        return self._record_count

    @property
    def size_bytes(self):
        """Bytes `seal` would return now; 0 while no batch is open."""
        return self._size_bytes

    def open(self, base_offset, leader_epoch, timestamp_ms):
        if self._is_open:
            raise UsageError("a batch is open already", "seal or discard it first")
        if (
            not 0 <= base_offset < INT64_MAX
            or not 0 <= leader_epoch <= INT32_MAX
            or not INT64_MIN <= timestamp_ms <= INT64_MAX
        ):
            raise UsageError(f"no batch has offset {base_offset}, epoch {leader_epoch}, timestamp {timestamp_ms}")
        self._header.base_offset = base_offset
        self._header.leader_epoch = leader_epoch
        self._header.base_timestamp_ms = self._header.max_timestamp_ms = timestamp_ms
        self._is_open = True
        self._size_bytes = core.header_bytes

    def append(self, value):
        cdef Slice slice
        cdef list holders = None
        if not self._is_open:
            raise UsageError("no batch is open", "open one first")
        if PyBytes_CheckExact(value):
            slice.data = <const uint8_t *>PyBytes_AS_STRING(value)
            slice.size = PyBytes_GET_SIZE(value)
        else:
            holders = []
            to_slice(value, &slice, holders)
        return self._append(&slice, 1)

    def append_many(self, values):
        cdef Values found
        if not self._is_open:
            raise UsageError("no batch is open", "open one first")
        found = Values(values)
        if found.count == 0:
            raise UsageError("there is no value to append")
        # Values ran the caller's code, perhaps, and that may have closed the batch.
        if not self._is_open:
            raise UsageError("no batch is open", "open one first")
        return self._append(found.slices, found.count)

    cdef int64_t _append(self, const Slice *slices, int64_t count) except -2:
        cdef int64_t grown = self._size_bytes + core.values_size(slices, count, self._record_count)
        cdef int64_t first = self._header.base_offset + self._record_count
        cdef int64_t alone
        if grown > self._batch_bytes_max:
            alone = core.header_bytes + core.values_size(slices, count, 0)
            if alone > self._batch_bytes_max:
                raise RecordTooLarge(size_bytes=alone, limit_bytes=self._batch_bytes_max)
        if first > INT64_MAX - count:
            raise UsageError(
                f"base_offset {self._header.base_offset} leaves no room for {self._record_count + count} offsets"
            )
        if grown > self._batch_bytes_max:
            return -1
        core.write_values(self._buffer + self._size_bytes, slices, count, self._record_count)
        self._size_bytes = grown
        self._record_count += count
        return first

    def seal(self):
        cdef BatchHeader header
        cdef bytes batch
        cdef uint8_t *out
        if self._record_count == 0:
            raise UsageError("there is nothing to seal", "append a value first")
        header = self._header
        header.size_bytes = self._size_bytes
        header.records_count = <int>self._record_count
        header.last_offset_delta = <int>(self._record_count - 1)
        batch = PyBytes_FromStringAndSize(NULL, header.size_bytes)
        out = <uint8_t *>PyBytes_AS_STRING(batch)
        memcpy(out + core.header_bytes, self._buffer + core.header_bytes, <size_t>(header.size_bytes - core.header_bytes))
        self.discard()
        with nogil:
            core.seal(out, header)
        return batch

    def discard(self):
        self._is_open = False
        self._size_bytes = 0
        self._record_count = 0
        self._header.base_offset = -1
