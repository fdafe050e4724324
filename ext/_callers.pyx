"""The side of a native engine that callers use: appends and barriers, and who waits for them.

Every call that takes the lane lock lets go of the GIL first, but for one that never waits: an append that only gathers in
memory, tried if the lock is free.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._engine cimport Engine, NodeEngine
from fastquorum.kernels.native._values cimport Values
from fastquorum.kernels.native._waiters cimport Mailbox, Slot, Waiter
from fastquorum.kernels.native.core cimport Slice

from fastquorum.errors import UsageError

cdef int64_t _SMALL_BYTES = 4096  # copied with the GIL held; beyond it is let go of


cdef int _to_slices(list values, list waiting, vector[Slice] &slices) except -1:
    cdef Py_ssize_t i
    if len(waiting) != len(values):
        raise ValueError(f"{len(values)} values, and {len(waiting)} waiters for them")
    slices.resize(len(values))
    for i in range(len(values)):
        if not PyBytes_CheckExact(values[i]):
            raise TypeError("a value is not bytes")
        slices[i].data = <const uint8_t *>PyBytes_AS_STRING(values[i])
        slices[i].size = PyBytes_GET_SIZE(values[i])
    return 0


cdef list _append_all(Engine *engine, vector[Slice] &slices, vector[Waiter] &waiters, bint have_waited):
    cdef vector[int64_t] offsets
    cdef size_t i
    offsets.resize(slices.size())
    with nogil:
        engine.append_all(slices.data(), slices.size(), waiters.data(), have_waited, offsets.data())
    found = []
    for i in range(offsets.size()):
        found.append(offsets[i])
    return found


cdef int64_t _append(Engine *engine, values, Waiter &waiter, bint has_waited, bint is_pushed_later) except? -100:
    cdef Slice slice
    cdef Values found
    cdef int64_t offset = 0
    cdef int64_t size_bytes = 0
    cdef int64_t i
    if PyBytes_CheckExact(values):
        slice.data = <const uint8_t *>PyBytes_AS_STRING(values)
        slice.size = PyBytes_GET_SIZE(values)
        if not has_waited and engine.append_gathering(&slice, 1, slice.size, waiter, is_pushed_later, &offset):
            return offset
        with nogil:
            offset = engine.append(&slice, 1, slice.size, waiter, has_waited, is_pushed_later)
        return offset
    found = Values(values)
    if found.count == 0:
        raise UsageError("there is no value to append")
    for i in range(found.count):
        size_bytes += found.slices[i].size
    if (
        has_waited
        or size_bytes > _SMALL_BYTES
        or not engine.append_gathering(found.slices, found.count, size_bytes, waiter, is_pushed_later, &offset)
    ):
        with nogil:
            offset = engine.append(found.slices, found.count, size_bytes, waiter, has_waited, is_pushed_later)
    return offset


cdef inline void _to_mail(Waiter &waiter, Mailbox box, object waiting) noexcept:
    """Have `waiting` told by the mailbox, which then lets go of the reference that is taken here."""
    waiter.box = box.box
    waiter.object = <void *><PyObject *>waiting
    Py_INCREF(waiting)


cdef class Callers(NodeEngine):
    """An engine that values are appended to."""

    def append_slot(self, values, Slot slot, bint has_waited=False, bint is_pushed_later=False):
        """Append; the slot is told the offset. The offset, or a negative verdict: then the slot is untouched.

        FROZEN holds back whatever is appended later, until `release_appends`, but for what `has_waited`. What
        `is_pushed_later` gathers in memory until `push`, or until something else has it written.
        """
        cdef Waiter waiter
        waiter.slot = slot.slot
        return _append(self.engine, values, waiter, has_waited, is_pushed_later)

    def append_mail(self, values, Mailbox box, object waiting, bint has_waited=False, bint is_pushed_later=False):
        """Append like append_slot, but post `waiting` to the mailbox with the offset."""
        cdef Waiter waiter
        cdef int64_t offset = -1
        _to_mail(waiter, box, waiting)
        try:
            offset = _append(self.engine, values, waiter, has_waited, is_pushed_later)
        finally:
            if offset < 0:
                Py_DECREF(waiting)
        return offset

    def append_all(self, list values, Mailbox box, list waiting, bint have_waited=False):
        """Append values, each a bytes and by itself, in one critical section, and write and send them; waiting[i] comes into
        the mailbox with the offset of values[i]. Of each its offset or a verdict, as append_slot's.
        """
        cdef vector[Slice] slices
        cdef vector[Waiter] waiters
        cdef Py_ssize_t i
        _to_slices(values, waiting, slices)
        waiters.resize(slices.size())
        for i in range(<Py_ssize_t>slices.size()):
            _to_mail(waiters[i], box, waiting[i])
        offsets = _append_all(self.engine, slices, waiters, have_waited)
        for i in range(<Py_ssize_t>slices.size()):
            if offsets[i] < 0:
                Py_DECREF(waiting[i])
        return offsets

    def append_slots(self, list values, list slots, bint have_waited=False):
        """Append like append_all, and set slots[i] to the offset of values[i]."""
        cdef vector[Slice] slices
        cdef vector[Waiter] waiters
        cdef Slot slot
        cdef Py_ssize_t i
        _to_slices(values, slots, slices)
        waiters.resize(slices.size())
        for i in range(<Py_ssize_t>slices.size()):
            slot = slots[i]
            waiters[i].slot = slot.slot
        return _append_all(self.engine, slices, waiters, have_waited)

    def append_encoded(
        self,
        batch,
        int64_t record_count,
        int64_t timestamp_ms,
        Mailbox box,
        object waiting,
        bint has_waited=False,
        bint admits_new=False,
    ):
        """A client's batch, a bytearray that the caller has checked: stamped here. Of one that its producer has in the log
        already, the offset it has. NOT_NEXT also of a producer of which nothing is known, unless it `admits_new`."""
        cdef Waiter waiter
        cdef int64_t offset = -1
        cdef Py_buffer view
        PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
        _to_mail(waiter, box, waiting)
        try:
            assert view.len >= core.header_bytes, "a batch has a header"
            with nogil:
                offset = self.engine.append_encoded(
                    <uint8_t *>view.buf, view.len, record_count, timestamp_ms, waiter, has_waited, admits_new
                )
        finally:
            PyBuffer_Release(&view)
            if offset < 0:
                Py_DECREF(waiting)
        return offset

    def await_commit(self, int64_t base_offset, int64_t end_offset, Mailbox box, object waiting):
        """`waiting` comes into the mailbox with base_offset when the log is committed up to end_offset. The base offset, or a
        verdict."""
        cdef Waiter waiter
        cdef int64_t offset
        _to_mail(waiter, box, waiting)
        with nogil:
            offset = self.engine.await_commit(base_offset, end_offset, waiter)
        if offset < 0:
            Py_DECREF(waiting)
        return offset

    def push(self):
        """Write and send what was appended to be pushed later."""
        with nogil:
            self.engine.push()

    def push_soon(self):
        """Have the native thread do that."""
        with nogil:
            self.engine.push_soon()

    def hold_appends(self):
        """Whatever is appended later waits, until `release_appends`: one that was told FROZEN is queued now."""
        with nogil:
            self.engine.hold_appends()

    def release_appends(self):
        """None waits for raft/'s decision any more."""
        with nogil:
            self.engine.release_appends()

    def barrier_slot(self, Slot slot):
        cdef Waiter waiter
        cdef int64_t number
        waiter.slot = slot.slot
        with nogil:
            number = self.engine.begin_barrier(waiter)
        return number

    def barrier_mail(self, Mailbox box, object waiting):
        cdef Waiter waiter
        cdef int64_t number
        _to_mail(waiter, box, waiting)
        with nogil:
            number = self.engine.begin_barrier(waiter)
        if number < 0:
            Py_DECREF(waiting)
        return number

    def fail_pending(self, int64_t code):
        """Everybody who waits for a commit is told this negative number."""
        with nogil:
            self.engine.fail_pending(code)

    def set_barrier_failure(self, int64_t code):
        with nogil:
            self.engine.set_barrier_failure(code)

    def watch_commit(self):
        """There is news when the high watermark moves next. The one of the moment."""
        cdef int64_t now
        with nogil:
            now = self.engine.watch_commit()
        return now

    def waiting(self):
        """(records, bytes) that wait for their commit."""
        cdef int64_t records = 0
        cdef int64_t size_bytes = 0
        with nogil:
            self.engine.waiting(&records, &size_bytes)
        return records, size_bytes
