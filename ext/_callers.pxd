"""The side of a native engine that callers use, for Cython."""

from fastquorum.kernels.native._engine cimport NodeEngine


cdef class Callers(NodeEngine):
    pass
