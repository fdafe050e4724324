"""core/crc32c.h, for Cython."""

from libc.stdint cimport uint32_t


cdef extern from "crc32c.h" namespace "fastquorum" nogil:
    uint32_t crc32c(uint32_t crc, const void *data, size_t size) noexcept
    const char *const *crc32c_paths() noexcept
    const char *crc32c_path() noexcept
    bint crc32c_force_path(const char *name) noexcept
