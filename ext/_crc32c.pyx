"""CRC-32C and the choice of its CPU path."""

from libc.stdint cimport uint32_t

cimport crc32c_core as core

from fastquorum.errors import UsageError


def crc32c(const unsigned char[::1] data, uint32_t crc=0):
    cdef const unsigned char *start = NULL
    cdef size_t size = <size_t>data.shape[0]
    if size:
        start = &data[0]
    with nogil:
        crc = core.crc32c(crc, start, size)
    return crc


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
    """Use this path from now on, in the whole process; "" = the best one again. For tests."""
    if not core.crc32c_force_path(name.encode()):
        raise UsageError(
            detail=f"CPU path {name!r} does not run on this machine", hint=f"available: {', '.join(cpu_paths())}"
        )
