"""Stages of a commit (ext/core/node/trace.h), for Cython."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector


cdef extern from "node/trace.h" namespace "fastquorum::node" nogil:
    cdef cppclass Histogram:
        Histogram() noexcept
        int64_t count
        int64_t sum_ns
        int64_t[800] counts

    cdef enum class Measure(int):
        committed_announced
        append_announced

    cdef cppclass Group:
        int64_t base_offset
        int64_t end_offset
        int32_t epoch
        cbool is_leader
        int64_t[7] at

    cdef cppclass AnnouncedRange:
        int64_t first
        int64_t last
        int64_t at

    cdef cppclass Stamp:
        int64_t appended_us
        int64_t committed_us

    cdef cppclass Announcements:
        void note_one(int64_t result, Stamp stamp, int64_t at) noexcept
        void copy(Histogram *committed_announced, Histogram *append_announced) noexcept
        vector[AnnouncedRange] use(vector[AnnouncedRange] ring) noexcept
        void read(vector[AnnouncedRange] *copy) except +

    cdef cppclass Trace:
        Trace() except +
        const shared_ptr[Announcements] &announcements() noexcept
        void opened(cbool is_leader) noexcept
        void forget() noexcept
        void begin(int64_t at) noexcept
        void gathers() noexcept
        void written(int64_t base_offset, int64_t end_offset, int32_t epoch, int64_t at) noexcept
        void sent(int64_t end, int64_t at) noexcept
        void synced(int64_t began, int64_t ended) noexcept
        void flushed(int64_t end, int64_t at) noexcept
        void acked(int64_t end, int64_t at) noexcept
        void committed(int64_t end, int64_t at) noexcept
        void copy(vector[Histogram] *histograms) except +
        vector[Group] use(vector[Group] groups, cbool is_recording) noexcept
        uint64_t read(uint64_t start, size_t count, vector[Group] *groups) except +
        uint64_t lost() noexcept

    const size_t trace_window "fastquorum::node::Trace::window"
    const size_t bucket_count "fastquorum::node::Histogram::bucket_count"
    const size_t measures

cdef int check_capacity(int64_t capacity) except -1
cdef object from_histograms(const vector[Histogram] &found)
cdef object from_groups(const vector[Group] &groups, const vector[AnnouncedRange] &ranges, int64_t lost)
