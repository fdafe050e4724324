"""The native lane (ext/core/lane), for Cython: the declarations, and the values of kernels.lane made into its own."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastquorum.kernels.native.core cimport Slice


cdef extern from "lane/ports.h" namespace "fastquorum::lane" nogil:
    cdef cppclass Uuid:
        uint8_t *bytes

    cdef cppclass ReplicaKey:
        int32_t id
        Uuid directory_id

    cdef cppclass Log:
        pass

    cdef cppclass Outputs:
        pass

    cdef cppclass Span "fastquorum::Span":
        Span() noexcept
        const uint8_t *data
        int64_t size

    cdef cppclass Frame:
        Span *parts
        int64_t size() noexcept

    cdef cppclass Identity:
        ReplicaKey key
        string cluster_id
        Uuid topic_id

    cdef cppclass LeaderSession:
        int32_t epoch
        vector[ReplicaKey] voters
        int64_t epoch_start
        int64_t high_watermark
        int64_t fetch_wait_us_max
        cbool has_endpoint
        string host
        int32_t port

    cdef cppclass FollowerSession:
        int32_t epoch
        int32_t leader_id
        int64_t high_watermark
        int64_t attempt
        int32_t fetch_bytes_max
        int64_t fetch_wait_us_max

    cdef cppclass Admission:
        int64_t connection
        int32_t correlation_id
        int api_version
        ReplicaKey peer
        cbool is_voter
        int64_t fetch_offset
        int64_t request_high_watermark
        int64_t max_wait_us
        int64_t bytes_max

    cdef cppclass PeerState:
        ReplicaKey key
        cbool is_voter
        int64_t connection
        int64_t end_offset
        int64_t last_contact_us
        int64_t last_progress_us
        int64_t last_caught_up_us

    cdef enum class Mode(int):
        closed
        leader
        follower

    cdef cppclass State:
        Mode mode
        int32_t epoch
        int64_t log_end
        int64_t flushed_end
        int64_t high_watermark
        vector[PeerState] peers
        int64_t leader_contact_us
        int64_t fetch_sent_us
        int32_t fetch_in_flight


cdef extern from "codes.h" namespace "fastquorum" nogil:
    const int64_t verdict_too_large


cdef extern from "lane/mutation.h" namespace "fastquorum::lane" nogil:
    const cbool has_mutants
    void plant(int mutation) noexcept


cdef extern from "lane/callbacks.h" namespace "fastquorum::lane" nogil:
    cdef struct LogCalls:
        int64_t (*number)(void *self, int which) noexcept
        cbool (*fits)(void *self, int64_t size_bytes, int64_t record_count) noexcept
        cbool (*append)(void *self, const uint8_t *data, int64_t size, int64_t base_offset, int64_t next_offset,
                        int32_t epoch, int64_t timestamp_ms) noexcept
        cbool (*read)(void *self, int64_t offset, int64_t bytes_max, const uint8_t **data, int64_t *size) noexcept
        cbool (*request_flush)(void *self) noexcept

    cdef cppclass CalledLog(Log):
        CalledLog(void *self, LogCalls calls) noexcept

    cdef struct OutputCalls:
        void (*send)(void *self, int64_t connection, const Frame *frame) noexcept
        void (*hand_up)(void *self, int64_t connection, const uint8_t *data, int64_t size) noexcept
        void (*advanced)(void *self, int64_t high_watermark) noexcept
        void (*barrier_done)(void *self, int64_t barrier, int64_t high_watermark) noexcept
        void (*unparked)(void *self, int64_t connection, int32_t correlation_id, int api_version) noexcept
        void (*observers_informed)(void *self) noexcept

    cdef cppclass CalledOutputs(Outputs):
        CalledOutputs(void *self, OutputCalls calls) noexcept


cdef extern from "lane/lane.h" namespace "fastquorum::lane" nogil:
    cdef cppclass CppLane "fastquorum::lane::Lane":
        CppLane(Identity identity, Log &log, Outputs &out, int64_t batch_bytes_max) except +
        Mode mode() noexcept
        cbool is_frozen() noexcept
        cbool has_failed() noexcept
        int64_t high_watermark() noexcept
        int64_t deadline_us() noexcept
        int64_t confirmed_us() noexcept
        int64_t gathered_bytes() noexcept
        cbool serves(int64_t connection) noexcept
        cbool may_lead(const LeaderSession &session) noexcept
        cbool open_leader(const LeaderSession &session, int64_t now_us) except +
        cbool follows(const FollowerSession &session) noexcept
        cbool open_follower(const FollowerSession &session, int64_t now_us) except +
        cbool attach_leader(int64_t connection, int api_version, int64_t now_us) except +
        void detach(int64_t connection) noexcept
        cbool admit(const Admission &fetch, int64_t now_us) except +
        cbool freeze() noexcept
        cbool resume(int64_t now_us) except +
        cbool close(State *state) except +
        State state() except +
        cbool on_frame(int64_t connection, Span frame, int64_t now_us) except +
        cbool on_flushed(int64_t generation, int64_t end, int64_t now_us) except +
        void on_flush_failed() noexcept
        cbool on_tick(int64_t now_us) noexcept
        cbool await_observers(const vector[int32_t] &ids, int64_t offset) noexcept
        int64_t append(const Slice *values, int64_t count, int64_t timestamp_ms, int64_t now_us, cbool gathers) noexcept
        cbool push(int64_t now_us) noexcept
        int64_t append_encoded(uint8_t *batch, int64_t size, int64_t record_count, int64_t timestamp_ms, int64_t now_us) noexcept
        int64_t begin_barrier(int64_t now_us) except +


cdef Identity to_identity(object identity) except *
cdef LeaderSession to_leader_session(object session) except *
cdef FollowerSession to_follower_session(object session) except *
cdef Admission to_admission(object fetch) except *
cdef object from_state(const State &state)
