"""A segment's offset index."""

from fastquorum.kernels.native.core cimport IndexRef


cdef class OffsetIndex:
    cdef IndexRef index  # never null; shared with native code that appends to the segment without the GIL
