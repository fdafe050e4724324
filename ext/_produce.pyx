"""Plain Produce requests of clients, which the native shell serves without Python."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._lane cimport Span
from fastquorum.kernels.native.core cimport BatchHeader


@cython.final
cdef class ProduceApi:
    """Which Produce requests are served without Python, and how they are answered.

    `answers`: for each version (frame, error_at, base_offset_at, log_start_offset_at): a response, and where its numbers
    stand that differ from one to the next; -1 where there is none.
    """

    def __cinit__(self, str topic, bytes topic_id, answers, *, int64_t batch_bytes_max, int64_t unanswered_max):
        cdef ProduceAnswer answer
        assert topic and len(topic_id) == 16
        self.service.topic = topic.encode()
        self.service.topic_id = topic_id
        self.service.batch_bytes_max = batch_bytes_max
        self.service.unanswered_max = unanswered_max
        for version in range(produce_version_max + 1):
            answer.frame.clear()
            if version >= produce_version_min:
                frame, answer.error_at, answer.base_offset_at, answer.log_start_offset_at = answers[version]
                answer.frame = frame
            self.service.answers.push_back(answer)

    def parse(self, bytes frame):
        """(version, correlation id, acks, timeout_ms, records) of a Produce of the plain shape; else None."""
        cdef ProduceFields fields
        if not self.service.parse(_span(frame), &fields):
            return None
        records = PyBytes_FromStringAndSize(<const char *>fields.records.data, fields.records.size)
        return fields.version, fields.correlation_id, fields.acks, fields.timeout_ms, records

    def takes(self, bytes records):
        """Is it one good batch that needs nobody to look at it?"""
        cdef BatchHeader header
        return bool(self.service.takes(_span(records), &header))

    def answer(self, int version, int correlation_id, int error, int64_t base_offset, int64_t log_start_offset):
        """A response frame."""
        cdef WaitingProduce to
        to.version = version
        to.correlation_id = correlation_id
        return core.bytes_of(self.service.answer(to, error, base_offset, log_start_offset))


cdef Span _span(bytes data):
    cdef Span span
    span.data = <const uint8_t *>PyBytes_AS_STRING(data)
    span.size = PyBytes_GET_SIZE(data)
    return span
