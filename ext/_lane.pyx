"""The native lane over anybody's log: what tests and the simulator run. The node's own thread runs the same lane over the
log's files (`_reactor`).

Every call is made under the shell's lane lock, and with the GIL held, as the log underneath is Python's. What the log raises
cuts the call short and is raised from it.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native cimport core
from fastquorum.kernels.native._values cimport Values
from fastquorum.kernels.native.core cimport Fault
from fastquorum.kernels.native._faults cimport check_batch_bytes_max, raise_fault

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import (
    Advanced,
    BarrierDone,
    HandUp,
    LaneMode,
    LaneState,
    ObserversInformed,
    PeerState as PeerStateValue,
    Send,
    Unparked,
)
from fastquorum.types import ReplicaKey as ReplicaKeyValue
from fastquorum.types import Uuid as UuidValue

HAS_MUTANTS = has_mutants
"""Can breaches of the rules be planted in this build? In the checked one."""
_TEXT_MAX = 127
_HOST_MAX = 255
_MODES = (LaneMode.CLOSED, LaneMode.LEADER, LaneMode.FOLLOWER)
_NUMBERS = ("start_offset", "end_offset", "flushed_end", "generation", "last_epoch", "is_flushing")


def plant_mutation(int number):
    """Break a rule, in every lane of this process; 0: break none. For tests, in builds that have it."""
    if number and not has_mutants:
        raise UsageError("this build has no mutants", "make the checked one")
    plant(number)


# --- values in and out -----------------------------------------------------------------------------------------------------


cdef void _copy_uuid(object value, Uuid *uuid) except *:
    cdef bytes data = bytes(value)
    memcpy(uuid.bytes, PyBytes_AS_STRING(data), 16)


cdef ReplicaKey _to_key(object key) except *:
    cdef ReplicaKey made
    made.id = key.id
    _copy_uuid(key.directory_id, &made.directory_id)
    return made


cdef object _from_key(const ReplicaKey &key):
    return ReplicaKeyValue(key.id, UuidValue(PyBytes_FromStringAndSize(<const char *>key.directory_id.bytes, 16)))


cdef Identity to_identity(object identity) except *:
    cdef Identity made
    cdef bytes cluster_id = identity.cluster_id.encode()
    if len(cluster_id) >= _TEXT_MAX:
        raise UsageError(f"a cluster id of {len(cluster_id)} bytes is longer than {_TEXT_MAX - 1}")
    made.key = _to_key(identity.key)
    made.cluster_id = cluster_id
    _copy_uuid(identity.topic_id, &made.topic_id)
    return made


cdef LeaderSession to_leader_session(object session) except *:
    cdef LeaderSession made
    cdef bytes host
    made.epoch = session.epoch
    for voter in session.voters:
        made.voters.push_back(_to_key(voter))
    made.epoch_start = session.epoch_start
    made.high_watermark = session.high_watermark
    made.fetch_wait_us_max = session.timeouts.fetch_wait_us_max
    made.has_endpoint = session.endpoint is not None
    if session.endpoint is not None:
        host = session.endpoint.host.encode()
        if len(host) > _HOST_MAX:
            raise UsageError(f"a host name of {len(host)} bytes is longer than {_HOST_MAX}")
        made.host = host
        made.port = session.endpoint.port
    return made


cdef FollowerSession to_follower_session(object session) except *:
    cdef FollowerSession made
    made.epoch = session.epoch
    made.leader_id = session.leader_id
    made.high_watermark = session.high_watermark
    made.attempt = session.attempt
    made.fetch_bytes_max = session.fetch_bytes_max
    made.fetch_wait_us_max = session.fetch_wait_us_max
    return made


cdef Admission to_admission(object fetch) except *:
    cdef Admission made
    made.connection = fetch.connection
    made.correlation_id = fetch.correlation_id
    made.api_version = fetch.api_version
    made.peer = _to_key(fetch.peer)
    made.is_voter = fetch.is_voter
    made.fetch_offset = fetch.fetch_offset
    made.request_high_watermark = fetch.request_high_watermark
    made.max_wait_us = fetch.max_wait_us
    made.bytes_max = fetch.bytes_max
    return made


cdef object from_state(const State &state):
    cdef size_t i
    peers = []
    for i in range(state.peers.size()):
        peers.append(
            PeerStateValue(
                _from_key(state.peers[i].key),
                bool(state.peers[i].is_voter),
                state.peers[i].connection,
                state.peers[i].end_offset,
                state.peers[i].last_contact_us,
                state.peers[i].last_progress_us,
                state.peers[i].last_caught_up_us,
            )
        )
    return LaneState(
        _MODES[<int>state.mode],
        state.epoch,
        state.log_end,
        state.flushed_end,
        state.high_watermark,
        tuple(peers),
        state.leader_contact_us,
        state.fetch_sent_us,
        state.fetch_in_flight,
    )


# --- the lane --------------------------------------------------------------------------------------------------------------


@cython.final
cdef class Lane:
    """One replica's lane; see `fastquorum.kernels.lane.Lane`."""

    cdef unique_ptr[CalledLog] _ports_log
    cdef unique_ptr[CalledOutputs] _ports_out
    cdef unique_ptr[CppLane] _lane
    cdef object _log
    cdef object _frame
    cdef bytes _read
    cdef list _out
    cdef object _raised
    cdef int64_t _batch_bytes_max

    def __init__(self, identity, log, kernels, int64_t batch_bytes_max):
        cdef LogCalls log_calls
        cdef OutputCalls output_calls
        check_batch_bytes_max(batch_bytes_max)
        log_calls.number = _log_number
        log_calls.fits = _log_fits
        log_calls.append = _log_append
        log_calls.read = _log_read
        log_calls.request_flush = _log_request_flush
        output_calls.send = _out_send
        output_calls.hand_up = _out_hand_up
        output_calls.advanced = _out_advanced
        output_calls.barrier_done = _out_barrier_done
        output_calls.unparked = _out_unparked
        output_calls.observers_informed = _out_observers_informed
        self._log = log
        self._out = []
        self._batch_bytes_max = batch_bytes_max
        self._ports_log.reset(new CalledLog(<void *>self, log_calls))
        self._ports_out.reset(new CalledOutputs(<void *>self, output_calls))
        self._lane.reset(
            new CppLane(
                to_identity(identity),
                cython.operator.dereference(self._ports_log),
                cython.operator.dereference(self._ports_out),
                batch_bytes_max,
            )
        )

    @property
    def mode(self):
        return _MODES[<int>self._lane.get().mode()]

    @property
    def is_frozen(self):
        return bool(self._lane.get().is_frozen())

    @property
    def has_failed(self):
        return bool(self._lane.get().has_failed())

    @property
    def high_watermark(self):
        return self._lane.get().high_watermark()

    @property
    def deadline_us(self):
        return self._lane.get().deadline_us()

    @property
    def confirmed_us(self):
        return self._lane.get().confirmed_us()

    @property
    def gathered_bytes(self):
        return self._lane.get().gathered_bytes()

    cdef list _done(self):
        """What the call brought about, or what the log raised in it."""
        out, self._out = self._out, []
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        return out

    # --- raft's side --------------------------------------------------------------------------------------------------

    def open_leader(self, session, int64_t now_us):
        cdef LeaderSession made = to_leader_session(session)
        assert self._lane.get().mode() == Mode.closed, "a lane is closed before it is opened for another session"
        assert self._lane.get().may_lead(made), "rule 1: the LeaderChangeMessage is not in the log"
        self._lane.get().open_leader(made, now_us)
        return self._done()

    def open_follower(self, session, int64_t now_us):
        cdef FollowerSession made = to_follower_session(session)
        assert self._lane.get().mode() != Mode.leader, "a lane is closed before it is opened for another session"
        if self._lane.get().mode() == Mode.follower:
            assert self._lane.get().follows(made), "a lane is closed before it follows somebody else"
        self._lane.get().open_follower(made, now_us)
        return self._done()

    def attach_leader(self, int64_t connection, int api_version, int64_t now_us):
        self._lane.get().attach_leader(connection, api_version, now_us)
        return self._done()

    def detach(self, int64_t connection, int64_t now_us):
        self._lane.get().detach(connection)
        return self._done()

    def admit(self, fetch, int64_t now_us):
        cdef Admission made = to_admission(fetch)
        assert self._lane.get().mode() == Mode.leader, "only a leader admits Fetches"
        assert 12 <= made.api_version <= 18, f"Fetch {made.api_version} has no last fetched epoch"
        self._lane.get().admit(made, now_us)
        return self._done()

    def freeze(self, int64_t now_us):
        self._lane.get().freeze()
        self._done()
        return from_state(self._lane.get().state())

    def resume(self, int64_t now_us):
        self._lane.get().resume(now_us)
        return self._done()

    def close(self, int64_t now_us):
        cdef State state
        self._lane.get().close(&state)
        return from_state(state), self._done()

    # --- the shell's side ---------------------------------------------------------------------------------------------

    def on_frame(self, int64_t connection, frame, int64_t now_us):
        cdef Span span
        cdef Py_buffer view
        assert not self._lane.get().is_frozen(), "rule 2: frames wait until raft/ has decided"
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        span.data = <const uint8_t *>view.buf
        span.size = view.len
        self._frame = frame
        try:
            self._lane.get().on_frame(connection, span, now_us)
        finally:
            self._frame = None
            PyBuffer_Release(&view)
        return self._done()

    def on_flushed(self, int64_t generation, int64_t end, int64_t now_us):
        good = self._lane.get().on_flushed(generation, end, now_us)
        out = self._done()
        assert good, "rule 4: the log learns of a sync before the lane"
        return out

    def on_flush_failed(self):
        self._lane.get().on_flush_failed()

    def on_tick(self, int64_t now_us):
        self._lane.get().on_tick(now_us)
        return self._done()

    def await_observers(self, ids, int64_t offset):
        cdef vector[int32_t] wanted = ids
        return bool(self._lane.get().await_observers(wanted, offset))

    # --- the callers' side --------------------------------------------------------------------------------------------

    def append(self, values, int64_t timestamp_ms, int64_t now_us, bint gathers=False):
        cdef Values found = Values(values)
        cdef int64_t offset
        if found.count == 0:
            raise UsageError("there is no value to append")
        offset = self._lane.get().append(found.slices, found.count, timestamp_ms, now_us, gathers)
        if offset == verdict_too_large:
            raise RecordTooLarge(
                size_bytes=core.header_bytes + core.values_size(found.slices, found.count, 0),
                limit_bytes=self._batch_bytes_max,
            )
        return self._verdict(offset)

    def push(self, int64_t now_us):
        self._lane.get().push(now_us)
        return self._done()

    def append_encoded(self, batch, int64_t record_count, int64_t timestamp_ms, int64_t now_us):
        cdef Py_buffer view
        cdef int64_t offset, size
        PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE)
        try:
            size = view.len
            fault = core.framing_fault(<const uint8_t *>view.buf, size, 0)
            if fault == Fault.none and core.read_header(<const uint8_t *>view.buf).size_bytes != size:
                fault = Fault.length
            if fault != Fault.none:
                raise_fault(core.status_at(fault, <const uint8_t *>view.buf, size, 0))
            offset = self._lane.get().append_encoded(<uint8_t *>view.buf, size, record_count, timestamp_ms, now_us)
        finally:
            PyBuffer_Release(&view)
        if offset == verdict_too_large:
            raise RecordTooLarge(size_bytes=size, limit_bytes=self._batch_bytes_max)
        return self._verdict(offset)

    def begin_barrier(self, int64_t now_us):
        return self._verdict(self._lane.get().begin_barrier(now_us))

    cdef tuple _verdict(self, int64_t offset):
        out = self._done()
        return offset if offset >= 0 else AppendVerdict(offset), out


# --- the ports: called by the lane, with the GIL held ------------------------------------------------------------------------


cdef int64_t _log_number(void *self, int which) noexcept:
    cdef Lane lane = <Lane>self
    try:
        return getattr(lane._log, _NUMBERS[which])
    except BaseException as error:
        lane._raised = lane._raised or error
        return -1


cdef cbool _log_fits(void *self, int64_t size_bytes, int64_t record_count) noexcept:
    cdef Lane lane = <Lane>self
    try:
        return lane._log.fits(size_bytes, record_count)
    except BaseException as error:
        lane._raised = lane._raised or error
        return False


cdef cbool _log_append(void *self, const uint8_t *data, int64_t size, int64_t base_offset, int64_t next_offset,
                       int32_t epoch, int64_t timestamp_ms) noexcept:
    cdef Lane lane = <Lane>self
    try:
        lane._log.append_batch(
            PyBytes_FromStringAndSize(<const char *>data, size),
            base_offset=base_offset,
            next_offset=next_offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
        )
        return True
    except BaseException as error:
        lane._raised = lane._raised or error
        return False


cdef cbool _log_read(void *self, int64_t offset, int64_t bytes_max, const uint8_t **data, int64_t *size) noexcept:
    cdef Lane lane = <Lane>self
    try:
        lane._read = bytes(lane._log.read(offset, bytes_max))
        data[0] = <const uint8_t *>PyBytes_AS_STRING(lane._read)
        size[0] = PyBytes_GET_SIZE(lane._read)
        return True
    except BaseException as error:
        lane._raised = lane._raised or error
        return False


cdef cbool _log_request_flush(void *self) noexcept:
    cdef Lane lane = <Lane>self
    try:
        lane._log.request_flush()
        return True
    except BaseException as error:
        lane._raised = lane._raised or error
        return False


cdef void _out_send(void *self, int64_t connection, const Frame *frame) noexcept:
    cdef Lane lane = <Lane>self
    cdef bytes joined = PyBytes_FromStringAndSize(NULL, frame.size())
    cdef char *at = PyBytes_AS_STRING(joined)
    cdef int i
    for i in range(3):
        if frame.parts[i].size:
            memcpy(at, frame.parts[i].data, <size_t>frame.parts[i].size)
            at += frame.parts[i].size
    lane._out.append(Send(connection, joined))


cdef void _out_hand_up(void *self, int64_t connection, const uint8_t *data, int64_t size) noexcept:
    cdef Lane lane = <Lane>self
    lane._out.append(HandUp(connection, lane._frame))


cdef void _out_advanced(void *self, int64_t high_watermark) noexcept:
    (<Lane>self)._out.append(Advanced(high_watermark))


cdef void _out_barrier_done(void *self, int64_t barrier, int64_t high_watermark) noexcept:
    (<Lane>self)._out.append(BarrierDone(barrier, high_watermark))


cdef void _out_unparked(void *self, int64_t connection, int32_t correlation_id, int api_version) noexcept:
    (<Lane>self)._out.append(Unparked(connection, correlation_id, api_version))


cdef void _out_observers_informed(void *self) noexcept:
    (<Lane>self)._out.append(ObserversInformed())
