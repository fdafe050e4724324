"""Which leader epoch begins at which offset (KIP-101), and the high watermark (KIP-595). The GIL is held: all of it is short."""

from libc.stdint cimport int64_t
from libcpp.pair cimport pair
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native cimport core

from fastquorum.errors import CorruptionError, VoterCountError

cdef enum:
    _FEW = 16  # voters, which a stack holds


@cython.final
cdef class EpochCache:
    """Epochs and their start offsets, two ascending columns. Not thread-safe."""

    def __init__(self, entries=()):
        cdef int64_t epoch, start_offset
        self.table.truncate_to(0)
        for epoch, start_offset in entries:
            if epoch <= self.table.latest_epoch() or start_offset <= self.table.latest_start():
                raise CorruptionError("epoch", offset=start_offset)
            self._append(epoch, start_offset)

    cdef int _append(self, int64_t epoch, int64_t start_offset) except -1:
        if not self.table.append(epoch, start_offset):
            raise MemoryError
        return 0

    def __len__(self):
        return self.table.size()

    def assign(self, int64_t epoch, int64_t start_offset):
        if epoch < 0 or epoch < self.table.latest_epoch():
            raise CorruptionError("epoch", offset=start_offset)
        if epoch == self.table.latest_epoch():
            return False
        if start_offset < 0 or start_offset < self.table.latest_start():
            raise CorruptionError("offset", offset=start_offset)
        self.table.truncate_to(start_offset)
        self._append(epoch, start_offset)
        return True

    @property
    def latest_epoch(self):
        return self.table.latest_epoch()

    @property
    def latest_start(self):
        return self.table.latest_start()

    def epoch_for(self, int64_t offset):
        return self.table.epoch_for(offset)

    def end_offset_for(self, int64_t epoch, int64_t log_end_offset):
        cdef pair[int64_t, int64_t] found = self.table.end_offset_for(epoch, log_end_offset)
        return found.first, found.second

    def truncate_to(self, int64_t end_offset):
        self.table.truncate_to(end_offset)

    def truncate_before(self, int64_t start_offset):
        self.table.truncate_before(start_offset)

    def entries(self):
        return [(self.table.epoch(i), self.table.start(i)) for i in range(self.table.size())]


def high_watermark(end_offsets, int64_t epoch_start_offset):
    cdef int64_t few[_FEW]
    cdef vector[int64_t] many
    cdef int64_t *reached = few
    cdef Py_ssize_t count = len(end_offsets)
    cdef Py_ssize_t i
    cdef int64_t result
    if count == 0:
        raise VoterCountError("a quorum without voters has no high watermark", count=0)
    if count > _FEW:
        many.resize(count)
        reached = many.data()
    for i in range(count):
        reached[i] = end_offsets[i]
    result = core.majority_reached(reached, count)
    return result if result > epoch_start_offset else -1
