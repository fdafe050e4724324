"""What producers have in a log."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr


cdef extern from "producers.h" namespace "fastquorum" nogil:
    cdef cppclass CppStamp "fastquorum::Stamp":
        CppStamp() noexcept
        int64_t producer_id
        int32_t epoch
        int64_t first_sequence
        int64_t record_count
        uint32_t crc

    cdef cppclass CppProducedBatch "fastquorum::ProducedBatch":
        int64_t first_sequence
        int64_t last_sequence
        int64_t base_offset
        int64_t end_offset
        uint32_t crc

    cdef enum class Verdict "fastquorum::Producers::Verdict"(int):
        next
        unknown
        duplicate
        same_sequences
        fenced
        out_of_order

    cdef cppclass CppProducer "fastquorum::Producers::Producer":
        int32_t epoch
        int count
        cbool has_fence
        CppProducedBatch *batches
        CppProducedBatch fence

    cdef cppclass CppProducers "fastquorum::Producers":
        CppProducers(int64_t start_offset, int64_t producers_max, int64_t undo_max) except +
        int64_t end_offset() noexcept
        int64_t size() noexcept
        int64_t displaced_end() noexcept
        cbool get(int64_t producer_id, CppProducer *found) noexcept
        Verdict check(const CppStamp &stamp, CppProducedBatch *found, int64_t *expected) noexcept
        void appended(const CppStamp &stamp, int64_t base_offset, int64_t end_offset) except +
        void read(const uint8_t *data, int64_t size, int64_t base_offset, int64_t end_offset) except +
        void truncated(int64_t end_offset) except +
        void begin_anew(int64_t start_offset) noexcept


ctypedef shared_ptr[CppProducers] ProducersRef


cdef class Producers:
    cdef ProducersRef producers  # never null; shared with native code that appends without the GIL
