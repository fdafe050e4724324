"""Stages of a commit: the native measuring by itself, as its twin's tests see it, and its results as Python's values."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.stages import (
    BUCKETS,
    CAPACITY_MAX,
    STAGES,
    StageHistogram,
    TracedGroup,
    TraceRead,
    with_resolved,
)

from fastquorum.errors import UsageError

assert bucket_count == <size_t>BUCKETS and measures == <size_t>len(STAGES), "trace.h and kernels.stages are one"


@cython.final
cdef class Stages:
    """See kernels.stages.Stages. Not thread-safe; the native shell has its own."""

    cdef Trace *_trace

    def __cinit__(self):
        self._trace = new Trace()

    def __dealloc__(self):
        del self._trace

    def opened(self, bint is_leader):
        self._trace.opened(is_leader)

    def forget(self):
        self._trace.forget()

    def begin(self, int64_t at_ns):
        self._trace.begin(at_ns)

    def gathers(self):
        self._trace.gathers()

    def written(self, int64_t base_offset, int64_t end_offset, int32_t epoch, int64_t at_ns):
        self._trace.written(base_offset, end_offset, epoch, at_ns)

    def sent(self, int64_t end_offset, int64_t at_ns):
        self._trace.sent(end_offset, at_ns)

    def synced(self, int64_t began_ns, int64_t ended_ns):
        self._trace.synced(began_ns, ended_ns)

    def flushed(self, int64_t end_offset, int64_t at_ns):
        self._trace.flushed(end_offset, at_ns)

    def acked(self, int64_t end_offset, int64_t at_ns):
        self._trace.acked(end_offset, at_ns)

    def committed(self, int64_t end_offset, int64_t at_ns):
        self._trace.committed(end_offset, at_ns)

    def announced(self, int64_t base_offset, int64_t appended_us, int64_t committed_us, int64_t at_ns):
        cdef Stamp stamp
        stamp.appended_us = appended_us
        stamp.committed_us = committed_us
        self._trace.announcements().get().note_one(base_offset, stamp, at_ns)

    def histograms(self):
        cdef vector[Histogram] found
        self._trace.copy(&found)
        found.resize(measures)
        self._trace.announcements().get().copy(&found[<int>Measure.committed_announced], &found[<int>Measure.append_announced])
        return from_histograms(found)

    def trace_start(self, int64_t capacity):
        check_capacity(capacity)
        cdef vector[Group] groups
        cdef vector[AnnouncedRange] ranges
        groups.resize(<size_t>capacity)
        ranges.resize(<size_t>capacity)
        self._trace.announcements().get().use(ranges)
        self._trace.use(groups, True)

    def trace_stop(self):
        cdef vector[Group] groups
        cdef vector[AnnouncedRange] ranges
        groups.resize(trace_window)
        self._trace.announcements().get().use(ranges)
        self._trace.use(groups, False)

    def trace_read(self):
        cdef vector[Group] groups
        cdef vector[AnnouncedRange] ranges
        self._trace.read(0, <size_t>CAPACITY_MAX, &groups)
        self._trace.announcements().get().read(&ranges)
        return from_groups(groups, ranges, <int64_t>self._trace.lost())


cdef int check_capacity(int64_t capacity) except -1:
    if not 1 <= capacity <= CAPACITY_MAX:
        raise UsageError(f"a trace of {capacity} batches: from 1 to {CAPACITY_MAX} can be kept")
    return 0


cdef object from_histograms(const vector[Histogram] &found):
    cdef size_t i, j
    histograms = {}
    for i in range(found.size()):
        counts = tuple([found[i].counts[j] for j in range(bucket_count)])
        histograms[STAGES[i]] = StageHistogram(found[i].count, found[i].sum_ns / 1000.0, counts)
    return histograms


cdef object from_groups(const vector[Group] &groups, const vector[AnnouncedRange] &ranges, int64_t lost):
    cdef size_t i, j
    found = []
    for i in range(groups.size()):
        at = [groups[i].at[j] for j in range(7)]
        found.append(TracedGroup(groups[i].base_offset, groups[i].end_offset, groups[i].epoch, groups[i].is_leader, *at))
    announced = [(ranges[i].first, ranges[i].last, ranges[i].at) for i in range(ranges.size())]
    return TraceRead(with_resolved(found, announced), lost)
