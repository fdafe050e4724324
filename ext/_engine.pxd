"""The native engine (ext/core/node), for Cython: the declarations, and the object that owns one."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.deque cimport deque
from libcpp.vector cimport vector

from fastquorum.kernels.native._lane cimport Admission, FollowerSession, Identity, LeaderSession, Mode, Span, State
from fastquorum.kernels.native._beats cimport SteadyBeatsRef
from fastquorum.kernels.native._produce cimport ProduceService
from fastquorum.kernels.native._producers cimport ProducersRef
from fastquorum.kernels.native._stages cimport Group, Histogram, AnnouncedRange
from fastquorum.kernels.native._waiters cimport Waiter
from fastquorum.kernels.native.core cimport FileRef, IndexRef, Slice


cdef extern from "codes.h" namespace "fastquorum" nogil:
    cdef enum class EventKind(int):
        pass

    cdef enum class Failure(int):
        pass


cdef extern from "node/log.h" namespace "fastquorum::node" nogil:
    cdef cppclass Position:
        int64_t offset
        int64_t segment_base
        int64_t position

    cdef cppclass SegmentRef:
        int64_t base_offset
        FileRef file
        IndexRef index
        int64_t size_bytes

    cdef cppclass Ticket:
        int64_t token
        int64_t generation
        Position at

    cdef cppclass Loan:
        vector[SegmentRef] segments
        int64_t start_offset
        int64_t end_offset
        Position flushed
        int64_t generation
        int32_t last_epoch
        int64_t prepared_bytes
        int64_t max_timestamp_ms
        int64_t segment_bytes
        int64_t zeros_least
        int64_t zeros_step
        ProducersRef producers
        cbool is_flushing
        Ticket ticket
        cbool is_flush_wanted
        int64_t next_token


cdef extern from "node/engine.h" namespace "fastquorum::node" nogil:
    cdef cppclass DoneFrame:
        DoneFrame() noexcept
        int64_t connection
        int64_t size

    cdef cppclass Room:
        Room() noexcept
        int64_t size_bytes
        int64_t record_count

    cdef cppclass Event:
        EventKind kind
        int64_t connection
        vector[uint8_t] frame
        int64_t token
        int error

    cdef cppclass HandedUp:
        int64_t connection
        vector[uint8_t] frame

    cdef cppclass Unparked:
        int64_t connection
        int32_t correlation_id
        int api_version

    cdef cppclass News:
        deque[HandedUp] handed_up
        deque[Event] events
        vector[Unparked] unparked

    cdef cppclass Limits:
        int64_t frame_bytes_max
        int64_t records_max
        int64_t bytes_max
        int64_t busy_poll_us
        int64_t alone_us_max

    cbool arm_point(const char *name, int action, int amount, int64_t only_hit) noexcept
    cbool plant_mutation(int mutation) noexcept

    cdef cppclass Standing:
        Mode mode
        cbool is_frozen
        int64_t end_offset
        int64_t flushed_end
        cbool is_flushing

    cdef cppclass Engine:
        Engine(Identity identity, int64_t batch_bytes_max, Limits limits) except +
        int start() except +
        void end_threads() except +
        cbool is_in_own_process() noexcept
        int news_descriptor() noexcept
        void before_fork() noexcept
        void after_fork() noexcept
        void abandon_in_child() noexcept
        int64_t high_watermark() noexcept
        int64_t appended_us() noexcept
        cbool has_failed() noexcept
        int64_t flush_began_us() noexcept
        void watch_flush_again(int64_t from_us) noexcept
        void lend(Loan loan) except +
        Loan take_back() except +
        Loan look() except +
        Standing standing() noexcept
        cbool read_recent(int64_t offset, int64_t bytes_max, vector[uint8_t] *copy) except +
        int64_t prepare(int64_t end) noexcept
        void submit(int64_t token, vector[FileRef] files) except +
        void synced(int64_t token, int error, int64_t at_us) except +
        Failure failure(int *error, int64_t *offset) noexcept
        void hold_syncs(cbool hold) noexcept
        void refuse_appends(cbool refuse) noexcept
        Room room_wanted() noexcept
        void room_sought() noexcept
        cbool take_given_up() noexcept
        cbool was_cut_off() noexcept
        cbool may_lead(const LeaderSession &session) noexcept
        void open_leader(const LeaderSession &session, int64_t at_us) except +
        cbool may_follow(const FollowerSession &session) noexcept
        void open_follower(const FollowerSession &session, int64_t at_us) except +
        void attach_leader(int64_t connection, int api_version, int64_t at_us) except +
        void detach(int64_t connection) noexcept
        void admit(const Admission &fetch, int64_t at_us) except +
        State freeze() except +
        void resume(int64_t at_us) except +
        State close() except +
        State state() except +
        cbool offer(int64_t connection, Span frame, int64_t at_us) except +
        void latch() noexcept
        void stop() noexcept
        void advance(int64_t high_watermark) except +
        News take_news() except +
        void frames_done(const vector[DoneFrame] &frames) except +
        void rouse_python() noexcept
        cbool append_gathering(const Slice *values, int64_t count, int64_t size_bytes, Waiter &waiter,
                               cbool is_pushed_later, int64_t *offset) except +
        int64_t append(const Slice *values, int64_t count, int64_t size_bytes, Waiter &waiter, cbool has_waited,
                       cbool is_pushed_later) except +
        void append_all(const Slice *values, int64_t count, Waiter *waiters, cbool have_waited, int64_t *offsets) except +
        void push() except +
        void push_soon() noexcept
        int64_t append_encoded(uint8_t *batch, int64_t size, int64_t count, int64_t timestamp_ms, Waiter &waiter,
                               cbool has_waited, cbool admits_new) except +
        int64_t await_commit(int64_t base_offset, int64_t end_offset, Waiter &waiter) except +
        void hold_appends() noexcept
        void release_appends() noexcept
        int64_t begin_barrier(Waiter &waiter) except +
        void fail_pending(int64_t code) except +
        void set_barrier_failure(int64_t code) noexcept
        int64_t watch_commit() noexcept
        void waiting(int64_t *records, int64_t *bytes) noexcept
        void serve_produce(ProduceService service) except +
        void serve_beats(SteadyBeatsRef beats, int64_t confirmed_us_max) except +
        cbool is_confirmed(int64_t within_us) noexcept
        cbool await_observers(const vector[int32_t] &ids, int64_t offset) noexcept
        cbool are_observers_awaited() noexcept
        void settled(int64_t connection, int64_t frames) noexcept
        vector[Histogram] stage_histograms() except +
        void trace_start(size_t capacity) except +
        void trace_stop() except +
        int64_t trace_read(vector[Group] *groups, vector[AnnouncedRange] *ranges) except +
        int64_t connection_count() noexcept
        int add(int64_t number, int descriptor, cbool is_accepted, int64_t at_us) except +
        cbool knows(int64_t connection) noexcept
        cbool is_broken(int64_t connection) noexcept
        cbool is_accepted(int64_t connection) noexcept
        cbool needs_drain(int64_t connection) noexcept
        cbool is_crowded() noexcept
        void favour(int64_t connection) except +
        void send_frame(int64_t connection, Span frame) except +
        void close_connection(int64_t connection) except +
        void break_off(int64_t connection) except +
        void close_all(int64_t at_us) except +
        vector[int64_t] overdue(int64_t at_us, int64_t partial_us_max, int64_t idle_us_max, int64_t connect_us_max) except +
        int64_t oldest_silent(int64_t at_us, int64_t silent_us_min) noexcept


cdef class NodeEngine:
    cdef Engine *engine
