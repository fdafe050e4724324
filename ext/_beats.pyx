"""Heartbeats of brokers that go on as they are, answered where they arrive. See `kernels.beats`.

The GIL is held: the lock is only ever held for a moment, by threads that never wait for the GIL.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.memory cimport make_shared
from libcpp.utility cimport move
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native._lane cimport Span

from fastquorum.errors import UsageError
from fastquorum.kernels.beats import AnsweredBeat


@cython.final
cdef class SteadyBeats:
    """Thread-safe."""

    def __cinit__(self):
        self.beats = make_shared[CppSteadyBeats]()

    def begin(self, int32_t leader_epoch):
        self.beats.get().begin(leader_epoch)

    def keep(self, beat):
        cdef CppSteadyBeat kept
        if not beat_answer_bytes_min <= len(beat.answer) <= beat_answer_bytes_max:
            raise UsageError(f"{len(beat.answer)} bytes cannot be an answer to a heartbeat")
        kept.broker_id = beat.broker_id
        kept.broker_epoch = beat.broker_epoch
        kept.version = beat.version
        kept.metadata_offset_min = beat.metadata_offset_min
        kept.wishes = beat.wishes
        kept.answer = beat.answer
        self.beats.get().keep(move(kept))

    def forget(self, int32_t broker_id):
        self.beats.get().forget(broker_id)

    def forget_all(self):
        self.beats.get().forget_all()

    def answer(self, frame, int32_t leader_epoch, int64_t now_us):
        cdef Py_buffer view
        cdef Span span
        cdef BeatAnswer answer
        cdef cbool is_answered
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            span.data = <const uint8_t *>view.buf
            span.size = view.len
            is_answered = self.beats.get().answer(span, leader_epoch, now_us, &answer)
        finally:
            PyBuffer_Release(&view)
        if not is_answered:
            return None
        return PyBytes_FromStringAndSize(<const char *>answer.bytes, answer.size)

    def take_answered(self):
        cdef vector[CppAnsweredBeat] found = self.beats.get().take_answered()
        cdef size_t i
        return [
            AnsweredBeat(found[i].broker_id, found[i].broker_epoch, found[i].contact_us, found[i].metadata_offset)
            for i in range(found.size())
        ]
