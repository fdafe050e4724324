"""A segment's file, and the thread that syncs files."""

from fastquorum.kernels.native.core cimport FileRef, FlushThread


cdef class SegmentFile:
    cdef str _path
    cdef FileRef file  # shared with a flusher that still has to sync it; null once closed
    cdef int _sync_error  # what a failed sync left behind, kept beyond close

    cdef int fail(self, str operation, int error) except -1
    cdef int refuse_failed(self, str operation) except -1
    cdef int refuse_closed(self, str operation) except -1


cdef class Flusher:
    cdef FlushThread *_thread  # null only if the constructor failed

    cdef int _refuse_child(self) except -1
