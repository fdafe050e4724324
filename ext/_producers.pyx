"""What producers have in a log.

The GIL is held but while batches are read: the rest is short, and whoever else holds the lock never waits for the GIL.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libcpp.memory cimport make_shared

cimport cython

from fastquorum.errors import OutOfOrderSequence, ProducerFenced
from fastquorum.kernels.producers import PRODUCERS_MAX, UNDO_MAX, ProducedBatch, ProducerState


cdef object _batch(const CppProducedBatch &batch):
    return ProducedBatch(batch.first_sequence, batch.last_sequence, batch.base_offset, batch.end_offset, batch.crc)


@cython.final
cdef class Producers:
    """Thread-safe: a lane that appends takes batches in meanwhile."""

    def __cinit__(self, int64_t start_offset, *, int64_t producers_max=PRODUCERS_MAX, int64_t undo_max=UNDO_MAX):
        self.producers = make_shared[CppProducers](start_offset, producers_max, undo_max)

    @property
    def end_offset(self):
        return self.producers.get().end_offset()

    def __len__(self):
        return self.producers.get().size()

    def get(self, int64_t producer_id):
        cdef CppProducer found
        cdef int i
        if not self.producers.get().get(producer_id, &found):
            return None
        batches = tuple([_batch(found.batches[i]) for i in range(found.count)])
        return ProducerState(found.epoch, batches, _batch(found.fence) if found.has_fence else None)

    @property
    def displaced_end(self):
        return self.producers.get().displaced_end()

    def check(self, stamp):
        cdef CppStamp made
        cdef CppProducedBatch found
        cdef int64_t expected = 0
        cdef Verdict verdict
        made.producer_id, made.epoch, made.first_sequence, made.record_count, made.crc = stamp
        verdict = self.producers.get().check(made, &found, &expected)
        if verdict == Verdict.duplicate or verdict == Verdict.same_sequences:
            return _batch(found)
        if verdict == Verdict.fenced:
            raise ProducerFenced(producer_id=made.producer_id, epoch=made.epoch, current_epoch=expected)
        if verdict == Verdict.out_of_order:
            raise OutOfOrderSequence(
                producer_id=made.producer_id, sequence=made.first_sequence, expected_sequence=expected
            )
        return None

    def appended(self, stamp, int64_t base_offset, int64_t end_offset):
        cdef CppStamp made
        if stamp is not None:
            made.producer_id, made.epoch, made.first_sequence, made.record_count, made.crc = stamp
        self.producers.get().appended(made, base_offset, end_offset)

    def read(self, batches, int64_t base_offset, int64_t end_offset):
        cdef Py_buffer view
        PyObject_GetBuffer(batches, &view, PyBUF_SIMPLE)
        try:
            with nogil:
                self.producers.get().read(<const uint8_t *>view.buf, view.len, base_offset, end_offset)
        finally:
            PyBuffer_Release(&view)

    def truncated(self, int64_t end_offset):
        self.producers.get().truncated(end_offset)

    def begin_anew(self, int64_t start_offset):
        self.producers.get().begin_anew(start_offset)
