"""Walks over many batches that look at headers only: the recovery scan, listing, slicing, and placing a client's batch."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t
from libcpp.pair cimport pair
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._faults cimport batch_info, fault_reason, raise_fault
from fastquorum.kernels.native.core cimport BatchHeader, Expectation, Fault, ScanResult, Status

from fastquorum.errors import UsageError
from fastquorum.kernels import Fault as ScanFault
from fastquorum.kernels import Scan


@cython.final
cdef class _View:
    """A caller's buffer, exported for as long as this lives: it cannot be resized meanwhile."""

    cdef Py_buffer _view
    cdef bint _has_view
    cdef const uint8_t *data
    cdef int64_t size

    def __cinit__(self, buffer, position):
        PyObject_GetBuffer(buffer, &self._view, PyBUF_SIMPLE)
        self._has_view = True
        self.data = <const uint8_t *>self._view.buf
        self.size = self._view.len
        if not 0 <= position <= self.size:
            raise UsageError(f"position {position} lies outside a buffer of {self.size} bytes")

    def __dealloc__(self):
        if self._has_view:
            PyBuffer_Release(&self._view)


def batch_headers(buffer, position=0, *, verify_crc=True, producers_only=False):
    cdef _View view = _View(buffer, position)
    cdef int64_t at = position
    cdef bint is_verified = verify_crc
    cdef bint needs_producer = producers_only
    cdef BatchHeader header
    cdef bint crc_valid = False
    cdef bint is_batch
    found = []
    while True:
        with nogil:
            while True:
                is_batch = core.framing_fault(view.data, view.size, at) == Fault.none
                if is_batch:
                    header = core.read_header(view.data + at)
                    is_batch = core.header_bytes <= header.size_bytes <= view.size - at
                if not is_batch or not needs_producer or header.producer_id >= 0:
                    break
                at += header.size_bytes
            if is_batch and is_verified:
                crc_valid = header.crc == core.batch_crc(view.data + at, header)
        if not is_batch:
            return found
        found.append(batch_info(header, at, crc_valid if is_verified else None))
        at += header.size_bytes


cdef tuple _pairs(vector[pair[int64_t, int64_t]] &pairs):
    return tuple([(entry.first, entry.second) for entry in pairs])


def scan(buffer, position=0, *, int64_t expected_offset=-1, int64_t epoch_min=0, int64_t epoch_max=INT32_MAX,
         bint verify_crc=True, int64_t batch_bytes_max=core.batch_size_max):
    cdef _View view = _View(buffer, position)
    cdef int64_t start = position
    cdef Expectation expected
    cdef ScanResult result
    cdef bint has_memory
    expected.offset = expected_offset
    expected.epoch_min = epoch_min
    expected.epoch_max = epoch_max
    with nogil:
        has_memory = core.scan(view.data, view.size, start, expected, verify_crc, batch_bytes_max, &result)
    if not has_memory:
        raise MemoryError
    fault = None
    if result.status.fault != Fault.none:
        fault = ScanFault(
            fault_reason(result.status),
            result.status.position,
            result.status.offset,
            result.status.stored_crc,
            result.status.computed_crc,
        )
    return Scan(
        result.valid_bytes,
        result.batch_count,
        result.control_count,
        result.record_count,
        result.first_offset,
        result.next_offset,
        result.first_epoch,
        result.last_epoch,
        result.max_timestamp_ms,
        _pairs(result.epoch_starts),
        _pairs(result.index),
        fault,
    )


def slice_batches(buffer, int64_t offset, int64_t bytes_max):
    cdef _View view = _View(buffer, 0)
    cdef pair[int64_t, int64_t] found
    with nogil:
        found = core.slice_batches(view.data, view.size, offset, bytes_max)
    return found.first, found.second


def stamp_batch(batch, base_offset, leader_epoch):
    cdef Py_buffer view
    cdef uint8_t *data
    cdef Status status
    cdef Fault fault
    if not 0 <= base_offset <= INT64_MAX or not 0 <= leader_epoch <= INT32_MAX:
        raise UsageError(f"offset {base_offset} and epoch {leader_epoch} are not a place in a log")
    PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
    try:
        data = <uint8_t *>view.buf
        fault = core.framing_fault(data, view.len, 0)
        if fault == Fault.none and core.read_header(data).size_bytes != view.len:
            fault = Fault.length
        if fault != Fault.none:
            raise_fault(core.status_at(fault, data, view.len, 0))
        core.store_big_endian(data, <int64_t>base_offset)
        core.store_big_endian(data + core.framing_bytes, <int32_t>leader_epoch)
    finally:
        PyBuffer_Release(&view)
