"""CRC-32C and the choice of its CPU path."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t

from fastquorum.kernels.native cimport core

from fastquorum.errors import UsageError

# Below this size the GIL costs more than the checksum.
cdef enum:
    _GIL_HELD_BYTES_MAX = 16384


def crc32c(data, uint32_t crc=0):
    cdef Py_buffer view
    if PyBytes_CheckExact(data) and PyBytes_GET_SIZE(data) <= _GIL_HELD_BYTES_MAX:
        return core.crc32c(crc, PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data))
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            crc = core.crc32c(crc, view.buf, <size_t>view.len)
        return crc
    finally:
        PyBuffer_Release(&view)


def cpu_path():
    return core.crc32c_path().decode()


def cpu_paths():
    """The paths this CPU can run, best first."""
    cdef const char *const *names = core.crc32c_paths()
    found = []
    while names[0] != NULL:
        found.append(names[0].decode())
        names += 1
    return tuple(found)


def force_cpu_path(str name):
    """Use this path from now on, in the whole process; "" = the best one again. For tests. UsageError if unavailable."""
    if not core.crc32c_force_path(name.encode()):
        raise UsageError(
            f"CPU path {name!r} does not run on this machine", f"choose one of: {', '.join(cpu_paths())}"
        )
