"""Owner of a native engine: its threads, its connections and clients, and what it takes.

Every call that takes the lane lock lets go of the GIL first. `_callers` has the side of those that append, `_shell` the
side of the replica.
"""

import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from fastquorum.kernels.native._beats cimport SteadyBeats
from fastquorum.kernels.native._faults cimport check_batch_bytes_max
from fastquorum.kernels.native._lane cimport Span, to_identity
from fastquorum.kernels.native._produce cimport ProduceApi
from fastquorum.kernels.native._stages cimport Group, Histogram, AnnouncedRange, check_capacity, from_groups, from_histograms

from fastquorum.kernels.lane import LaneMode

cdef tuple _MODES = (LaneMode.CLOSED, LaneMode.LEADER, LaneMode.FOLLOWER)


cdef Standing _standing(Engine *engine):
    cdef Standing standing
    with nogil:
        standing = engine.standing()
    return standing


cdef class NodeEngine:
    """A native engine of one node; see ext/core/node/engine.h for who owns what."""

    def __cinit__(self, identity, int64_t batch_bytes_max, *, int64_t frame_bytes_max, int64_t records_max, int64_t bytes_max,
                  int64_t busy_poll_us=0, int64_t alone_us_max=0):
        cdef Limits limits
        cdef int error
        check_batch_bytes_max(batch_bytes_max)
        limits.frame_bytes_max = frame_bytes_max
        limits.records_max = records_max
        limits.bytes_max = bytes_max
        limits.busy_poll_us = busy_poll_us
        limits.alone_us_max = alone_us_max
        self.engine = new Engine(to_identity(identity), batch_bytes_max, limits)
        error = self.engine.start()
        if error:
            raise OSError(error, os.strerror(error), "the node's native threads")

    def __dealloc__(self):
        # In a forked child the threads are not there to be joined, and the lock may be held for ever: leave all of it alone.
        if self.engine != NULL and self.engine.is_in_own_process():
            with nogil:
                self.engine.end_threads()
            del self.engine

    def end_threads(self):
        """Finish the sync under way, end both threads, close what is open. Idempotent."""
        if self.engine.is_in_own_process():
            with nogil:
                self.engine.end_threads()

    def before_fork(self):
        """Hold everything still, so that the child finds it whole. `after_fork` follows in the parent."""
        with nogil:
            self.engine.before_fork()

    def after_fork(self):
        self.engine.after_fork()

    def abandon_in_child(self):
        """After fork, in the child: let go of the descriptors."""
        self.engine.abandon_in_child()

    def fileno(self):
        """Readable when there is news."""
        return self.engine.news_descriptor()

    # --- looked at from any thread ------------------------------------------------------------------------------------

    @property
    def high_watermark(self):
        return self.engine.high_watermark()

    @property
    def appended_us(self):
        return self.engine.appended_us()

    @property
    def has_failed(self):
        """A sync has failed, or the log cut the lane off: nothing leaves any more."""
        return bool(self.engine.has_failed())

    @property
    def flush_began_us(self):
        """When the sync under way began; -1: none is."""
        return self.engine.flush_began_us()

    def watch_flush_again(self, int64_t from_us):
        self.engine.watch_flush_again(from_us)

    @property
    def mode(self):
        return _MODES[<int>_standing(self.engine).mode]

    @property
    def is_frozen(self):
        return bool(_standing(self.engine).is_frozen)

    @property
    def end_offset(self):
        return _standing(self.engine).end_offset

    @property
    def flushed_end(self):
        return _standing(self.engine).flushed_end

    @property
    def is_flushing(self):
        return bool(_standing(self.engine).is_flushing)

    # --- producers' connections ---------------------------------------------------------------------------------------

    def serve_produce(self, ProduceApi produce not None):
        """Have Produce requests of the plain shape served without Python."""
        with nogil:
            self.engine.serve_produce(produce.service)

    def serve_beats(self, SteadyBeats beats not None, int64_t confirmed_us_max):
        """Have the heartbeats that are kept there answered without Python, while this node leads and is confirmed."""
        with nogil:
            self.engine.serve_beats(beats.beats, confirmed_us_max)

    def is_confirmed(self, int64_t within_us):
        """A majority surely followed this lead at some time in the last `within_us`, by the clock of now."""
        cdef cbool confirmed
        with nogil:
            confirmed = self.engine.is_confirmed(within_us)
        return bool(confirmed)

    def await_observers(self, ids, int64_t offset):
        """See `Lane.await_observers`; there is news when none of them is left."""
        cdef vector[int32_t] wanted = ids
        cdef cbool are_awaited
        with nogil:
            are_awaited = self.engine.await_observers(wanted, offset)
        return bool(are_awaited)

    @property
    def are_observers_awaited(self):
        return bool(self.engine.are_observers_awaited())

    def settled(self, int64_t connection, int64_t frames):
        """So many frames of this connection have come as events, and no answer to any is owed any more."""
        with nogil:
            self.engine.settled(connection, frames)

    # --- what it takes: see kernels.stages ----------------------------------------------------------------------------

    def stage_histograms(self):
        cdef vector[Histogram] found
        with nogil:
            found = self.engine.stage_histograms()
        return from_histograms(found)

    def trace_start(self, int64_t capacity):
        check_capacity(capacity)
        with nogil:
            self.engine.trace_start(<size_t>capacity)

    def trace_stop(self):
        with nogil:
            self.engine.trace_stop()

    def trace_read(self):
        cdef vector[Group] groups
        cdef vector[AnnouncedRange] ranges
        cdef int64_t lost
        with nogil:
            lost = self.engine.trace_read(&groups, &ranges)
        return from_groups(groups, ranges, lost)

    # --- connections --------------------------------------------------------------------------------------------------

    def connection_count(self):
        cdef int64_t count
        with nogil:
            count = self.engine.connection_count()
        return count

    def add(self, int64_t number, int descriptor, bint is_accepted, int64_t now_us):
        """Take over a non-blocking socket's descriptor; 0, or an errno, and it stays the caller's."""
        cdef int error
        with nogil:
            error = self.engine.add(number, descriptor, is_accepted, now_us)
        return error

    def knows(self, int64_t connection):
        cdef bint known
        with nogil:
            known = self.engine.knows(connection)
        return known

    def is_broken(self, int64_t connection):
        cdef bint broken
        with nogil:
            broken = self.engine.is_broken(connection)
        return broken

    def needs_drain(self, int64_t connection):
        """Is it owed so much that no more answers are to be made for it? Then an event says when that has changed."""
        cdef bint needs
        with nogil:
            needs = self.engine.needs_drain(connection)
        return needs

    def is_crowded(self):
        """Is much owed to all connections together?"""
        cdef bint crowded
        with nogil:
            crowded = self.engine.is_crowded()
        return crowded

    def favour(self, int64_t connection):
        """It is a voter's: it is read from and sent to whatever is kept for others, and before them."""
        with nogil:
            self.engine.favour(connection)

    def is_accepted(self, int64_t connection):
        cdef bint accepted
        with nogil:
            accepted = self.engine.is_accepted(connection)
        return accepted

    def send(self, int64_t connection, frame):
        cdef Span span
        cdef Py_buffer view
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            span.data = <const uint8_t *>view.buf
            span.size = view.len
            with nogil:
                self.engine.send_frame(connection, span)
        finally:
            PyBuffer_Release(&view)

    def close_connection(self, int64_t connection):
        with nogil:
            self.engine.close_connection(connection)

    def break_off(self, int64_t connection):
        with nogil:
            self.engine.break_off(connection)

    def close_all(self, int64_t now_us):
        with nogil:
            self.engine.close_all(now_us)

    def overdue(self, int64_t now_us, *, int64_t partial_us_max, int64_t idle_us_max, int64_t connect_us_max):
        cdef vector[int64_t] found
        with nogil:
            found = self.engine.overdue(now_us, partial_us_max, idle_us_max, connect_us_max)
        return [found[i] for i in range(found.size())]

    def oldest_silent(self, int64_t now_us, int64_t silent_us_min):
        cdef int64_t found
        with nogil:
            found = self.engine.oldest_silent(now_us, silent_us_min)
        return found
