#include "engine.h"

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>

#include "../lane/mutation.h"
#include "clock.h"
#include "hooks.h"

namespace fastquorum::node {

bool arm_point(const char *name, int action, int amount, std::int64_t only_hit) noexcept { return arm(name, action, amount, only_hit); }

bool plant_mutation(int mutation) noexcept {
    lane::plant(mutation);
    return lane::has_mutants || mutation == 0;
}

Engine::Engine(lane::Identity identity, std::int64_t batch_bytes_max, Limits limits)
    : limits_(limits),
      outputs_(lane_, news_, connections_, appends_),
      lane_(std::move(identity), outputs_, batch_bytes_max, news_),
      syncs_(lane_),
      wakeup_(lane_),
      lock_(lane_, news_, syncs_, wakeup_),
      connections_(limits.frame_bytes_max, news_, wakeup_),
      produces_(connections_, lane_, wakeup_),
      python_watch_(limits.alone_us_max, lane_, news_, wakeup_),
      appends_(limits_, lane_, news_, lock_, python_watch_, produces_),
      fast_path_(lane_, connections_, appends_, produces_),
      flusher_(lock_, lane_, syncs_),
      sockets_({limits_, lock_, lane_, news_, wakeup_, connections_, produces_, fast_path_, python_watch_, flusher_}) {}

int Engine::start() {
    if (!news_.open() || !wakeup_.open() || !connections_.open()) return errno;
    // Signals are for the threads of Python: none may land here.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    try {
        sockets_.start();
        flusher_.start();
    } catch (const std::system_error &failure) {
        error = failure.code().value();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) end_threads();
    return error;
}

void Engine::end_threads() {
    {
        std::lock_guard guard(lock_.mutex());
        lock_.end();
    }
    syncs_.wake_all();
    wakeup_.signal();
    flusher_.join();
    sockets_.join();
}

void Engine::abandon_in_child() noexcept {
    connections_.abandon_in_child();
    wakeup_.close();
    news_.close();
}

// --- the log's owner -------------------------------------------------------------------------------------------------

void Engine::lend(Loan loan) {
    Section section(lock_);
    lane_.log().lend(std::move(loan));
}

Loan Engine::take_back() {
    Section section(lock_);
    lane_.log().take_back();
    return lane_.log().loan();
}

Loan Engine::look() {
    Section section(lock_);
    return lane_.log().loan();
}

Standing Engine::standing() {
    Section section(lock_);
    const Loan &loan = lane_.log().loan();
    return {lane_.lane().mode(), lane_.is_frozen(), loan.end_offset, loan.flushed.offset, loan.is_flushing};
}

bool Engine::read_recent(Offset offset, std::int64_t bytes_max, std::vector<std::uint8_t> *copy) {
    Section section(lock_);
    Span found;
    if (!lane_.log().read_recent(offset, bytes_max, &found)) return false;
    copy->assign(found.data, found.data + found.size);
    return true;
}

std::int64_t Engine::prepare(std::int64_t end) {
    Section section(lock_);
    lane_.check(lane_.log().prepare(end));
    return lane_.log().loan().prepared_bytes;
}

void Engine::submit(std::int64_t token, std::vector<FileRef> files) {
    Section section(lock_);
    syncs_.submit({std::move(files), token});
}

void Engine::synced(std::int64_t token, int error, Micros at_us) {
    Section section(lock_);
    lane_.synced(token, error, at_us);
}

Failure Engine::failure(int *error, Offset *offset) {
    Section section(lock_);
    return lane_.failure(error, offset);
}

bool Engine::was_cut_off() {
    Section section(lock_);
    return lane_.was_cut_off();
}

void Engine::hold_syncs(bool hold) {
    Section section(lock_);
    syncs_.hold(hold);
}

Room Engine::room_wanted() {
    Section section(lock_);
    return lane_.room_wanted();
}

void Engine::room_sought() {
    Section section(lock_);
    lane_.room_sought();
}

// --- raft's side -----------------------------------------------------------------------------------------------------

bool Engine::may_lead(const lane::LeaderSession &session) {
    Section section(lock_);
    return lane_.is_closed() && lane_.lane().may_lead(session);
}

void Engine::open_leader(const lane::LeaderSession &session, Micros at_us) {
    Section section(lock_);
    appends_.set_appended_us(at_us);
    lane_.trace().opened(true);
    python_watch_.begin_anew();
    lane_.check(lane_.lane().open_leader(session, at_us));
}

bool Engine::may_follow(const lane::FollowerSession &session) {
    Section section(lock_);
    return lane_.is_closed() || lane_.lane().follows(session);
}

void Engine::open_follower(const lane::FollowerSession &session, Micros at_us) {
    Section section(lock_);
    if (!lane_.is_follower()) lane_.trace().opened(false);
    lane_.check(lane_.lane().open_follower(session, at_us));
}

void Engine::attach_leader(Connection connection, int api_version, Micros at_us) {
    Section section(lock_);
    lane_.check(lane_.lane().attach_leader(connection, api_version, at_us));
}

void Engine::detach(Connection connection) {
    Section section(lock_);
    lane_.lane().detach(connection);
}

void Engine::admit(const lane::Admission &fetch, Micros at_us) {
    Section section(lock_);
    lane_.check(lane_.lane().admit(fetch, at_us));
}

lane::State Engine::freeze() {
    Section section(lock_);
    lane_.freeze();
    return lane_.lane().state();
}

void Engine::resume(Micros at_us) {
    Section section(lock_);
    if (lane_.is_frozen()) lane_.check(lane_.lane().resume(at_us));
}

lane::State Engine::close() {
    Section section(lock_);
    lane::State state;
    lane_.check(lane_.lane().close(&state));
    python_watch_.begin_anew();
    connections_.break_off_half_sent();
    return state;
}

lane::State Engine::state() {
    Section section(lock_);
    return lane_.lane().state();
}

bool Engine::offer(Connection connection, Span frame, Micros at_us) {
    Section section(lock_);
    if (!lane_.make_room_for_frame(frame)) return false;
    lane_.serve(connection, frame, at_us);
    return true;
}

void Engine::latch() {
    Section section(lock_);
    lane_.latch();
}

void Engine::stop() {
    Section section(lock_);
    lane_.stop();
}

void Engine::advance(Offset high_watermark) {
    Section section(lock_);
    appends_.advance(high_watermark);
}

News Engine::take_news() {
    Section section(lock_);
    return news_.take();
}

void Engine::frames_done(const std::vector<DoneFrame> &frames) {
    Section section(lock_);
    connections_.frames_done(frames);
}

void Engine::rouse_python() {
    Section section(lock_);
    news_.rouse();
}

// --- callers' side ---------------------------------------------------------------------------------------------------

bool Engine::append_gathering(const Slice *values, std::int64_t count, std::int64_t size_bytes, Waiter &waiter, bool is_pushed_later,
                              Offset *offset) {
    Section section(lock_, std::try_to_lock);
    if (!section.is_in() || !appends_.gathers(size_bytes, count, is_pushed_later)) return false;
    *offset = appends_.append(values, count, size_bytes, wall_ms(), now_us(), waiter, false, is_pushed_later);
    return true;
}

Offset Engine::append(const Slice *values, std::int64_t count, std::int64_t size_bytes, Waiter &waiter, bool has_waited,
                      bool is_pushed_later) {
    Section section(lock_);
    return appends_.append(values, count, size_bytes, wall_ms(), now_us(), waiter, has_waited, is_pushed_later);
}

void Engine::append_all(const Slice *values, std::int64_t count, Waiter *waiters, bool have_waited, Offset *offsets) {
    Section section(lock_);
    const std::int64_t timestamp_ms = wall_ms();
    const Micros at_us = now_us();
    for (std::int64_t i = 0; i < count; ++i) {
        offsets[i] = appends_.append(&values[i], 1, values[i].size, timestamp_ms, at_us, waiters[i], have_waited, true);
    }
    lane_.push();
}

Offset Engine::append_encoded(std::uint8_t *batch, std::int64_t size, std::int64_t count, std::int64_t timestamp_ms, Waiter &waiter,
                              bool has_waited, bool admits_new) {
    Section section(lock_);
    return appends_.append_encoded(batch, size, count, timestamp_ms, now_us(), waiter, has_waited, admits_new);
}

Offset Engine::await_commit(Offset base_offset, Offset end_offset, Waiter &waiter) {
    Section section(lock_);
    return appends_.await_commit(base_offset, end_offset, waiter);
}

void Engine::push() {
    Section section(lock_);
    lane_.push();
}

void Engine::push_soon() {
    Section section(lock_);
    wakeup_.want_push();
}

void Engine::hold_appends() {
    Section section(lock_);
    appends_.hold();
}

void Engine::release_appends() {
    Section section(lock_);
    appends_.release();
}

void Engine::refuse_appends(bool refuse) {
    Section section(lock_);
    appends_.refuse(refuse);
}

std::int64_t Engine::begin_barrier(Waiter &waiter) {
    Section section(lock_);
    return appends_.begin_barrier(waiter);
}

void Engine::fail_pending(std::int64_t code) {
    Section section(lock_);
    appends_.fail_pending(code);
}

void Engine::set_barrier_failure(std::int64_t code) {
    Section section(lock_);
    appends_.set_barrier_failure(code);
}

Offset Engine::watch_commit() {
    Section section(lock_);
    appends_.watch_commit();
    return appends_.high_watermark();
}

void Engine::waiting(std::int64_t *records, std::int64_t *bytes) {
    Section section(lock_);
    *records = appends_.records();
    *bytes = appends_.bytes();
}

// --- clients' connections --------------------------------------------------------------------------------------------

void Engine::serve_produce(ProduceService service) {
    Section section(lock_);
    produces_.serve(std::move(service));
}

void Engine::serve_beats(std::shared_ptr<SteadyBeats> beats, Micros confirmed_us_max) {
    Section section(lock_);
    fast_path_.serve_beats(std::move(beats), confirmed_us_max);
}

bool Engine::is_confirmed(Micros within_us) {
    Section section(lock_);
    return lane_.is_confirmed(within_us, now_us());
}

bool Engine::await_observers(const std::vector<std::int32_t> &ids, Offset offset) {
    Section section(lock_);
    return lane_.await_observers(ids, offset);
}

void Engine::settled(Connection connection, std::int64_t frames) {
    Section section(lock_);
    if (Channel *channel = connections_.find(connection)) channel->settled = frames;
}

// --- what it takes ---------------------------------------------------------------------------------------------------

std::vector<Histogram> Engine::stage_histograms() {
    std::vector<Histogram> found;
    found.reserve(measures);
    {
        Section section(lock_);
        lane_.trace().copy(&found);
    }
    found.resize(measures);
    announcements()->copy(&found[static_cast<std::size_t>(Measure::committed_announced)], &found[static_cast<std::size_t>(Measure::append_announced)]);
    return found;
}

void Engine::trace_start(std::size_t capacity) {
    std::vector<Group> groups(capacity);
    announcements()->use(std::vector<AnnouncedRange>(capacity));
    Section section(lock_);
    groups = lane_.trace().use(std::move(groups), true);
}

void Engine::trace_stop() {
    std::vector<Group> groups(Trace::window);
    announcements()->use({});
    Section section(lock_);
    groups = lane_.trace().use(std::move(groups), false);
}

std::int64_t Engine::trace_read(std::vector<Group> *groups, std::vector<AnnouncedRange> *ranges) {
    static constexpr std::size_t part = 1024;
    std::uint64_t next = 0, lost = 0;
    for (std::size_t before = 1; before != groups->size();) {
        before = groups->size();
        groups->reserve(before + part);
        Section section(lock_);
        next = lane_.trace().read(next, part, groups);
        lost = lane_.trace().lost();
    }
    announcements()->read(ranges);
    return static_cast<std::int64_t>(lost);
}

// --- connections -----------------------------------------------------------------------------------------------------

std::int64_t Engine::connection_count() {
    Section section(lock_);
    return static_cast<std::int64_t>(connections_.size());
}

int Engine::add(Connection number, int descriptor, bool is_accepted, Micros at_us) {
    Section section(lock_);
    return connections_.add(number, descriptor, is_accepted, at_us);
}

bool Engine::knows(Connection connection) {
    Section section(lock_);
    return connections_.find(connection) != nullptr;
}

bool Engine::is_broken(Connection connection) {
    Section section(lock_);
    const Channel *channel = connections_.find(connection);
    return channel != nullptr && !channel->takes_frames();
}

bool Engine::is_accepted(Connection connection) {
    Section section(lock_);
    const Channel *channel = connections_.find(connection);
    return channel != nullptr && channel->accepted;
}

bool Engine::needs_drain(Connection connection) {
    Section section(lock_);
    return connections_.needs_drain(connection);
}

bool Engine::is_crowded() {
    Section section(lock_);
    return connections_.is_crowded();
}

void Engine::favour(Connection connection) {
    Section section(lock_);
    connections_.favour(connection);
}

void Engine::send_frame(Connection connection, Span frame) {
    Section section(lock_);
    produces_.send_behind(connection, frame);
}

void Engine::close_connection(Connection connection) {
    Section section(lock_);
    connections_.close(connection);
}

void Engine::break_off(Connection connection) {
    Section section(lock_);
    connections_.break_off(connection);
}

void Engine::close_all(Micros at_us) {
    Section section(lock_);
    connections_.close_all(at_us);
}

std::vector<Connection> Engine::overdue(Micros at_us, Micros partial_us_max, Micros idle_us_max, Micros connect_us_max) {
    Section section(lock_);
    return connections_.overdue(at_us, partial_us_max, idle_us_max, connect_us_max);
}

Connection Engine::oldest_silent(Micros at_us, Micros silent_us_min) {
    Section section(lock_);
    return connections_.oldest_silent(at_us, silent_us_min);
}

}  // namespace fastquorum::node
