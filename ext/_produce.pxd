"""Produce requests that are served without Python (ext/core/node/produce.h), for Cython."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastquorum.kernels.native._lane cimport Span
from fastquorum.kernels.native.core cimport BatchHeader


cdef extern from "node/produce.h" namespace "fastquorum::node" nogil:
    const int produce_version_min
    const int produce_version_max

    cdef cppclass ProduceAnswer:
        vector[uint8_t] frame
        int64_t error_at
        int64_t base_offset_at
        int64_t log_start_offset_at

    cdef cppclass ProduceFields:
        ProduceFields() noexcept
        int16_t version
        int32_t correlation_id
        int16_t acks
        int32_t timeout_ms
        Span records

    cdef cppclass WaitingProduce:
        WaitingProduce() noexcept
        int32_t correlation_id
        int32_t version

    cdef cppclass ProduceService:
        ProduceService() noexcept
        string topic
        string topic_id
        int64_t batch_bytes_max
        int64_t unanswered_max
        vector[ProduceAnswer] answers
        cbool parse(Span frame, ProduceFields *fields) noexcept
        cbool takes(Span records, BatchHeader *header) noexcept
        vector[uint8_t] answer(const WaitingProduce &to, int16_t error, int64_t base_offset, int64_t log_start_offset) except +


cdef class ProduceApi:
    cdef ProduceService service
