// The native shell's face: each call is one critical section, and is made without the GIL, but where it says otherwise.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine.h"

namespace fastquorum::node {

// Numbers that may be looked at between two calls; true of one moment.
struct Standing {
    lane::Mode mode;
    bool is_frozen;
    Offset end_offset;
    Offset flushed_end;
    bool is_flushing;
};

class Shell {
   public:
    Shell(lane::Identity identity, std::int64_t batch_bytes_max, Limits limits) : engine_(std::move(identity), batch_bytes_max, limits) {}

    int start() { return engine_.start(); }
    void end_threads() { engine_.end_threads(); }
    bool is_in_own_process() const noexcept { return engine_.is_in_own_process(); }
    int news_descriptor() const noexcept { return engine_.news_descriptor(); }
    void before_fork() { engine_.before_fork(); }
    void after_fork() noexcept { engine_.after_fork(); }
    void abandon_in_child() noexcept { engine_.abandon_in_child(); }

    // --- without the lock: any thread, with the GIL or without --------------------------------------------------------------

    Offset high_watermark() const noexcept { return engine_.high_watermark(); }
    Micros appended_us() const noexcept { return engine_.appended_us(); }
    bool has_failed() const noexcept { return engine_.has_failed(); }
    Micros flush_began_us() const noexcept { return engine_.flush_began_us(); }
    void watch_flush_again(Micros from_us) noexcept { engine_.watch_flush_again(from_us); }

    // --- the log's owner ------------------------------------------------------------------------------------------------------

    void lend(Loan loan) {
        Engine::Section section(engine_);
        engine_.log().lend(std::move(loan));
    }

    // What the lane has made of it. storage.Log owns it again.
    Loan take_back() {
        Engine::Section section(engine_);
        engine_.log().take_back();
        return engine_.log().loan();
    }

    // As it is now; the lane goes on.
    Loan look() {
        Engine::Section section(engine_);
        return engine_.log().loan();
    }

    Standing standing() {
        Engine::Section section(engine_);
        const Loan &loan = engine_.log().loan();
        return {engine_.lane().mode(), engine_.lane().is_frozen(), loan.end_offset, loan.flushed.offset, loan.is_flushing};
    }

    // Batches in memory, copied; false if they are not there.
    bool read_recent(Offset offset, std::int64_t bytes_max, std::vector<std::uint8_t> *copy) {
        Engine::Section section(engine_);
        Span found;
        if (!engine_.log().read_recent(offset, bytes_max, &found)) return false;
        copy->assign(found.data, found.data + found.size);
        return true;
    }

    std::int64_t prepare(std::int64_t end) {
        Engine::Section section(engine_);
        engine_.check(engine_.log().prepare(end));
        return engine_.log().loan().prepared_bytes;
    }

    void submit(std::int64_t token, std::vector<FileRef> files) {
        Engine::Section section(engine_);
        engine_.submit(token, std::move(files));
    }

    void synced(std::int64_t token, int error, Micros at_us) {
        Engine::Section section(engine_);
        engine_.synced(token, error, at_us);
    }

    // Why the log cut the lane off.
    Failure failure(int *error, Offset *offset) {
        Engine::Section section(engine_);
        if (engine_.lacks_memory()) {
            *error = ENOMEM;
            return Failure::memory;
        }
        *error = engine_.log().failure_errno();
        *offset = engine_.log().failure_offset();
        return engine_.log().failure();
    }

    void hold_syncs(bool hold) {
        Engine::Section section(engine_);
        engine_.hold_syncs(hold);
    }

    void refuse_appends(bool refuse) {
        Engine::Section section(engine_);
        engine_.refuse_appends(refuse);
    }

    Room room_wanted() {
        Engine::Section section(engine_);
        return engine_.room_wanted();
    }

    void room_sought() {
        Engine::Section section(engine_);
        engine_.room_sought();
    }

    bool take_given_up() noexcept { return engine_.take_given_up(); }

    bool was_cut_off() {
        Engine::Section section(engine_);
        return engine_.was_cut_off();
    }

    // --- raft's side ----------------------------------------------------------------------------------------------------------

    bool may_lead(const lane::LeaderTerms &terms) {
        Engine::Section section(engine_);
        return engine_.lane().mode() == lane::Mode::closed && engine_.lane().may_lead(terms);
    }

    void open_leader(const lane::LeaderTerms &terms, Micros at_us) {
        Engine::Section section(engine_);
        engine_.set_appended_us(at_us);
        engine_.log().trace().opened(true);
        engine_.watch_python_anew();
        engine_.check(engine_.lane().open_leader(terms, at_us));
    }

    bool may_follow(const lane::FollowerTerms &terms) {
        Engine::Section section(engine_);
        return engine_.lane().mode() == lane::Mode::closed || engine_.lane().follows(terms);
    }

    void open_follower(const lane::FollowerTerms &terms, Micros at_us) {
        Engine::Section section(engine_);
        if (engine_.lane().mode() != lane::Mode::follower) engine_.log().trace().opened(false);
        engine_.check(engine_.lane().open_follower(terms, at_us));
    }

    void attach_leader(Connection connection, int api_version, Micros at_us) {
        Engine::Section section(engine_);
        engine_.check(engine_.lane().attach_leader(connection, api_version, at_us));
    }

    void detach(Connection connection) {
        Engine::Section section(engine_);
        engine_.lane().detach(connection);
    }

    void admit(const lane::Admission &fetch, Micros at_us) {
        Engine::Section section(engine_);
        engine_.check(engine_.lane().admit(fetch, at_us));
    }

    lane::State freeze() {
        Engine::Section section(engine_);
        engine_.freeze();
        return engine_.lane().state();
    }

    void resume(Micros at_us) {
        Engine::Section section(engine_);
        if (engine_.lane().is_frozen()) engine_.check(engine_.lane().resume(at_us));
    }

    lane::State close() {
        Engine::Section section(engine_);
        lane::State state;
        engine_.close_lane(&state);
        return state;
    }

    lane::State state() {
        Engine::Section section(engine_);
        return engine_.lane().state();
    }

    bool offer(Connection connection, Span frame, Micros at_us) {
        Engine::Section section(engine_);
        return engine_.offer(connection, frame, at_us);
    }

    void latch() {
        Engine::Section section(engine_);
        engine_.latch();
    }

    void stop() {
        Engine::Section section(engine_);
        engine_.stop();
    }

    void advance(Offset high_watermark) {
        Engine::Section section(engine_);
        engine_.advance(high_watermark);
    }

    News take_news() {
        Engine::Section section(engine_);
        return engine_.take_news();
    }

    void frames_done(const std::vector<DoneFrame> &frames) {
        Engine::Section section(engine_);
        engine_.frames_done(frames);
    }

    void rouse_python() {
        Engine::Section section(engine_);
        engine_.rouse_python();
    }

    // --- callers' side --------------------------------------------------------------------------------------------------------

    // With the GIL held: only if nobody else is in a critical section, and the append makes no system call. False: not now.
    bool append_gathering(const Slice *values, std::int64_t count, std::int64_t size_bytes, Waiter &waiter, bool is_pushed_later,
                          Offset *offset) {
        Engine::Section section(engine_, std::try_to_lock);
        if (!section.is_in() || !engine_.gathers(size_bytes, count, is_pushed_later)) return false;
        *offset = noted(engine_.append(values, count, size_bytes, wall_ms(), now_us(), waiter, false, is_pushed_later));
        return true;
    }

    Offset append(const Slice *values, std::int64_t count, std::int64_t size_bytes, Waiter &waiter, bool has_waited, bool is_pushed_later) {
        Engine::Section section(engine_);
        return noted(engine_.append(values, count, size_bytes, wall_ms(), now_us(), waiter, has_waited, is_pushed_later));
    }

    // Append values in one critical section, each by itself and with a waiter of its own, then write and send them: for each its
    // offset, or why it was refused.
    void append_all(const Slice *values, std::int64_t count, Waiter *waiters, bool have_waited, Offset *offsets) {
        Engine::Section section(engine_);
        const std::int64_t timestamp_ms = wall_ms();
        const Micros at_us = now_us();
        for (std::int64_t i = 0; i < count; ++i) {
            offsets[i] = noted(engine_.append(&values[i], 1, values[i].size, timestamp_ms, at_us, waiters[i], have_waited, true));
        }
        engine_.push();
    }

    // Write and send what was appended to be pushed later.
    void push() {
        Engine::Section section(engine_);
        engine_.push();
    }

    void push_soon() {
        Engine::Section section(engine_);
        engine_.push_soon();
    }

    Offset append_encoded(std::uint8_t *batch, std::int64_t size, std::int64_t count, std::int64_t timestamp_ms, Waiter &waiter, bool has_waited,
                          bool admits_new) {
        Engine::Section section(engine_);
        return noted(engine_.append_encoded(batch, size, count, timestamp_ms, now_us(), waiter, has_waited, admits_new));
    }

    Offset await_commit(Offset base_offset, Offset end_offset, Waiter &waiter) {
        Engine::Section section(engine_);
        return engine_.await_commit(base_offset, end_offset, waiter);
    }

    // One of those that were told to wait does so now, where `release_appends` will find it.
    void hold_appends() {
        Engine::Section section(engine_);
        engine_.hold_appends();
    }

    // None of those that were told to wait does so any more.
    void release_appends() {
        Engine::Section section(engine_);
        engine_.release_appends();
    }

    std::int64_t begin_barrier(Waiter &waiter) {
        Engine::Section section(engine_);
        return engine_.begin_barrier(waiter);
    }

    void fail_pending(std::int64_t code) {
        Engine::Section section(engine_);
        engine_.fail_pending(code);
    }

    void set_barrier_failure(std::int64_t code) {
        Engine::Section section(engine_);
        engine_.set_barrier_failure(code);
    }

    // Answers the high watermark of the moment.
    Offset watch_commit() {
        Engine::Section section(engine_);
        engine_.watch_commit();
        return engine_.high_watermark();
    }

    void waiting(std::int64_t *records, std::int64_t *bytes) {
        Engine::Section section(engine_);
        *records = engine_.records();
        *bytes = engine_.bytes();
    }

    // --- producers' connections -----------------------------------------------------------------------------------------------

    void serve_produce(ProduceService service) {
        Engine::Section section(engine_);
        engine_.serve_produce(std::move(service));
    }

    void serve_beats(std::shared_ptr<SteadyBeats> beats, Micros confirmed_us_max) {
        Engine::Section section(engine_);
        engine_.serve_beats(std::move(beats), confirmed_us_max);
    }

    bool is_confirmed(Micros within_us) {
        Engine::Section section(engine_);
        return engine_.is_confirmed(within_us, now_us());
    }

    bool await_observers(const std::vector<std::int32_t> &ids, Offset offset) {
        Engine::Section section(engine_);
        return engine_.await_observers(ids, offset);
    }
    bool are_observers_awaited() const noexcept { return engine_.are_observers_awaited(); }  // without the lock

    void settled(Connection connection, std::int64_t frames) {
        Engine::Section section(engine_);
        engine_.settled(connection, frames);
    }

    // --- what it takes: see trace.h -------------------------------------------------------------------------------------------

    // In the order of `Measure`.
    std::vector<Histogram> stage_histograms() {
        std::vector<Histogram> found;
        found.reserve(measures);
        {
            Engine::Section section(engine_);
            engine_.log().trace().copy(&found);
        }
        found.resize(measures);
        told()->copy(&found[static_cast<std::size_t>(Measure::committed_told)], &found[static_cast<std::size_t>(Measure::append_told)]);
        return found;
    }

    // Record the latest `capacity` groups from now on.
    void trace_start(std::size_t capacity) {
        std::vector<Group> groups(capacity);
        told()->use(std::vector<ToldRange>(capacity));
        Engine::Section section(engine_);
        groups = engine_.log().trace().use(std::move(groups), true);
    }

    void trace_stop() {
        std::vector<Group> groups(Trace::window);
        told()->use({});
        Engine::Section section(engine_);
        groups = engine_.log().trace().use(std::move(groups), false);
    }

    // What is recorded; how many groups more were, and have been overwritten. The lock is held for a part of it at a time.
    std::int64_t trace_read(std::vector<Group> *groups, std::vector<ToldRange> *ranges) {
        static constexpr std::size_t part = 1024;
        std::uint64_t next = 0, lost = 0;
        for (std::size_t before = 1; before != groups->size();) {
            before = groups->size();
            groups->reserve(before + part);
            Engine::Section section(engine_);
            next = engine_.log().trace().read(next, part, groups);
            lost = engine_.log().trace().lost();
        }
        told()->read(ranges);
        return static_cast<std::int64_t>(lost);
    }

    // --- connections ----------------------------------------------------------------------------------------------------------

    std::int64_t connection_count() {
        Engine::Section section(engine_);
        return static_cast<std::int64_t>(engine_.connection_count());
    }

    int add(Connection number, int descriptor, bool is_accepted, Micros at_us) {
        Engine::Section section(engine_);
        return engine_.add(number, descriptor, is_accepted, at_us);
    }

    bool knows(Connection connection) {
        Engine::Section section(engine_);
        return engine_.knows(connection);
    }

    bool is_broken(Connection connection) {
        Engine::Section section(engine_);
        return engine_.is_broken(connection);
    }

    bool needs_drain(Connection connection) {
        Engine::Section section(engine_);
        return engine_.needs_drain(connection);
    }

    bool is_crowded() {
        Engine::Section section(engine_);
        return engine_.is_crowded();
    }

    void favour(Connection connection) {
        Engine::Section section(engine_);
        engine_.favour(connection);
    }

    bool is_accepted(Connection connection) {
        Engine::Section section(engine_);
        return engine_.is_accepted(connection);
    }

    void send_frame(Connection connection, Span frame) {
        Engine::Section section(engine_);
        engine_.send_frame(connection, frame);
    }

    void close_connection(Connection connection) {
        Engine::Section section(engine_);
        engine_.close(connection);
    }

    void break_off(Connection connection) {
        Engine::Section section(engine_);
        engine_.break_off(connection);
    }

    void close_all(Micros at_us) {
        Engine::Section section(engine_);
        engine_.close_all(at_us);
    }

    std::vector<Connection> overdue(Micros at_us, Micros partial_us_max, Micros idle_us_max, Micros connect_us_max) {
        Engine::Section section(engine_);
        return engine_.overdue(at_us, partial_us_max, idle_us_max, connect_us_max);
    }

    Connection oldest_silent(Micros at_us, Micros silent_us_min) {
        Engine::Section section(engine_);
        return engine_.oldest_silent(at_us, silent_us_min);
    }

   private:
    // It is the same as long as the shell is.
    const ToldRef &told() noexcept { return engine_.log().trace().told(); }

    static std::int64_t wall_ms() noexcept {
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME, &now);
        return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
    }

    // An append that finds raft/ deciding is kept by its caller: what comes after it waits behind it. `has_waited`: it is one of
    // those, and its turn has come.
    Offset noted(Offset offset) noexcept {
        if (offset == lane::verdict_frozen) engine_.hold_appends();
        return offset;
    }

    Engine engine_;
};

}  // namespace fastquorum::node
