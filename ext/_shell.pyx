"""The native shell of the lane: its lock, its two threads, its sockets. `node/io/native/shell.py` drives it.

Every call that takes the lane lock lets go of the GIL first, but for one that never waits: an append that only gathers in
memory, tried if the lock is free.
"""

import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

cimport cython
from cython.operator cimport dereference

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._beats cimport SteadyBeats
from fastquorum.kernels.native._index cimport OffsetIndex
from fastquorum.kernels.native._lane cimport (
    Admission,
    FollowerTerms,
    LeaderTerms,
    Mode,
    Span,
    State,
    from_state,
    to_admission,
    to_follower_terms,
    to_identity,
    to_leader_terms,
)
from fastquorum.kernels.native._produce cimport ProduceDoor
from fastquorum.kernels.native._producers cimport Producers
from fastquorum.kernels.native._segment cimport SegmentFile
from fastquorum.kernels.native._stages cimport Group, Histogram, ToldRange, check_capacity, from_groups, from_histograms
from fastquorum.kernels.native._values cimport Values
from fastquorum.kernels.native._waiters cimport Mailbox, Slot, Waiter
from fastquorum.kernels.native.core cimport BatchHeader, Fault, FileRef, Slice

from fastquorum.errors import UsageError
from fastquorum.kernels.lane import LaneMode
from fastquorum.kernels.loan import LoanState
from fastquorum.kernels.shell import ACTIONS

cdef tuple _MODES = (LaneMode.CLOSED, LaneMode.LEADER, LaneMode.FOLLOWER)
_FAILURES = ("", "write", "sync", "read", "memory")
cdef int64_t _SMALL_BYTES = 4096  # copied with the GIL held; beyond it is let go of


def plant_mutation(int number):
    """Break a rule, in every shell of this process; 0: break none. For tests, in builds that have it."""
    if number and not has_mutants:
        raise UsageError("this build has no mutants", "make the checked one")
    plant(number)


def arm_failpoint(str name, str action, int amount, int64_t only_hit):
    """Have a native failpoint or schedule hook act; False if there is none of this name here.

    `amount`: of sleep the milliseconds, of yield the seed. `only_hit`: the n-th pass only; 0: every one.
    """
    return bool(arm(name.encode(), ACTIONS.index(action), amount, only_hit))


cdef int _to_slices(list values, list waiting, vector[Slice] &slices) except -1:
    cdef Py_ssize_t i
    if len(waiting) != len(values):
        raise ValueError(f"{len(values)} values, and {len(waiting)} who wait for them")
    slices.resize(len(values))
    for i in range(len(values)):
        if not PyBytes_CheckExact(values[i]):
            raise TypeError("a value that is no bytes")
        slices[i].data = <const uint8_t *>PyBytes_AS_STRING(values[i])
        slices[i].size = PyBytes_GET_SIZE(values[i])
    return 0


@cython.final
cdef class Shell:
    """See the module, and ext/core/node/engine.h for who owns what."""

    cdef CppShell *_shell

    def __cinit__(self, identity, int64_t batch_bytes_max, *, int64_t frame_bytes_max, int64_t records_max, int64_t bytes_max,
                  int64_t busy_poll_us=0, int64_t alone_us_max=0):
        cdef Limits limits
        cdef int error
        if not core.header_bytes < batch_bytes_max <= core.batch_size_max:
            raise UsageError(
                f"batch_bytes_max {batch_bytes_max} lies outside {core.header_bytes + 1}..{core.batch_size_max}"
            )
        limits.frame_bytes_max = frame_bytes_max
        limits.records_max = records_max
        limits.bytes_max = bytes_max
        limits.busy_poll_us = busy_poll_us
        limits.alone_us_max = alone_us_max
        self._shell = new CppShell(to_identity(identity), batch_bytes_max, limits)
        error = self._shell.start()
        if error:
            raise OSError(error, os.strerror(error), "the node's native threads")

    def __dealloc__(self):
        # In a forked child the threads are not there to be joined, and the lock may be held for ever: leave all of it alone.
        if self._shell != NULL and self._shell.is_in_own_process():
            with nogil:
                self._shell.end_threads()
            del self._shell

    def end_threads(self):
        """Finish the sync under way, end both threads, close what is open. Idempotent."""
        if self._shell.is_in_own_process():
            with nogil:
                self._shell.end_threads()

    def before_fork(self):
        """Hold everything still, so that the child finds it whole. `after_fork` follows in the parent."""
        with nogil:
            self._shell.before_fork()

    def after_fork(self):
        self._shell.after_fork()

    def abandon_in_child(self):
        """After fork, in the child: let go of the descriptors."""
        self._shell.abandon_in_child()

    def fileno(self):
        """Readable when there is news."""
        return self._shell.news_descriptor()

    # --- looked at from any thread ------------------------------------------------------------------------------------

    @property
    def high_watermark(self):
        return self._shell.high_watermark()

    @property
    def appended_us(self):
        return self._shell.appended_us()

    @property
    def has_failed(self):
        """A sync has failed, or the log cut the lane off: nothing leaves any more."""
        return bool(self._shell.has_failed())

    @property
    def flush_began_us(self):
        """When the sync under way began; -1: none is."""
        return self._shell.flush_began_us()

    def watch_flush_again(self, int64_t from_us):
        self._shell.watch_flush_again(from_us)

    cdef Standing _standing(self):
        cdef Standing standing
        with nogil:
            standing = self._shell.standing()
        return standing

    @property
    def mode(self):
        return _MODES[<int>self._standing().mode]

    @property
    def is_frozen(self):
        return bool(self._standing().is_frozen)

    @property
    def end_offset(self):
        return self._standing().end_offset

    @property
    def flushed_end(self):
        return self._standing().flushed_end

    @property
    def is_flushing(self):
        return bool(self._standing().is_flushing)

    # --- the log's owner ----------------------------------------------------------------------------------------------

    def lend(self, state, segments, int64_t segment_bytes, zeros, Producers producers not None):
        """`state` is a LoanState, `segments` are (base offset, SegmentFile, OffsetIndex, size in bytes), `zeros` a Zeros."""
        cdef Loan loan
        cdef SegmentRef ref
        cdef SegmentFile file
        cdef OffsetIndex index
        for base_offset, file, index, size_bytes in segments:
            ref.base_offset = base_offset
            ref.file = file.file
            ref.index = index.index
            ref.size_bytes = size_bytes
            loan.segments.push_back(ref)
        loan.segment_bytes = segment_bytes
        loan.zeros_least, loan.zeros_step = zeros
        loan.producers = producers.producers
        loan.start_offset = state.start_offset
        loan.end_offset = state.end_offset
        loan.flushed.offset, loan.flushed.segment_base, loan.flushed.position = state.flushed
        loan.generation = state.generation
        loan.last_epoch = state.last_epoch
        loan.prepared_bytes = state.prepared_bytes
        loan.max_timestamp_ms = state.max_timestamp_ms
        loan.is_flushing = state.ticket is not None
        if state.ticket is not None:
            token, generation, at = state.ticket
            loan.ticket.token = token
            loan.ticket.generation = generation
            loan.ticket.at.offset, loan.ticket.at.segment_base, loan.ticket.at.position = at
        loan.is_flush_wanted = state.is_flush_wanted
        loan.next_token = state.next_token
        with nogil:
            self._shell.lend(loan)

    def take_back(self):
        cdef Loan loan
        with nogil:
            loan = self._shell.take_back()
        return _from_loan(loan)

    def look(self):
        """The LoanState of the moment."""
        cdef Loan loan
        with nogil:
            loan = self._shell.look()
        return _from_loan(loan)

    def read_recent(self, int64_t offset, int64_t bytes_max):
        """Whole batches from the one that contains `offset`, at least one; None if they are not in memory."""
        cdef vector[uint8_t] copy
        cdef bint found
        with nogil:
            found = self._shell.read_recent(offset, bytes_max, &copy)
        return core.bytes_of(copy) if found else None

    def prepare(self, int64_t end):
        """Zeros in front of the writer up to `end` of the active segment; where they end now."""
        cdef int64_t prepared
        with nogil:
            prepared = self._shell.prepare(end)
        return prepared

    def submit(self, int64_t token, files):
        """Have these files synced, in order; an event, or the lane, is told."""
        cdef vector[FileRef] refs
        cdef SegmentFile file
        for file in files:
            # A closed file is reported like any other that cannot be synced.
            refs.push_back(core.make_file(-1) if file.file.get() == NULL else file.file)
        with nogil:
            self._shell.submit(token, refs)

    def synced(self, int64_t token, int error, int64_t now_us):
        """A sync whose end came as an event, and is the lane's to count."""
        with nogil:
            self._shell.synced(token, error, now_us)

    def failure(self):
        """(operation, errno, offset) of what cut the lane off; operation "" if nothing did."""
        cdef int error = 0
        cdef int64_t offset = -1
        cdef Failure failure
        with nogil:
            failure = self._shell.failure(&error, &offset)
        return _FAILURES[<int>failure], error, offset

    def hold_syncs(self, bint hold):
        """Have the disk not answer, for tests."""
        with nogil:
            self._shell.hold_syncs(hold)

    def refuse_appends(self, bint refuse):
        with nogil:
            self._shell.refuse_appends(refuse)

    @property
    def room_wanted(self):
        """Bytes and records that there is no room for at the log's end; None: there is, or it was looked for."""
        cdef Room wanted
        with nogil:
            wanted = self._shell.room_wanted()
        return (wanted.size_bytes, wanted.record_count) if wanted.size_bytes else None

    def room_sought(self):
        with nogil:
            self._shell.room_sought()

    def take_given_up(self):
        """Python took no news for so long that this lead was given up: True once, and then it is to resign."""
        return bool(self._shell.take_given_up())

    @property
    def was_cut_off(self):
        cdef bint cut
        with nogil:
            cut = self._shell.was_cut_off()
        return cut

    # --- raft's side --------------------------------------------------------------------------------------------------

    def open_leader(self, terms, int64_t now_us):
        cdef LeaderTerms made = to_leader_terms(terms)
        cdef bint may
        with nogil:
            may = self._shell.may_lead(made)
        assert may, "rule 1: the lane is open, or the LeaderChangeMessage is not in the log"
        with nogil:
            self._shell.open_leader(made, now_us)

    def open_follower(self, terms, int64_t now_us):
        cdef FollowerTerms made = to_follower_terms(terms)
        cdef bint may
        with nogil:
            may = self._shell.may_follow(made)
        assert may, "a lane is closed before it is opened on other terms"
        with nogil:
            self._shell.open_follower(made, now_us)

    def attach_leader(self, int64_t connection, int api_version, int64_t now_us):
        with nogil:
            self._shell.attach_leader(connection, api_version, now_us)

    def detach(self, int64_t connection):
        with nogil:
            self._shell.detach(connection)

    def admit(self, fetch, int64_t now_us):
        cdef Admission made = to_admission(fetch)
        assert 12 <= made.api_version <= 18, f"Fetch {made.api_version} has no last fetched epoch"
        with nogil:
            self._shell.admit(made, now_us)

    def freeze(self):
        cdef State state
        with nogil:
            state = self._shell.freeze()
        return from_state(state)

    def resume(self, int64_t now_us):
        with nogil:
            self._shell.resume(now_us)

    def close(self):
        cdef State state
        with nogil:
            state = self._shell.close()
        return from_state(state)

    def state(self):
        cdef State state
        with nogil:
            state = self._shell.state()
        return from_state(state)

    def offer(self, int64_t connection, frame, int64_t now_us):
        """False: the log's end has no room for it; that first, and then again."""
        cdef Span span
        cdef Py_buffer view
        cdef bint taken
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            span.data = <const uint8_t *>view.buf
            span.size = view.len
            with nogil:
                taken = self._shell.offer(connection, span, now_us)
        finally:
            PyBuffer_Release(&view)
        return taken

    def latch(self):
        """Nothing is sent or accepted any more (rule 5)."""
        with nogil:
            self._shell.latch()

    def stop(self):
        with nogil:
            self._shell.stop()

    def advance(self, int64_t high_watermark):
        with nogil:
            self._shell.advance(high_watermark)

    def take_news(self):
        """(handed up, events, unparked) since the last call: frames are (connection, bytes); events are (kind, connection,
        frame, token, errno). Those that the quorum lives by come first, all of them; then some of the others', and if there are
        more, `fileno` is readable again."""
        cdef News news
        cdef size_t i
        with nogil:
            news = self._shell.take_news()
        handed_up, events, unparked = [], [], []
        for i in range(news.handed_up.size()):
            handed_up.append((news.handed_up[i].connection, self._frame(news.handed_up[i].connection, news.handed_up[i].frame)))
        for i in range(news.events.size()):
            events.append(
                (
                    <int>news.events[i].kind,
                    news.events[i].connection,
                    self._frame(news.events[i].connection, news.events[i].frame),
                    news.events[i].token,
                    news.events[i].error,
                )
            )
        for i in range(news.unparked.size()):
            unparked.append((news.unparked[i].connection, news.unparked[i].correlation_id, news.unparked[i].api_version))
        return handed_up, events, unparked

    cdef bytes _frame(self, int64_t connection, const vector[uint8_t] &frame):
        """A frame for which there is no memory costs its connection: nothing of it, which is no request, is there then."""
        try:
            return core.bytes_of(frame)
        except MemoryError:
            with nogil:
                self._shell.break_off(connection)
            return b""

    def frames_done(self, list frames):
        """These frames that were taken, each (connection, bytes), are dealt with."""
        cdef vector[DoneFrame] done
        cdef DoneFrame each
        done.reserve(len(frames))
        for each.connection, each.size in frames:
            done.push_back(each)
        with nogil:
            self._shell.frames_done(done)

    def rouse(self):
        """Have `fileno` readable."""
        with nogil:
            self._shell.rouse_python()

    # --- callers ------------------------------------------------------------------------------------------------------

    def append_slot(self, values, Slot slot, bint has_waited=False, bint is_pushed_later=False):
        """Append; the slot is told the offset. The offset, or a negative verdict: then the slot is untouched.

        FROZEN holds back whatever is appended later, until `release_appends`, but for what `has_waited`. What
        `is_pushed_later` gathers in memory until `push`, or until something else has it written.
        """
        cdef Waiter waiter
        waiter.slot = slot.slot
        return self._append(values, waiter, has_waited, is_pushed_later)

    def append_mail(self, values, Mailbox box, object waiting, bint has_waited=False, bint is_pushed_later=False):
        """As append_slot; `waiting` comes into the mailbox with the offset."""
        cdef Waiter waiter
        cdef int64_t offset
        waiter.box = box.box
        waiter.object = <void *><PyObject *>waiting
        Py_INCREF(waiting)
        offset = -1
        try:
            offset = self._append(values, waiter, has_waited, is_pushed_later)
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
            waiters[i].box = box.box
            waiters[i].object = <void *><PyObject *>waiting[i]
            Py_INCREF(waiting[i])
        offsets = self._append_all(slices, waiters, have_waited)
        for i in range(<Py_ssize_t>slices.size()):
            if offsets[i] < 0:
                Py_DECREF(waiting[i])
        return offsets

    def append_slots(self, list values, list slots, bint have_waited=False):
        """As append_all; slots[i] is told the offset of values[i]."""
        cdef vector[Slice] slices
        cdef vector[Waiter] waiters
        cdef Slot slot
        cdef Py_ssize_t i
        _to_slices(values, slots, slices)
        waiters.resize(slices.size())
        for i in range(<Py_ssize_t>slices.size()):
            slot = slots[i]
            waiters[i].slot = slot.slot
        return self._append_all(slices, waiters, have_waited)

    cdef list _append_all(self, vector[Slice] &slices, vector[Waiter] &waiters, bint have_waited):
        cdef vector[int64_t] offsets
        cdef size_t i
        offsets.resize(slices.size())
        with nogil:
            self._shell.append_all(slices.data(), slices.size(), waiters.data(), have_waited, offsets.data())
        found = []
        for i in range(offsets.size()):
            found.append(offsets[i])
        return found

    cdef int64_t _append(self, values, Waiter &waiter, bint has_waited, bint is_pushed_later) except? -100:
        cdef Slice slice
        cdef Values found
        cdef int64_t offset = 0
        cdef int64_t size_bytes = 0
        cdef int64_t i
        if PyBytes_CheckExact(values):
            slice.data = <const uint8_t *>PyBytes_AS_STRING(values)
            slice.size = PyBytes_GET_SIZE(values)
            if not has_waited and self._shell.append_gathering(&slice, 1, slice.size, waiter, is_pushed_later, &offset):
                return offset
            with nogil:
                offset = self._shell.append(&slice, 1, slice.size, waiter, has_waited, is_pushed_later)
            return offset
        found = Values(values)
        if found.count == 0:
            raise UsageError("there is no value to append")
        for i in range(found.count):
            size_bytes += found.slices[i].size
        if (
            has_waited
            or size_bytes > _SMALL_BYTES
            or not self._shell.append_gathering(found.slices, found.count, size_bytes, waiter, is_pushed_later, &offset)
        ):
            with nogil:
                offset = self._shell.append(found.slices, found.count, size_bytes, waiter, has_waited, is_pushed_later)
        return offset

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
        waiter.box = box.box
        waiter.object = <void *><PyObject *>waiting
        PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
        Py_INCREF(waiting)
        try:
            assert view.len >= core.header_bytes, "a batch has a header"
            with nogil:
                offset = self._shell.append_encoded(
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
        waiter.box = box.box
        waiter.object = <void *><PyObject *>waiting
        Py_INCREF(waiting)
        with nogil:
            offset = self._shell.await_commit(base_offset, end_offset, waiter)
        if offset < 0:
            Py_DECREF(waiting)
        return offset

    def push(self):
        """Write and send what was appended to be pushed later."""
        with nogil:
            self._shell.push()

    def push_soon(self):
        """Have the native thread do that."""
        with nogil:
            self._shell.push_soon()

    def hold_appends(self):
        """Whatever is appended later waits, until `release_appends`: one that was told FROZEN is queued now."""
        with nogil:
            self._shell.hold_appends()

    def release_appends(self):
        """None waits for raft/'s decision any more."""
        with nogil:
            self._shell.release_appends()

    def barrier_slot(self, Slot slot):
        cdef Waiter waiter
        cdef int64_t number
        waiter.slot = slot.slot
        with nogil:
            number = self._shell.begin_barrier(waiter)
        return number

    def barrier_mail(self, Mailbox box, object waiting):
        cdef Waiter waiter
        cdef int64_t number
        waiter.box = box.box
        waiter.object = <void *><PyObject *>waiting
        Py_INCREF(waiting)
        with nogil:
            number = self._shell.begin_barrier(waiter)
        if number < 0:
            Py_DECREF(waiting)
        return number

    def fail_pending(self, int64_t code):
        """Everybody who waits for a commit is told this negative number."""
        with nogil:
            self._shell.fail_pending(code)

    def set_barrier_failure(self, int64_t code):
        with nogil:
            self._shell.set_barrier_failure(code)

    def watch_commit(self):
        """There is news when the high watermark moves next. The one of the moment."""
        cdef int64_t now
        with nogil:
            now = self._shell.watch_commit()
        return now

    def waiting(self):
        """(records, bytes) that wait for their commit."""
        cdef int64_t records = 0
        cdef int64_t size_bytes = 0
        with nogil:
            self._shell.waiting(&records, &size_bytes)
        return records, size_bytes

    # --- producers' connections ---------------------------------------------------------------------------------------

    def serve_produce(self, ProduceDoor door not None):
        """Have Produce requests of the plain shape served without Python."""
        with nogil:
            self._shell.serve_produce(door.service)

    def serve_beats(self, SteadyBeats beats not None, int64_t confirmed_us_max):
        """Have the heartbeats that are kept there answered without Python, while this node leads and is confirmed."""
        with nogil:
            self._shell.serve_beats(beats.beats, confirmed_us_max)

    def is_confirmed(self, int64_t within_us):
        """A majority surely followed this lead at some time in the last `within_us`, by the clock of now."""
        cdef cbool confirmed
        with nogil:
            confirmed = self._shell.is_confirmed(within_us)
        return bool(confirmed)

    def await_observers(self, ids, int64_t offset):
        """See `Lane.await_observers`; there is news when none of them is left."""
        cdef vector[int32_t] wanted = ids
        cdef cbool are_awaited
        with nogil:
            are_awaited = self._shell.await_observers(wanted, offset)
        return bool(are_awaited)

    @property
    def are_observers_awaited(self):
        return bool(self._shell.are_observers_awaited())

    def settled(self, int64_t connection, int64_t frames):
        """So many frames of this connection have come as events, and no answer to any is owed any more."""
        with nogil:
            self._shell.settled(connection, frames)

    # --- what it takes: see kernels.stages ----------------------------------------------------------------------------

    def stage_histograms(self):
        cdef vector[Histogram] found
        with nogil:
            found = self._shell.stage_histograms()
        return from_histograms(found)

    def trace_start(self, int64_t capacity):
        check_capacity(capacity)
        with nogil:
            self._shell.trace_start(<size_t>capacity)

    def trace_stop(self):
        with nogil:
            self._shell.trace_stop()

    def trace_read(self):
        cdef vector[Group] groups
        cdef vector[ToldRange] ranges
        cdef int64_t lost
        with nogil:
            lost = self._shell.trace_read(&groups, &ranges)
        return from_groups(groups, ranges, lost)

    # --- connections --------------------------------------------------------------------------------------------------

    def connection_count(self):
        cdef int64_t count
        with nogil:
            count = self._shell.connection_count()
        return count

    def add(self, int64_t number, int descriptor, bint is_accepted, int64_t now_us):
        """Take over a non-blocking socket's descriptor; 0, or an errno, and it stays the caller's."""
        cdef int error
        with nogil:
            error = self._shell.add(number, descriptor, is_accepted, now_us)
        return error

    def knows(self, int64_t connection):
        cdef bint known
        with nogil:
            known = self._shell.knows(connection)
        return known

    def is_broken(self, int64_t connection):
        cdef bint broken
        with nogil:
            broken = self._shell.is_broken(connection)
        return broken

    def needs_drain(self, int64_t connection):
        """Is it owed so much that no more answers are to be made for it? Then an event says when that has changed."""
        cdef bint needs
        with nogil:
            needs = self._shell.needs_drain(connection)
        return needs

    def is_crowded(self):
        """Is much owed to all connections together?"""
        cdef bint crowded
        with nogil:
            crowded = self._shell.is_crowded()
        return crowded

    def favour(self, int64_t connection):
        """It is a voter's: it is read from and sent to whatever is kept for others, and before them."""
        with nogil:
            self._shell.favour(connection)

    def is_accepted(self, int64_t connection):
        cdef bint accepted
        with nogil:
            accepted = self._shell.is_accepted(connection)
        return accepted

    def send(self, int64_t connection, frame):
        cdef Span span
        cdef Py_buffer view
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            span.data = <const uint8_t *>view.buf
            span.size = view.len
            with nogil:
                self._shell.send_frame(connection, span)
        finally:
            PyBuffer_Release(&view)

    def close_connection(self, int64_t connection):
        with nogil:
            self._shell.close_connection(connection)

    def break_off(self, int64_t connection):
        with nogil:
            self._shell.break_off(connection)

    def close_all(self, int64_t now_us):
        with nogil:
            self._shell.close_all(now_us)

    def overdue(self, int64_t now_us, *, int64_t partial_us_max, int64_t idle_us_max, int64_t connect_us_max):
        cdef vector[int64_t] found
        with nogil:
            found = self._shell.overdue(now_us, partial_us_max, idle_us_max, connect_us_max)
        return [found[i] for i in range(found.size())]

    def oldest_silent(self, int64_t now_us, int64_t silent_us_min):
        cdef int64_t found
        with nogil:
            found = self._shell.oldest_silent(now_us, silent_us_min)
        return found


cdef object _from_loan(const Loan &loan):
    assert loan.segments.size() > 0, "no log was ever lent"
    cdef size_t last = loan.segments.size() - 1
    return LoanState(
        start_offset=loan.start_offset,
        end_offset=loan.end_offset,
        size_bytes=loan.segments[last].size_bytes,
        prepared_bytes=loan.prepared_bytes,
        max_timestamp_ms=loan.max_timestamp_ms,
        flushed=(loan.flushed.offset, loan.flushed.segment_base, loan.flushed.position),
        generation=loan.generation,
        last_epoch=loan.last_epoch,
        ticket=(
            loan.ticket.token,
            loan.ticket.generation,
            (loan.ticket.at.offset, loan.ticket.at.segment_base, loan.ticket.at.position),
        ) if loan.is_flushing else None,
        is_flush_wanted=bool(loan.is_flush_wanted),
        next_token=loan.next_token,
    )
