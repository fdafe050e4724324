"""The native shell of the lane: its lock, its two threads, its sockets. `node/io/native/shell.py` drives it.

Every call that takes the lane lock lets go of the GIL first. What the replica's thread does with it is here, what callers
do in `_callers`, and connections in `_engine`.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._callers cimport Callers
from fastquorum.kernels.native._engine cimport (
    DoneFrame,
    Failure,
    Loan,
    News,
    Room,
    SegmentRef,
    arm_point,
    plant_mutation as _plant,
)
from fastquorum.kernels.native._index cimport OffsetIndex
from fastquorum.kernels.native._lane cimport (
    Admission,
    FollowerSession,
    LeaderSession,
    Span,
    State,
    from_state,
    to_admission,
    to_follower_session,
    to_leader_session,
)
from fastquorum.kernels.native._producers cimport Producers
from fastquorum.kernels.native._segment cimport SegmentFile
from fastquorum.kernels.native.core cimport FileRef

from fastquorum.errors import UsageError
from fastquorum.kernels.codes import ACTIONS, FAILURES
from fastquorum.kernels.loan import LoanState


def plant_mutation(int number):
    """Break a rule, in every shell of this process; 0: break none. For tests, in builds that have it."""
    if not _plant(number):
        raise UsageError("this build has no mutants", "make the checked one")


def arm_failpoint(str name, str action, int amount, int64_t only_hit):
    """Have a native failpoint or schedule hook act; False if there is none of this name here.

    `amount`: of sleep the milliseconds, of yield the seed. `only_hit`: the n-th pass only; 0: every one.
    """
    return bool(arm_point(name.encode(), ACTIONS.index(action), amount, only_hit))


@cython.final
cdef class Shell(Callers):
    """An engine that a replica drives, as the owner of the log and as raft/."""

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
            self.engine.lend(loan)

    def take_back(self):
        cdef Loan loan
        with nogil:
            loan = self.engine.take_back()
        return _from_loan(loan)

    def look(self):
        """The LoanState of the moment."""
        cdef Loan loan
        with nogil:
            loan = self.engine.look()
        return _from_loan(loan)

    def read_recent(self, int64_t offset, int64_t bytes_max):
        """Whole batches from the one that contains `offset`, at least one; None if they are not in memory."""
        cdef vector[uint8_t] copy
        cdef bint found
        with nogil:
            found = self.engine.read_recent(offset, bytes_max, &copy)
        return core.bytes_of(copy) if found else None

    def prepare(self, int64_t end):
        """Zeros in front of the writer up to `end` of the active segment; where they end now."""
        cdef int64_t prepared
        with nogil:
            prepared = self.engine.prepare(end)
        return prepared

    def submit(self, int64_t token, files):
        """Have these files synced, in order; an event, or the lane, is told."""
        cdef vector[FileRef] refs
        cdef SegmentFile file
        for file in files:
            # A closed file is reported like any other that cannot be synced.
            refs.push_back(core.make_file(-1) if file.file.get() == NULL else file.file)
        with nogil:
            self.engine.submit(token, refs)

    def synced(self, int64_t token, int error, int64_t now_us):
        """A sync whose end came as an event, and is the lane's to count."""
        with nogil:
            self.engine.synced(token, error, now_us)

    def failure(self):
        """(operation, errno, offset) of what cut the lane off; operation "" if nothing did."""
        cdef int error = 0
        cdef int64_t offset = -1
        cdef Failure failure
        with nogil:
            failure = self.engine.failure(&error, &offset)
        return FAILURES[<int>failure] if <int>failure else "", error, offset

    def hold_syncs(self, bint hold):
        """Have the disk not answer, for tests."""
        with nogil:
            self.engine.hold_syncs(hold)

    def refuse_appends(self, bint refuse):
        with nogil:
            self.engine.refuse_appends(refuse)

    @property
    def room_wanted(self):
        """Bytes and records that there is no room for at the log's end; None: there is, or it was looked for."""
        cdef Room wanted
        with nogil:
            wanted = self.engine.room_wanted()
        return (wanted.size_bytes, wanted.record_count) if wanted.size_bytes else None

    def room_sought(self):
        with nogil:
            self.engine.room_sought()

    def take_given_up(self):
        """Python took no news for so long that this lead was given up: True once, and then it is to resign."""
        return bool(self.engine.take_given_up())

    @property
    def was_cut_off(self):
        cdef bint cut
        with nogil:
            cut = self.engine.was_cut_off()
        return cut

    # --- raft's side --------------------------------------------------------------------------------------------------

    def open_leader(self, session, int64_t now_us):
        cdef LeaderSession made = to_leader_session(session)
        cdef bint may
        with nogil:
            may = self.engine.may_lead(made)
        assert may, "rule 1: the lane is open, or the LeaderChangeMessage is not in the log"
        with nogil:
            self.engine.open_leader(made, now_us)

    def open_follower(self, session, int64_t now_us):
        cdef FollowerSession made = to_follower_session(session)
        cdef bint may
        with nogil:
            may = self.engine.may_follow(made)
        assert may, "a lane is closed before it is opened for another session"
        with nogil:
            self.engine.open_follower(made, now_us)

    def attach_leader(self, int64_t connection, int api_version, int64_t now_us):
        with nogil:
            self.engine.attach_leader(connection, api_version, now_us)

    def detach(self, int64_t connection):
        with nogil:
            self.engine.detach(connection)

    def admit(self, fetch, int64_t now_us):
        cdef Admission made = to_admission(fetch)
        assert 12 <= made.api_version <= 18, f"Fetch {made.api_version} has no last fetched epoch"
        with nogil:
            self.engine.admit(made, now_us)

    def freeze(self):
        cdef State state
        with nogil:
            state = self.engine.freeze()
        return from_state(state)

    def resume(self, int64_t now_us):
        with nogil:
            self.engine.resume(now_us)

    def close(self):
        cdef State state
        with nogil:
            state = self.engine.close()
        return from_state(state)

    def state(self):
        cdef State state
        with nogil:
            state = self.engine.state()
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
                taken = self.engine.offer(connection, span, now_us)
        finally:
            PyBuffer_Release(&view)
        return taken

    def latch(self):
        """Nothing is sent or accepted any more (rule 5)."""
        with nogil:
            self.engine.latch()

    def stop(self):
        with nogil:
            self.engine.stop()

    def advance(self, int64_t high_watermark):
        with nogil:
            self.engine.advance(high_watermark)

    def take_news(self):
        """(handed up, events, unparked) since the last call: frames are (connection, bytes); events are (kind, connection,
        frame, token, errno). Those that the quorum lives by come first, all of them; then some of the others', and if there are
        more, `fileno` is readable again."""
        cdef News news
        cdef size_t i
        with nogil:
            news = self.engine.take_news()
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
                self.engine.break_off(connection)
            return b""

    def frames_done(self, list frames):
        """These frames that were taken, each (connection, bytes), are dealt with."""
        cdef vector[DoneFrame] done
        cdef DoneFrame each
        done.reserve(len(frames))
        for each.connection, each.size in frames:
            done.push_back(each)
        with nogil:
            self.engine.frames_done(done)

    def rouse(self):
        """Have `fileno` readable."""
        with nogil:
            self.engine.rouse_python()


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
