// The native shell around the lane: one lock, one thread for sockets, one for syncs, and whoever appends. No GIL anywhere.
//
// | state | who | under |
// |---|---|---|
// | lane, log, channels, pending appends, barriers, mailboxes, events | everybody | the lane lock (`mutex_`) |
// | splitters, descriptors being closed | the sockets' thread | nobody else touches them |
// | a sync under way | whoever took the job: the flusher, or on a follower the sockets' thread | its files, shared |
//
// A `Section` is one critical section: epoch check, offset, write, claim of parked Fetches and sends (rule 3). What it brings
// about for others - a sync to be done, threads to be woken - is done when the lock is free again. Nobody who holds the
// lock ever waits for the GIL.
//
// What the quorum lives by goes first. The sockets' thread waits on one epoll set, in which are the connections that voters
// fetch on and those that this node made; all others, strangers', are in a second set inside of it. It serves at most a slice
// of the strangers' before it looks at the first set again, and Python is given at most a slice of theirs at once.
//
// While the lane is frozen or closed raft/ decides: frames and syncs' ends are kept for Python,
// and the log is storage.Log's again. A failed sync latches under the lock, before anybody is told (rule 5).
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../lane/lane.h"
#include "beats.h"
#include "channel.h"
#include "events.h"
#include "log.h"
#include "mailbox.h"
#include "produce_deadlines.h"

namespace fastquorum::node {

using ChannelRef = std::shared_ptr<Channel>;

inline constexpr std::int64_t waiting_max = 64;  // frames of one connection kept for Python, beyond which it is not read from
inline constexpr std::int64_t waiting_bytes_max = 4 * 1024 * 1024;
inline constexpr std::int64_t receive_bytes = 1024 * 1024;
inline constexpr std::int64_t slice_bytes = 16 * 1024;  // of strangers' at once, but for the rest of a frame: less than a millisecond's
inline constexpr std::int64_t crowded_slice_bytes = 1024;  // when the node keeps too much
inline constexpr int slice_connections = 64;            // of strangers' that are looked at together, at most
inline constexpr std::size_t slice_events = 256;        // of strangers' that Python is given together
inline constexpr std::uint64_t control_source = 0;      // in an epoll set, where connections have their numbers
inline constexpr std::uint64_t strangers_source = ~std::uint64_t{0};
inline constexpr int alone_looks = 4;  // at a Python that takes no news, before a leader is given up: lost time is not taken for silence

// Further verdicts on an append, beside those of the lane.
inline constexpr Offset verdict_records_overloaded = -6;
inline constexpr Offset verdict_bytes_overloaded = -7;
inline constexpr Offset verdict_stopped = -8;
inline constexpr Offset verdict_producers_behind = -9;  // what is known of producers is not the log's end yet
inline constexpr Offset verdict_not_next = -10;         // neither its producer's next batch nor one of the last, as far as is seen here

struct HandedUp {
    Connection connection;
    std::vector<std::uint8_t> frame;
};

// A frame that Python has dealt with, and its size.
struct DoneFrame {
    Connection connection;
    std::int64_t size;
};

struct Unparked {
    Connection connection;
    std::int32_t correlation_id;
    int api_version;
};

// Everything for the replica's thread, taken at once.
struct News {
    std::deque<HandedUp> handed_up;
    std::deque<Event> events;
    std::vector<Unparked> unparked;
};

// Strangers' connections that were found to be ready, and how many of them were served. The sockets' thread's.
struct ReadyStrangers {
    epoll_event events[slice_connections];
    int count = 0;
    int served = 0;

    bool is_empty() const noexcept { return served == count; }
};

struct Pending {
    Offset end_offset;
    Offset base_offset;
    std::int64_t record_count;
    std::int64_t size_bytes;
    Waiter waiter;
};

// At the log's end, for an append.
struct Room {
    std::int64_t size_bytes = 0;
    std::int64_t record_count = 0;
};

struct Limits {
    std::int64_t frame_bytes_max = 0;
    std::int64_t records_max = 0;
    std::int64_t bytes_max = 0;
    Micros busy_poll_us = 0;
    Micros alone_us_max = 0;  // how long a leader may go on while Python takes no news; 0: for ever
};

// As Python's `node.io.clock.now_us`: it goes on while the machine sleeps.
inline Micros now_us() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return Micros{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

class Engine final : private lane::Outputs {
   public:
    Engine(lane::Identity identity, std::int64_t batch_bytes_max, Limits limits)
        : limits_(limits), batch_bytes_max_(batch_bytes_max), lane_(std::move(identity), log_, *this, batch_bytes_max) {}
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    ~Engine() {
        if (epoll_ >= 0) ::close(epoll_);
        if (strangers_ >= 0) ::close(strangers_);
        if (control_ >= 0) ::close(control_);
        if (news_ >= 0) ::close(news_);
        // What came, or was closed, after the threads had ended.
        for (const ChannelRef &channel : closing_) ::close(channel->fd);
        for (const auto &[number, channel] : channels_) ::close(channel->fd);
    }

    // 0, or the errno of what the system refuses.
    int start() {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        strangers_ = ::epoll_create1(EPOLL_CLOEXEC);
        control_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        news_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (epoll_ < 0 || strangers_ < 0 || control_ < 0 || news_ < 0) return errno;
        if (watch(epoll_, EPOLL_CTL_ADD, control_, EPOLLIN, control_source) != 0) return errno;
        if (watch(epoll_, EPOLL_CTL_ADD, strangers_, EPOLLIN, strangers_source) != 0) return errno;
        // Signals are for the threads of Python: none may land here.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int error = 0;
        try {
            sockets_ = std::thread(&Engine::run_sockets, this);
            flusher_ = std::thread(&Engine::run_flusher, this);
        } catch (const std::system_error &failure) {
            error = failure.code().value();
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (error != 0) end_threads();
        return error;
    }

    // End both threads, the sync under way first; descriptors of connections are closed. Idempotent.
    void end_threads() {
        {
            std::lock_guard guard(mutex_);
            ending_ = true;
        }
        flush_wanted_.notify_all();
        wake_sockets();
        if (flusher_.joinable()) flusher_.join();
        if (sockets_.joinable()) sockets_.join();
    }

    bool is_in_own_process() const noexcept { return process_ == ::getpid(); }
    int news_descriptor() const noexcept { return news_; }

    // Whoever forks holds the lock meanwhile, so that the child finds everything whole.
    void before_fork() { mutex_.lock(); }
    void after_fork() noexcept { mutex_.unlock(); }

    // After fork, in the child: the threads are not there, and the lock stays held. Only descriptors are let go of;
    // nothing here may be destroyed in the child.
    void abandon_in_child() noexcept {
        for (auto &[number, channel] : channels_) ::close(channel->fd);
        for (const ChannelRef &channel : closing_) ::close(channel->fd);  // the parent's thread closes its own
        ::close(epoll_);
        ::close(strangers_);
        ::close(control_);
        ::close(news_);
        epoll_ = strangers_ = control_ = news_ = -1;
    }

    // One critical section. One that is left by an exception, as there is no memory for what it was about, has ended the replica.
    class Section {
       public:
        explicit Section(Engine &engine, bool is_sockets_thread = false) : engine_(engine), is_sockets_thread_(is_sockets_thread) {
            hit(Point::before_lock);
            engine_.mutex_.lock();
            enter();
        }
        // Only if nobody else is in one: then `is_in` is true.
        Section(Engine &engine, std::try_to_lock_t) : engine_(engine), is_in_(engine.mutex_.try_lock()) {
            if (is_in_) enter();
        }
        Section(const Section &) = delete;
        Section &operator=(const Section &) = delete;
        ~Section() { leave(); }

        bool is_in() const noexcept { return is_in_; }

        void leave() noexcept {
            if (!is_in_) return;
            is_in_ = false;
            if (std::uncaught_exceptions() > uncaught_) engine_.lack_memory();
            const bool needs_flusher = engine_.needs_flusher(is_sockets_thread_);
            const bool needs_sockets = !is_sockets_thread_ && engine_.needs_sockets();
            const bool needs_python = std::exchange(engine_.has_news_, false);
            engine_.section_ = nullptr;
            engine_.mutex_.unlock();
            hit(Point::before_wake);
            if (needs_flusher) engine_.flush_wanted_.notify_one();
            for (const SlotRef &slot : slots_) slot->wake();
            for (const MailboxRef &box : boxes_) box->signal();
            if (needs_python) signal(engine_.news_);
            if (needs_sockets) signal(engine_.control_);
        }

        void post(Waiter &waiter, std::int64_t result) {
            const Trace &trace = engine_.log_.trace();
            allocate_at(Point::memory_for_waiter);
            if (waiter.slot) {
                slots_.push_back(waiter.slot);  // first: nothing is told that may have to be told again
                waiter.slot->set(result, trace.stamp(waiter.appended_us), trace.told());
                waiter.slot.reset();
            } else if (!waiter.box) {
                if (engine_.answer_produce(waiter.produce, result >= 0 ? 0 : not_leader_or_follower, result)) trace.told()->note_one(result, trace.stamp(waiter.appended_us), now_ns());
            } else {
                boxes_.push_back(waiter.box);
                if (!waiter.box->post(waiter.object, result, trace.stamp(waiter.appended_us), trace.told())) boxes_.pop_back();
            }
        }

       private:
        void enter() noexcept { engine_.section_ = this; }

        Engine &engine_;
        const bool is_sockets_thread_ = false;
        const int uncaught_ = std::uncaught_exceptions();
        bool is_in_ = true;
        std::vector<SlotRef> slots_;
        std::vector<MailboxRef> boxes_;
    };

    // --- everything below is called inside a Section, but where it says otherwise ---------------------------------------------

    lane::Lane &lane() noexcept { return lane_; }
    NodeLog &log() noexcept { return log_; }
    Offset high_watermark() const noexcept { return high_watermark_.load(std::memory_order_relaxed); }  // from any thread
    Micros appended_us() const noexcept { return appended_us_.load(std::memory_order_relaxed); }          // from any thread
    void set_appended_us(Micros at_us) noexcept { appended_us_.store(at_us, std::memory_order_relaxed); }
    bool has_failed() const noexcept { return latch_.load(std::memory_order_acquire); }  // from any thread
    bool was_cut_off() const noexcept { return was_cut_off_; }
    // Room at the log's end, which it had not; of 0 bytes: none is wanted. The lane is frozen until it was looked for.
    Room room_wanted() const noexcept { return room_wanted_; }
    void room_sought() noexcept { room_wanted_ = {}; }
    Micros flush_began_us() const noexcept { return flush_began_us_.load(std::memory_order_relaxed); }  // from any thread
    // From any thread. Only of a sync that is still under way: it may have ended since its beginning was looked at.
    void watch_flush_again(Micros from_us) noexcept {
        Micros began = flush_began_us();
        while (began != never && !flush_began_us_.compare_exchange_weak(began, from_us, std::memory_order_relaxed)) {
        }
    }

    // Of every call of the lane: false means that the log cut it off. Then nothing is sent or accepted any more.
    void check(bool went_well) noexcept {
        if (went_well) return;
        latch();
        was_cut_off_ = true;
        has_news_ = true;
    }

    void latch() noexcept {
        lane_.on_flush_failed();
        latch_.store(true, std::memory_order_release);
    }

    // Of a native thread, without the lock: as a Section that cannot be finished.
    void run_out_of_memory() noexcept {
        Section section(*this, true);
        lack_memory();
    }
    bool lacks_memory() const noexcept { return lacks_memory_; }

    bool may_send() const noexcept { return !is_stopped_ && !has_failed() && !lane_.has_failed(); }

    // --- callers ------------------------------------------------------------------------------------------------------------

    // Would an append now only gather in memory, without a system call?
    bool gathers(std::int64_t size_bytes, std::int64_t count, bool is_pushed_later) noexcept {
        return !is_stopped_ && !holds_appends_ && !refuses_appends_ && !is_given_up_ && lane_.gathers(size_bytes, count, is_pushed_later) &&
               log_.has_zeros(lane_.gathered_bytes() + batch_bytes(size_bytes, count));
    }

    // Python took no news for so long that the lead was given up; true once. From any thread.
    bool take_given_up() noexcept { return is_giving_up_.load(std::memory_order_relaxed) && is_giving_up_.exchange(false); }

    // A lead begins, or ends: Python's silence counts from now on.
    void watch_python_anew() noexcept {
        looks_ = 0;
        look_at_us_ = never;
        is_given_up_ = false;
        sockets_wanted_ = true;
    }

    // Appends are refused as by one who does not lead, though this one may, and Fetches are served.
    void refuse_appends(bool refuse) noexcept { refuses_appends_ = refuse; }

    // Write and send what gathered.
    void push() { check(lane_.push(now_us())); }

    // Have the sockets' thread do so, soon.
    void push_soon() noexcept {
        if (std::exchange(is_push_wanted_, true)) return;
        sockets_wanted_ = true;
    }

    // Append; the waiter is told when it is committed, if the answer is an offset. Else a verdict, and the waiter is untouched.
    Offset append(const Slice *values, std::int64_t count, std::int64_t size_bytes, std::int64_t timestamp_ms, Micros at_us, Waiter &waiter,
                  bool has_waited, bool is_pushed_later) {
        const Offset refused = admit_append(count, size_bytes, batch_bytes(size_bytes, count), has_waited);
        if (refused != 0) return refused;
        log_.trace().begin(at_us * ns_per_us);
        return appended(lane_.append(values, count, timestamp_ms, at_us, is_pushed_later), count, size_bytes, at_us, waiter);
    }

    // A client's batch, stamped here. One that its producer has in the log already is not appended again: its waiter shares the
    // first one's fate. `admits_new`: its producer may be one of which nothing is known.
    Offset append_encoded(std::uint8_t *batch, std::int64_t size, std::int64_t count, std::int64_t timestamp_ms, Micros at_us, Waiter &waiter,
                          bool has_waited, bool admits_new) {
        // Judged when it is this batch's turn: one that waits may be what makes it its producer's next.
        if (waits_for_raft(has_waited)) return lane::verdict_frozen;
        ProducedBatch there;
        const Offset judged = judge_producer(read_header(batch), admits_new, &there);
        if (judged < 0) return judged;
        if (judged > 0) {
            join(there.base_offset, there.end_offset, waiter);
            return there.base_offset;
        }
        return append_next(batch, size, count, timestamp_ms, at_us, waiter, has_waited);
    }

    // Of a batch that is in the log already: the waiter is told when it is committed. Or a verdict.
    Offset await_commit(Offset base_offset, Offset end_offset, Waiter &waiter) {
        if (is_stopped_) return verdict_stopped;
        if (has_failed()) return lane::verdict_failed;
        if (lane_.mode() != lane::Mode::leader) return lane::verdict_not_leader;
        join(base_offset, end_offset, waiter);
        return base_offset;
    }

    // Appends wait for raft/'s decision: whatever comes waits behind them, until none is left.
    void hold_appends() noexcept { holds_appends_ = true; }
    void release_appends() noexcept { holds_appends_ = false; }

    // Room for records that wait elsewhere; 0 or a verdict.
    Offset reserve(std::int64_t count, std::int64_t size_bytes) noexcept {
        if (records_ > 0 && records_ + count > limits_.records_max) return verdict_records_overloaded;
        if (bytes_ > 0 && bytes_ + size_bytes > limits_.bytes_max) return verdict_bytes_overloaded;
        records_ += count;
        bytes_ += size_bytes;
        return 0;
    }
    void release(std::int64_t count, std::int64_t size_bytes) noexcept {
        records_ -= count;
        bytes_ -= size_bytes;
    }
    std::int64_t records() const noexcept { return records_; }
    std::int64_t bytes() const noexcept { return bytes_; }

    std::int64_t begin_barrier(Waiter &waiter) {
        if (is_stopped_) return verdict_stopped;
        // Known before it begins: it may be over at once.
        barriers_.push_back(std::move(waiter));
        const std::int64_t number = lane_.begin_barrier(now_us());
        if (number == lane::verdict_cut_off) {
            check(false);
            return 0;  // begun: it fails when the lane is closed
        }
        if (number < 0) {
            waiter = std::move(barriers_.back());
            barriers_.pop_back();
        }
        return number;
    }

    // Everybody who waits for a commit is told `code` instead.
    void fail_pending(std::int64_t code) {
        for (Pending &each : pending_) {
            release(each.record_count, each.size_bytes);
            section_->post(each.waiter, code);
        }
        for (auto &[end_offset, each] : joined_) section_->post(each.waiter, code);
        pending_.clear();
        joined_.clear();
    }

    // What a barrier that fails is told from now on.
    void set_barrier_failure(std::int64_t code) noexcept { barrier_failure_ = code; }

    // The next time the high watermark moves, the replica's thread is told.
    void watch_commit() noexcept { is_commit_watched_ = true; }

    void advance(Offset high_watermark) {
        if (high_watermark <= high_watermark_) return;
        high_watermark_ = high_watermark;
        log_.trace().committed(high_watermark, now_ns());
        if (lane_.mode() == lane::Mode::leader) complete();
        if (std::exchange(is_commit_watched_, false)) has_news_ = true;
    }

    void stop() noexcept { is_stopped_ = true; }

    // --- raft's side ----------------------------------------------------------------------------------------------------------

    // Frozen from here on; what was handed up or unparked meanwhile is in the news.
    void freeze() { check(lane_.freeze()); }

    // The terms end. What their lane has sent and a socket has not taken yet must not leave later (rule 3): such a connection
    // is given up.
    void close_lane(lane::State *state) {
        check(lane_.close(state));
        watch_python_anew();
        for (auto &[number, channel] : channels_)
            if (channel->is_lanes_half_sent) break_off(*channel);
    }

    // Have Python look.
    void rouse_python() noexcept { has_news_ = true; }

    // All of what the quorum lives by, and then a slice of strangers' events; if there are more, there are news again.
    News take_news() {
        ++news_taken_;
        News taken;
        std::uint64_t count;
        (void)!::read(news_, &count, sizeof count);
        taken.handed_up.swap(handed_up_);
        taken.events.swap(events_);
        taken.unparked.swap(unparked_);
        for (std::size_t left = slice_events; left > 0 && !strangers_events_.is_empty(); --left) taken.events.push_back(strangers_events_.take());
        has_news_ |= !strangers_events_.is_empty();
        return taken;
    }

    // Frames that were taken are dealt with: their connections' next ones need not wait behind them.
    void frames_done(const std::vector<DoneFrame> &frames) {
        for (const auto &[connection, size] : frames) {
            crowd_.waiting_bytes -= waiting_size(size);
            Channel *channel = find(connection);
            if (channel == nullptr) continue;
            --channel->waiting;
            channel->waiting_bytes -= waiting_size(size);
            set_interest(*channel);
        }
        regard_crowd();
    }

    // A frame that waited for raft/, on a lane that goes on. False: room first, and then again.
    bool offer(Connection connection, Span frame, Micros at_us) {
        if (!make_room_for_frame(frame)) return false;
        serve(connection, frame, at_us);
        return true;
    }

    void synced(std::int64_t token, int error, Micros at_us) {
        if (error != 0) latch();
        if (!log_.owns(token)) {
            Event event{EventKind::synced};
            event.token = token;
            event.error = error;
            events_.push_back(std::move(event));
            has_news_ = true;
            return;
        }
        if (error == 0) error = hit(Point::before_flush_count);
        if (error != 0) {
            log_.flush_failed(error);
            check(false);
            return;
        }
        log_.flush_done();
        check(lane_.on_flushed(log_.generation(), log_.flushed_end(), at_us));
        if (hit(Point::after_flush_count) != 0) latch();
    }

    // Of storage.Log, while the log is its own: have these files synced.
    void submit(std::int64_t token, std::vector<FileRef> files) {
        job_token_ = token;
        job_files_ = std::move(files);
        has_job_ = true;
    }

    // A disk that does not answer, for tests.
    void hold_syncs(bool hold) noexcept {
        holds_syncs_.store(hold, std::memory_order_relaxed);
        flush_wanted_.notify_all();
    }

    // --- producers' connections -----------------------------------------------------------------------------------------------

    void serve_produce(ProduceService service) { produce_ = std::move(service); }

    void serve_beats(std::shared_ptr<SteadyBeats> beats, Micros confirmed_us_max) noexcept {
        beats_ = std::move(beats);
        beats_confirmed_us_max_ = confirmed_us_max;
    }

    // A majority surely followed this lead at some time in the last `within_us`; it led until then.
    bool is_confirmed(Micros within_us, Micros at_us) noexcept {
        const Micros confirmed_us = lane_.confirmed_us();
        return confirmed_us >= 0 && at_us - confirmed_us < within_us;
    }

    // Are observers awaited that have not named the offset yet? Then Python is told when none of them is left.
    bool await_observers(const std::vector<std::int32_t> &ids, Offset offset) noexcept {
        const bool are_awaited = lane_.await_observers(ids, offset);
        are_observers_awaited_.store(are_awaited, std::memory_order_relaxed);
        return are_awaited;
    }
    bool are_observers_awaited() const noexcept { return are_observers_awaited_.load(std::memory_order_relaxed); }  // from any thread

    // Python has dealt with so many frames of this connection, and owes it nothing.
    void settled(Connection connection, std::int64_t frames) noexcept {
        if (Channel *channel = find(connection)) channel->settled = frames;
    }

    // --- connections ----------------------------------------------------------------------------------------------------------

    std::size_t connection_count() const noexcept { return channels_.size(); }

    // Take over a socket, non-blocking; 0 or an errno, and the socket is still the caller's then.
    int add(Connection number, int descriptor, bool is_accepted, Micros at_us) {
        Channel *channel;
        try {
            allocate_at(Point::memory_for_connection);
            channel = channels_.emplace(number, std::make_shared<Channel>(number, descriptor, is_accepted, limits_.frame_bytes_max, at_us, crowd_))
                          .first->second.get();
        } catch (const std::bad_alloc &) {
            return ENOMEM;
        }
        channel->interest = is_accepted ? EPOLLIN : EPOLLOUT;
        if (watch(*channel, EPOLL_CTL_ADD) == 0) return 0;
        const int error = errno;
        channels_.erase(number);
        return error;
    }

    bool knows(Connection connection) const noexcept { return channels_.count(connection) != 0; }
    // Nothing is sent on it any more, though Python has not closed it yet.
    bool is_broken(Connection connection) const noexcept {
        const auto found = channels_.find(connection);
        return found != channels_.end() && found->second->broken;
    }
    bool is_accepted(Connection connection) const noexcept {
        const auto found = channels_.find(connection);
        return found != channels_.end() && found->second->accepted;
    }

    // A frame of Python's, behind the same gate as the lane's, and behind the answers to what was asked before.
    void send_frame(Connection connection, Span frame) {
        if (!may_send()) return;
        Channel *channel = find(connection);
        if (channel == nullptr || channel->produces.empty()) {
            transmit(connection, Frame{{frame, {}, {}}});
        } else if (!channel->broken) {
            sent(*channel, channel->hold(frame) ? Channel::Sent::later : Channel::Sent::broken);
        }
    }

    // Is the connection owed so much that no more answers are to be made for it? Then it is reported as drained when that has
    // changed.
    bool needs_drain(Connection connection) noexcept {
        Channel *channel = find(connection);
        if (channel != nullptr) channel->is_drain_wanted = channel->is_owed_enough();
        return channel != nullptr && channel->is_drain_wanted;
    }

    bool is_crowded() const noexcept { return crowd_.owed_bytes > crowd_bytes; }

    // A voter's: it is read from and sent to whatever is kept for others, and before them.
    void favour(Connection connection) {
        Channel *channel = find(connection);
        if (channel == nullptr || !channel->yields()) return;
        if (!channel->has_ended) watch(*channel, EPOLL_CTL_DEL);
        channel->is_favoured = true;
        // What came on it before goes before what comes, its end too.
        for (Event &event : strangers_events_.take_all(connection)) events_.push_back(std::move(event));
        if (!channel->has_ended && watch(*channel, EPOLL_CTL_ADD) != 0) break_off(*channel);
    }

    // Close; no report follows.
    void close(Connection connection) {
        const auto found = channels_.find(connection);
        if (found == channels_.end()) return;
        // At once, as the descriptor lives on in a forked child: nothing of it is to be reported any more.
        if (!found->second->has_ended) watch(*found->second, EPOLL_CTL_DEL);
        found->second->broken = found->second->is_closed = true;
        found->second->let_go();
        produce_deadlines_.forget(*found->second);
        for (const Event &event : strangers_events_.take_all(connection))
            if (event.kind == EventKind::frame) crowd_.waiting_bytes -= waiting_size(static_cast<std::int64_t>(event.frame.size()));
        closing_.push_back(std::move(found->second));
        channels_.erase(found);
        regard_crowd();
        sockets_wanted_ = true;
    }

    // Nothing is sent on it any more, and its end is reported.
    void break_off(Connection connection) {
        if (Channel *channel = find(connection)) break_off(*channel);
    }

    // The last words of those that have some go out as far as their sockets take them; then all are closed.
    void close_all(Micros at_us) {
        while (!channels_.empty()) {
            Channel &channel = *channels_.begin()->second;
            if (!channel.broken && channel.connected) channel.flush(at_us);
            close(channel.number);
        }
    }

    std::vector<Connection> overdue(Micros at_us, Micros partial_us_max, Micros idle_us_max, Micros connect_us_max) const {
        std::vector<Connection> found;
        for (const auto &[number, channel] : channels_)
            if (channel->is_overdue(at_us, partial_us_max, idle_us_max, connect_us_max)) found.push_back(number);
        return found;
    }

    // The accepted connection that has been silent longest, if for so long at least, but for voters'; no_connection if none has.
    Connection oldest_silent(Micros at_us, Micros silent_us_min) const {
        const Channel *oldest = nullptr;
        for (const auto &[number, channel] : channels_) {
            const Micros heard = channel->heard_us.load(std::memory_order_relaxed);
            if (channel->yields() && at_us - heard >= silent_us_min &&
                (oldest == nullptr || heard < oldest->heard_us.load(std::memory_order_relaxed)))
                oldest = channel.get();
        }
        return oldest == nullptr ? lane::no_connection : oldest->number;
    }

   private:
    // What a Section was about cannot be finished, and nothing may be built on that: the replica ends, and says why.
    void lack_memory() noexcept {
        lacks_memory_ |= log_.failure() == Failure::none;  // what fails after it follows from it
        check(false);
    }

    // --- lane::Outputs ----------------------------------------------------------------------------------------------------------

    void send(Connection connection, const Frame &frame) override {
        if (!may_send()) return;
        const bool asks = lane_.mode() == lane::Mode::follower;
        if (hit(asks ? Point::before_send_fetch_request : Point::before_send_fetch_response) != 0) return break_off(connection);
        transmit(connection, frame);
        if (log_.trace().awaits(Stage::sent)) log_.trace().sent(lane_.sent_end(), now_ns());
        if (Channel *channel = find(connection)) channel->is_lanes_half_sent |= channel->is_owed();
        if (hit(asks ? Point::after_send_fetch_request : Point::after_send_fetch_response) != 0) break_off(connection);
    }

    void hand_up(Connection connection, Span frame) override {
        HandedUp handed{connection, {}};
        if (!copied(frame, &handed.frame)) break_off(connection);  // empty it is no request, and its lane goes on all the same
        const auto size = static_cast<std::int64_t>(handed.frame.size());
        allocate_at(Point::memory_for_event);
        handed_up_.push_back(std::move(handed));
        count_waiting(connection, size);
        has_news_ = true;
    }

    void advanced(Offset high_watermark) override { advance(high_watermark); }

    void barrier_done(std::int64_t, Offset high_watermark) override {
        section_->post(barriers_.front(), high_watermark >= 0 ? high_watermark : barrier_failure_);
        barriers_.pop_front();
    }

    void unparked(Connection connection, std::int32_t correlation_id, int api_version) override {
        unparked_.push_back({connection, correlation_id, api_version});
        has_news_ = true;
    }

    void observers_informed() noexcept override {
        are_observers_awaited_.store(false, std::memory_order_relaxed);
        has_news_ = true;
    }

    // --- appends ----------------------------------------------------------------------------------------------------------------

    // What values of so many bytes take in a batch, at most.
    static std::int64_t batch_bytes(std::int64_t size_bytes, std::int64_t count) noexcept {
        return header_bytes + size_bytes + lane::record_overhead_max * count;
    }

    // 0, or a verdict. `most_bytes`: of the batch that it may become.
    Offset admit_append(std::int64_t count, std::int64_t size_bytes, std::int64_t most_bytes, bool has_waited) {
        if (is_stopped_) return verdict_stopped;
        if (has_failed()) return lane::verdict_failed;
        if (refuses_appends_ || is_given_up_) return lane::verdict_not_leader;
        const Offset refused = reserve(count, size_bytes);
        if (refused != 0) return refused;
        if ((holds_appends_ && !has_waited) || !make_room_for_batch(count, size_bytes, most_bytes)) {
            release(count, size_bytes);
            return lane_.mode() == lane::Mode::leader ? lane::verdict_frozen : lane::verdict_not_leader;
        }
        return 0;
    }

    // Must an append wait for raft/'s decision, or behind those that do? What is wrong with it is said when its turn comes.
    bool waits_for_raft(bool has_waited) const noexcept {
        return lane_.mode() == lane::Mode::leader && !is_stopped_ && !has_failed() && ((holds_appends_ && !has_waited) || lane_.is_frozen());
    }

    // 0: it is its producer's next, or nobody's; 1: it lies `there` already; or a verdict: what is not seen from here, Python looks
    // at. While the log is storage.Log's nothing is appended anyway.
    Offset judge_producer(const BatchHeader &batch, bool admits_new, ProducedBatch *there) const {
        if (batch.producer_id < 0 || lane_.mode() != lane::Mode::leader || !log_.is_lent()) return 0;
        const Producers &producers = *log_.loan().producers;
        if (producers.end_offset() != log_.loan().end_offset) return verdict_producers_behind;
        std::int64_t expected;
        switch (producers.check(stamp_of(batch), there, &expected)) {
            case Producers::Verdict::next: return 0;
            case Producers::Verdict::unknown: return admits_new ? 0 : verdict_not_next;
            case Producers::Verdict::duplicate: return 1;
            default: return verdict_not_next;
        }
    }

    // Told when what is in the log already is committed.
    void join(Offset base_offset, Offset end_offset, Waiter &waiter) {
        joined_.emplace(end_offset, Pending{end_offset, base_offset, 0, 0, std::move(waiter)});
        complete();
    }

    Offset append_next(std::uint8_t *batch, std::int64_t size, std::int64_t count, std::int64_t timestamp_ms, Micros at_us, Waiter &waiter,
                       bool has_waited) {
        const Offset refused = admit_append(count, size, size, has_waited);
        if (refused != 0) return refused;
        log_.trace().begin(at_us * ns_per_us);
        return appended(lane_.append_encoded(batch, size, count, timestamp_ms, at_us), count, size, at_us, waiter);
    }

    Offset appended(Offset offset, std::int64_t count, std::int64_t size_bytes, Micros at_us, Waiter &waiter) {
        if (offset < 0) {
            release(count, size_bytes);
            check(offset != lane::verdict_cut_off);
            return offset;
        }
        appended_us_ = at_us;
        waiter.appended_us = at_us;
        if (offset >= log_.end_offset()) log_.trace().gathers();
        pending_.push_back({offset + count, offset, count, size_bytes, std::move(waiter)});
        return offset;
    }

    // Behind what gathered. What is too large for a batch is the lane's to refuse, and no other role appends.
    bool make_room_for_batch(std::int64_t count, std::int64_t size_bytes, std::int64_t most_bytes) {
        if (lane_.mode() != lane::Mode::leader || size_bytes > batch_bytes_max_) return true;
        return make_room(lane_.gathered_bytes(), {std::min(most_bytes, batch_bytes_max_), count});
    }

    // A leader writes nothing of what comes: what gathered has its room. The records are counted by the lane, which reads the frame.
    bool make_room_for_frame(Span frame) { return lane_.mode() != lane::Mode::follower || make_room(0, {frame.size, 0}); }

    // False: the segment is full, or the file system. The lane is frozen then, which writes what gathered, and Python rolls, or finds
    // that it cannot. No record that gathered is smaller than a byte; those of a compressed batch may be.
    bool make_room(std::int64_t gathered_bytes, Room wanted) {
        if (lane_.mode() == lane::Mode::closed || lane_.is_frozen() || !log_.is_lent()) return true;
        if (log_.make_room(gathered_bytes + wanted.size_bytes, gathered_bytes + wanted.record_count)) return true;
        check(log_.failure() == Failure::none && lane_.freeze());
        room_wanted_ = wanted;
        has_news_ = true;
        return false;
    }

    void complete() {
        while (!pending_.empty() && pending_.front().end_offset <= high_watermark_) {
            Pending &first = pending_.front();
            release(first.record_count, first.size_bytes);
            section_->post(first.waiter, first.base_offset);
            pending_.pop_front();
        }
        while (!joined_.empty() && joined_.begin()->first <= high_watermark_) {
            section_->post(joined_.begin()->second.waiter, joined_.begin()->second.base_offset);
            joined_.erase(joined_.begin());
        }
    }

    // --- connections ------------------------------------------------------------------------------------------------------------

    Channel *find(Connection connection) const noexcept {
        const auto found = channels_.find(connection);
        return found == channels_.end() ? nullptr : found->second.get();
    }

    void transmit(Connection connection, const Frame &frame) {
        Channel *channel = find(connection);
        if (channel == nullptr || channel->broken) return;
        sent(*channel, channel->transmit(frame, now_us()));
    }

    void sent(Channel &channel, Channel::Sent outcome) {
        if (outcome == Channel::Sent::broken) {
            break_off(channel);
        } else {
            set_interest(channel);
            regard_crowd();
        }
    }

    // What is kept of all connections has changed.
    void regard_crowd() {
        if (!crowd_.regard()) return;
        for (auto &[number, channel] : channels_) set_interest(*channel);
    }

    void set_interest(Channel &channel) {
        if (channel.broken || channel.has_ended) return;
        if (channel.is_drain_wanted && !channel.is_owed_enough()) {
            channel.is_drain_wanted = false;
            report(EventKind::drained, channel);
        }
        unsigned wanted = EPOLLOUT;
        if (channel.connected) {
            const std::int64_t most = crowd_.waiting_bytes < crowd_bytes ? waiting_max : 1;
            channel.is_paused = channel.owed_bytes() > pause_bytes || channel.waiting >= most || channel.waiting_bytes >= waiting_bytes_max ||
                                channel.waits_in_crowd();
            wanted = (channel.is_paused ? 0u : static_cast<unsigned>(EPOLLIN)) | (channel.is_owed() ? static_cast<unsigned>(EPOLLOUT) : 0u);
        }
        if (wanted == channel.interest) return;
        channel.interest = wanted;
        watch(channel, EPOLL_CTL_MOD);
    }

    // 0, or not; see errno.
    static int watch(int set, int operation, int descriptor, unsigned interest, std::uint64_t source) noexcept {
        epoll_event event{};
        event.events = interest;
        event.data.u64 = source;
        return ::epoll_ctl(set, operation, descriptor, &event);
    }

    // In the set that it belongs to, with the interest that it has.
    int watch(const Channel &channel, int operation) const noexcept {
        return watch(channel.yields() ? strangers_ : epoll_, operation, channel.fd, channel.interest, static_cast<std::uint64_t>(channel.number));
    }

    void break_off(Channel &channel) {
        if (channel.broken) return;
        channel.broken = true;
        channel.let_go();
        end(channel);
        regard_crowd();
    }

    // Nothing more comes. Python is told, behind what came before, and closes it.
    void end(Channel &channel) {
        if (channel.has_ended) return;
        channel.has_ended = true;
        // It must not be reported again and again.
        watch(channel, EPOLL_CTL_DEL);
        report(EventKind::lost, channel);
    }

    void report(EventKind kind, const Channel &channel) {
        Event event{kind};
        event.connection = channel.number;
        event.error = channel.connect_error;
        tell_python(channel, std::move(event));
    }

    // Strangers' events wait behind those that the quorum lives by.
    void tell_python(const Channel &channel, Event event) {
        allocate_at(Point::memory_for_event);
        if (channel.yields()) {
            strangers_events_.push(std::move(event));
        } else {
            events_.push_back(std::move(event));
        }
        has_news_ = true;
    }

    void count_waiting(Connection connection, std::int64_t size) {
        crowd_.waiting_bytes += waiting_size(size);
        if (Channel *channel = find(connection)) {
            ++channel->waiting;
            channel->waiting_bytes += waiting_size(size);
            set_interest(*channel);
        }
        regard_crowd();
    }

    // --- the sockets' thread ------------------------------------------------------------------------------------------------------

    void run_sockets() {
        pthread_setname_np(pthread_self(), "fq-sockets");
        const std::unique_ptr<std::uint8_t[]> buffer(new (std::nothrow) std::uint8_t[receive_bytes]);
        if (buffer == nullptr) return run_out_of_memory();
        ReadyStrangers strangers;
        Micros deadline = never;
        bool goes_on = true;
        while (goes_on) {
            try {
                goes_on = serve_sockets(strangers, buffer.get(), &deadline);
            } catch (const std::bad_alloc &) {
                run_out_of_memory();
            }
        }
    }

    // One turn: what the quorum lives by, and then a slice of strangers'. False: it was the last.
    bool serve_sockets(ReadyStrangers &strangers, std::uint8_t *buffer, Micros *deadline_us) {
        epoll_event events[64];
        const int found = await(events, 64, strangers.is_empty() ? *deadline_us : 0);
        bool are_strangers_ready = !strangers.is_empty();
        for (int i = 0; i < found; ++i) {
            switch (events[i].data.u64) {
                case control_source:
                    std::uint64_t signals;
                    (void)!::read(control_, &signals, sizeof signals);
                    break;
                case strangers_source: are_strangers_ready = true; break;
                default: on_ready(static_cast<Connection>(events[i].data.u64), events[i].events, buffer);
            }
        }
        if (are_strangers_ready) serve_strangers(strangers, buffer);
        return end_turn(deadline_us);
    }

    // A slice of what they sent. Those that were found ready and are not in it have their turn before others are looked for.
    void serve_strangers(ReadyStrangers &ready, std::uint8_t *buffer) {
        if (ready.is_empty()) {
            ready.served = 0;
            ready.count = std::max(::epoll_wait(strangers_, ready.events, slice_connections, 0), 0);
        }
        std::int64_t served_bytes = 0;
        while (!ready.is_empty() && served_bytes < slice_bytes) {
            const epoll_event &event = ready.events[ready.served++];
            served_bytes += on_ready(static_cast<Connection>(event.data.u64), event.events, buffer);
        }
    }

    // What is done when all that was to be served in this turn was. False: it was the last turn.
    bool end_turn(Micros *deadline_us) {
        Section section(*this, true);
        for (const ChannelRef &channel : std::exchange(closing_, {})) {
            channel->set_partial(0);
            ::close(channel->fd);
        }
        regard_crowd();
        sockets_wanted_ = false;
        if (std::exchange(is_push_wanted_, false)) push();
        if (ending_) {
            for (auto &[number, channel] : channels_) ::close(channel->fd);
            channels_.clear();
            return false;
        }
        Micros deadline = lane_.is_frozen() || lane_.has_failed() ? never : lane_.deadline_us();
        if (deadline != never && deadline <= now_us()) {
            check(lane_.on_tick(now_us()));
            deadline = lane_.deadline_us();
        }
        sockets_deadline_us_ = deadline;
        expire_produces(now_us());
        const Micros produce_deadline = produce_deadlines_.earliest_us();
        if (produce_deadline != never && (deadline == never || produce_deadline < deadline)) deadline = produce_deadline;
        watch_python(now_us());
        if (look_at_us_ != never && (deadline == never || look_at_us_ < deadline)) deadline = look_at_us_;
        *deadline_us = deadline;
        return true;
    }

    // What Python alone can decide waits for it: elections, clients, whoever is to be fenced. A leader whose Python hangs, be it in a call
    // that holds the interpreter or at a disk, would keep its followers content for ever. It is asked to take its news now and
    // then; if it does not, time and again, nothing is taken or sent any more, so that others elect.
    void watch_python(Micros at_us) {
        if (limits_.alone_us_max == 0 || lane_.mode() != lane::Mode::leader || is_given_up_) {
            look_at_us_ = never;
            return;
        }
        if (look_at_us_ != never && at_us < look_at_us_) return;
        looks_ = look_at_us_ != never && news_taken_ == news_taken_seen_ ? looks_ + 1 : 0;
        news_taken_seen_ = news_taken_;
        look_at_us_ = at_us + limits_.alone_us_max / alone_looks;
        has_news_ = true;
        if (looks_ < alone_looks) return;
        is_given_up_ = true;
        is_giving_up_ = true;
        look_at_us_ = never;
        check(lane_.freeze());
    }

    // Until a socket has something, or the deadline. A thread that has gone to sleep takes a while to wake up: one that is
    // told to looks again and again first, and lets whoever wants the processor have it in between.
    int await(epoll_event *events, int count, Micros deadline) const noexcept {
        if (limits_.busy_poll_us > 0) {
            const Micros until = now_us() + limits_.busy_poll_us;
            do {
                const int found = ::epoll_wait(epoll_, events, count, 0);
                if (found != 0) return found;
                ::sched_yield();
            } while (now_us() < (deadline == never ? until : std::min(until, deadline)));
        }
        return ::epoll_wait(epoll_, events, count, timeout_ms(deadline));
    }

    static int timeout_ms(Micros deadline) noexcept {
        if (deadline == never) return -1;
        const Micros left = deadline - now_us();
        return left <= 0 ? 0 : static_cast<int>(std::min<Micros>((left + 999) / 1000, 60000));
    }

    // The bytes that came, and that left.
    std::int64_t on_ready(Connection number, unsigned mask, std::uint8_t *buffer) {
        ChannelRef channel;
        std::int64_t served_bytes = 0;
        std::int64_t most;
        {
            Section section(*this, true);
            const auto found = channels_.find(number);
            if (found == channels_.end() || found->second->broken || found->second->has_ended) return 0;
            channel = found->second;
            if (!channel->connected) {
                finish_connect(*channel);
                return 0;
            }
            if ((mask & EPOLLOUT) != 0) {
                const std::int64_t owed_bytes = channel->outbox_bytes;
                sent(*channel, channel->flush(now_us()));
                served_bytes = owed_bytes - channel->outbox_bytes;
            }
            if (channel->broken || (mask & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return served_bytes;
            // Since it was found to be ready it has come to owe, or to be owed, too much.
            if (channel->is_paused && (mask & (EPOLLHUP | EPOLLERR)) == 0) return served_bytes;
            most = receivable_bytes(*channel);
        }
        served_bytes += receive(channel, buffer, most);
        run_job_inline();
        return served_bytes;
    }

    void finish_connect(Channel &channel) {
        int error = 0;
        socklen_t size = sizeof error;
        sockaddr_storage own{}, peer{};
        socklen_t own_size = sizeof own, peer_size = sizeof peer;
        // The same name at both ends: TCP connected the socket to itself, as it may on a free ephemeral port.
        if (::getsockopt(channel.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0 ||
            ::getsockname(channel.fd, reinterpret_cast<sockaddr *>(&own), &own_size) != 0 ||
            ::getpeername(channel.fd, reinterpret_cast<sockaddr *>(&peer), &peer_size) != 0 ||
            (own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0)) {
            channel.connect_error = error != 0 ? error : ECONNREFUSED;
            break_off(channel);
            return;
        }
        channel.connected = true;
        channel.heard_us.store(now_us(), std::memory_order_relaxed);
        set_interest(channel);
        report(EventKind::connected, channel);
    }

    // How much may be read of it at once. Strangers' frames may be small, and many: of these a slice.
    std::int64_t receivable_bytes(const Channel &channel) const noexcept {
        const std::int64_t most = crowd_.is_full() ? crowded_receive_bytes : receive_bytes;
        const std::int64_t slice = crowd_.is_full() ? crowded_slice_bytes : slice_bytes;
        return channel.yields() ? std::min(most, std::max(slice, channel.splitter.missing_size())) : most;
    }

    // At most so many bytes; those that came.
    std::int64_t receive(const ChannelRef &channel, std::uint8_t *buffer, std::int64_t most) {
        hit(Point::before_receive);
        const ssize_t size = ::recv(channel->fd, buffer, most, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
        const Micros at_us = now_us();
        bool is_good = size > 0;
        if (is_good) {
            channel->heard_us.store(at_us, std::memory_order_relaxed);
            bool had_frame = false;
            is_good = channel->splitter.feed(buffer, size, [&](Span frame) {
                had_frame = true;
                return on_frame(*channel, frame, at_us);
            });
            if (channel->splitter.is_empty()) {
                channel->partial_since_us.store(never, std::memory_order_relaxed);
            } else if (had_frame || channel->partial_since_us.load(std::memory_order_relaxed) == never) {
                channel->partial_since_us.store(at_us, std::memory_order_relaxed);
            }
            count_partial(*channel, is_good ? channel->splitter.pending_size() : 0);
        }
        if (!is_good) {
            // The end of the stream, in the middle of a frame or not. What was begun is not acted upon.
            Section section(*this, true);
            if (channel->is_closed) return 0;
            if (size == 0) {
                end(*channel);  // perhaps of its own half only: what it has asked for is still answered
            } else {
                break_off(*channel);
            }
        }
        return std::max<std::int64_t>(size, 0);
    }

    void count_partial(Channel &channel, std::int64_t size) {
        if (size == 0 && !channel.has_partial()) return;
        channel.set_partial(size);
        Section section(*this, true);
        set_interest(channel);
        regard_crowd();
    }

    // False: nothing more of this connection is looked at.
    bool on_frame(Channel &channel, Span frame, Micros at_us) {
        Section section(*this, true);
        if (channel.broken) return false;
        channel.seen_frame.store(true, std::memory_order_relaxed);
        const bool is_lanes = channel.waiting == 0 && handed_up_.empty() && lane_.mode() != lane::Mode::closed && !lane_.is_frozen() &&
                              lane_.serves(channel.number);
        if (is_lanes && make_room_for_frame(frame)) {
            serve(channel.number, frame, at_us);
            return true;
        }
        if (take_produce(channel, frame, at_us) || answer_beat(channel, frame, at_us)) return true;
        Event event{EventKind::frame};
        event.connection = channel.number;
        if (!copied(frame, &event.frame)) {
            break_off(channel);
            return false;
        }
        ++channel.passed_up;
        tell_python(channel, std::move(event));
        count_waiting(channel.number, frame.size);
        return true;
    }

    // False: there is no memory for it.
    static bool copied(Span frame, std::vector<std::uint8_t> *copy) noexcept {
        try {
            copy->assign(frame.data, frame.data + frame.size);
        } catch (const std::bad_alloc &) {
            return false;
        }
        return true;
    }

    // Of a leader that goes on, and of a client that asks it alone: what a replica asks is answered in its own order.
    bool may_answer(const Channel &channel) const noexcept {
        if (lane_.mode() != lane::Mode::leader || lane_.is_frozen()) return false;
        return channel.accepted && !channel.is_pythons() && !lane_.serves(channel.number);
    }

    // A Produce that needs no Python. False: nothing has changed.
    bool take_produce(Channel &channel, Span frame, Micros at_us) {
        if (!produce_.is_open() || !may_answer(channel) || static_cast<std::int64_t>(channel.produces.size()) >= produce_.unanswered_max) return false;
        ProduceFields fields;
        BatchHeader batch;
        if (!produce_.parse(frame, &fields) || (fields.acks != -1 && fields.acks != 1) || !produce_.takes(fields.records, &batch)) return false;
        // What is there already may be answered before what was asked earlier, and what is refused needs words: both are Python's.
        ProducedBatch there;
        if (waits_for_raft(false) || judge_producer(batch, false, &there) != 0) return false;
        Waiter waiter;
        const Micros deadline = at_us + std::max<Micros>(fields.timeout_ms, 0) * 1000;
        // There is a place for whoever is in the log, also where memory runs out behind it.
        channel.produces.push_back({fields.correlation_id, fields.version, deadline});
        waiter.produce = {channel.number, channel.produces_taken++};
        // The frame lies in a buffer of the sockets' thread: the batch is given its place right there. A batch that is refused
        // is looked at again by Python, which gives it its place anew.
        const Offset offset = append_next(const_cast<std::uint8_t *>(fields.records.data), fields.records.size, batch.records_count,
                                          batch.max_timestamp_ms, at_us, waiter, false);
        if (offset < 0) {
            channel.produces.pop_back();
            --channel.produces_taken;
            return false;
        }
        produce_deadlines_.note(channel);
        return true;
    }

    // A heartbeat that needs no Python, unless something that came before it on its connection is to be answered first, or somebody
    // else may have been elected.
    bool answer_beat(Channel &channel, Span frame, Micros at_us) {
        if (!beats_ || !may_answer(channel) || !channel.produces.empty() || !may_send()) return false;
        BeatAnswer answer;
        if (!is_confirmed(beats_confirmed_us_max_, at_us)) return false;
        if (!beats_->answer(frame, lane_.epoch(), at_us, &answer)) return false;
        transmit(channel.number, Frame{{Span{answer.bytes, answer.size}, {}, {}}});
        return true;
    }

    // False: its time was over before and it was told so, or its connection is gone.
    bool answer_produce(const ProduceRef &to, std::int16_t error, Offset base_offset) {
        Channel *channel = find(to.connection);
        if (channel == nullptr || to.number != channel->produces_answered()) return false;
        answer_first_produce(*channel, error, base_offset);
        // It may have kept one waiting whose time is over.
        if (produce_deadlines_.note(*channel)) sockets_wanted_ = true;
        return true;
    }

    void answer_first_produce(Channel &channel, std::int16_t error, Offset base_offset) {
        // Sending may break the connection off, and with it all that waits there.
        const WaitingProduce to = channel.produces.front();
        channel.produces.pop_front();
        if (may_send()) {
            const std::vector<std::uint8_t> frame =
                produce_.answer(to, error, error == 0 ? base_offset : lane::unknown_offset, error == 0 ? log_.start_offset() : lane::unknown_offset);
            if (hit(Point::before_send_produce_response) != 0) break_off(channel);
            transmit(channel.number, Frame{{Span{frame.data(), static_cast<std::int64_t>(frame.size())}, {}, {}}});
            if (hit(Point::after_send_produce_response) != 0) break_off(channel);
        }
        if (!channel.produces.empty()) return;
        for (const std::vector<std::uint8_t> &frame : channel.take_held())
            if (may_send()) transmit(channel.number, Frame{{Span{frame.data(), static_cast<std::int64_t>(frame.size())}, {}, {}}});
        set_interest(channel);
    }

    // Those whose time is over are told so, in the order of their requests; what they appended may still be committed.
    void expire_produces(Micros at_us) {
        while (produce_deadlines_.is_due(at_us)) {
            Channel &channel = *channels_.at(produce_deadlines_.first());
            while (!channel.produces.empty() && channel.produces.front().deadline_us <= at_us)
                answer_first_produce(channel, request_timed_out, lane::unknown_offset);
            produce_deadlines_.forget(channel);
            produce_deadlines_.note(channel);
        }
    }

    void serve(Connection connection, Span frame, Micros at_us) {
        Trace &trace = log_.trace();
        const Nanos heard = now_ns();
        trace.begin(heard);
        check(lane_.on_frame(connection, frame, at_us));
        if (trace.awaits(Stage::acked)) trace.acked(lane_.acked_end(), heard);
    }

    void wake_sockets() noexcept { signal(control_); }

    static void signal(int descriptor) noexcept {
        const std::uint64_t one = 1;
        (void)!::write(descriptor, &one, sizeof one);
    }

    bool needs_sockets() noexcept {
        if (std::exchange(sockets_wanted_, false)) return true;
        if (lane_.is_frozen() || lane_.mode() != lane::Mode::leader) return false;
        const Micros deadline = lane_.deadline_us();
        if (deadline == never || (sockets_deadline_us_ != never && sockets_deadline_us_ <= deadline)) return false;
        sockets_deadline_us_ = deadline;
        return true;
    }

    // --- syncs ------------------------------------------------------------------------------------------------------------------

    // A follower's sockets' thread has nothing else to do: it syncs by itself, which spares two changes of threads.
    bool needs_flusher(bool is_sockets_thread) noexcept {
        if (!has_job_ && (!log_.has_job() || (is_sockets_thread && lane_.mode() == lane::Mode::follower))) return false;
        is_flusher_wanted_ = true;
        return true;
    }

    void run_job_inline() {
        std::vector<FileRef> files;
        std::int64_t token = 0;
        for (;;) {
            {
                std::lock_guard guard(mutex_);
                if (lane_.mode() != lane::Mode::follower || !log_.take_job(&files, &token)) return;
                flush_began_us_.store(now_us(), std::memory_order_relaxed);
            }
            run_job(files, token, true);
        }
    }

    void run_flusher() {
        pthread_setname_np(pthread_self(), "fq-flusher");
        bool goes_on = true;
        while (goes_on) {
            try {
                goes_on = serve_syncs();
            } catch (const std::bad_alloc &) {
                run_out_of_memory();
            }
        }
    }

    // Whatever is to be synced. False: nothing will be any more.
    bool serve_syncs() {
        for (;;) {
            std::vector<FileRef> files;
            std::int64_t token = 0;
            {
                std::unique_lock guard(mutex_);
                flush_wanted_.wait(guard, [this] { return ending_ || is_flusher_wanted_; });
                is_flusher_wanted_ = false;
                if (std::exchange(has_job_, false)) {
                    files = std::move(job_files_);
                    token = job_token_;
                    is_flusher_wanted_ = log_.has_job();
                } else if (!log_.take_job(&files, &token)) {
                    if (ending_) return false;
                    continue;
                }
                flush_began_us_.store(now_us(), std::memory_order_relaxed);
            }
            run_job(files, token, false);
        }
    }

    // No lock held. After a failed sync nothing is synced any more.
    void run_job(const std::vector<FileRef> &files, std::int64_t token, bool is_sockets_thread) {
        if (holds_syncs_.load(std::memory_order_relaxed)) {
            std::unique_lock guard(mutex_);
            flush_wanted_.wait(guard, [this] { return ending_ || !holds_syncs_.load(std::memory_order_relaxed); });
        }
        int error = has_failed() ? EIO : hit(Point::before_flush_submit);
        const Nanos began = now_ns();
        for (std::size_t i = 0; i < files.size() && error == 0; ++i) error = files[i]->sync();
        const Nanos ended = now_ns();
        if (error == 0) error = hit(Point::after_flush_submit);
        hit(Point::after_sync);
        Section section(*this, is_sockets_thread);
        flush_began_us_.store(never, std::memory_order_relaxed);
        log_.trace().synced(began, ended);
        synced(token, error, now_us());
    }

    const pid_t process_ = ::getpid();
    const Limits limits_;
    const std::int64_t batch_bytes_max_;
    std::mutex mutex_;
    std::condition_variable flush_wanted_;
    Section *section_ = nullptr;
    NodeLog log_;
    lane::Lane lane_;
    Crowd crowd_;  // channels count in it, and go before it
    std::unordered_map<Connection, ChannelRef> channels_;
    std::vector<ChannelRef> closing_;
    std::deque<HandedUp> handed_up_;
    std::deque<Event> events_;  // that the quorum lives by
    StrangersEvents strangers_events_;
    std::vector<Unparked> unparked_;
    std::deque<Pending> pending_;
    std::multimap<Offset, Pending> joined_;
    std::deque<Waiter> barriers_;
    std::int64_t barrier_failure_ = lane::verdict_not_leader;
    ProduceService produce_;
    std::shared_ptr<SteadyBeats> beats_;  // null: no controller is here
    Micros beats_confirmed_us_max_ = 0;
    ProduceDeadlines produce_deadlines_;
    std::int64_t records_ = 0;
    std::int64_t bytes_ = 0;
    bool holds_appends_ = false;
    std::atomic<Offset> high_watermark_{lane::unknown_offset};
    std::atomic<Micros> appended_us_{0};
    bool is_commit_watched_ = false;
    std::atomic<bool> are_observers_awaited_{false};
    bool has_news_ = false;
    bool sockets_wanted_ = false;
    bool is_push_wanted_ = false;
    bool is_stopped_ = false;
    bool was_cut_off_ = false;
    bool lacks_memory_ = false;
    Room room_wanted_;
    bool refuses_appends_ = false;
    bool ending_ = false;
    std::uint64_t news_taken_ = 0;  // how often Python took its news
    std::uint64_t news_taken_seen_ = 0;
    int looks_ = 0;  // in a row that found it had not
    Micros look_at_us_ = never;
    bool is_given_up_ = false;  // until the terms end
    std::atomic<bool> is_giving_up_{false};  // and Python does not know
    bool is_flusher_wanted_ = false;
    bool has_job_ = false;  // of storage.Log's
    std::int64_t job_token_ = 0;
    std::vector<FileRef> job_files_;
    Micros sockets_deadline_us_ = never;
    std::atomic<bool> latch_{false};
    std::atomic<bool> holds_syncs_{false};
    std::atomic<Micros> flush_began_us_{never};
    int epoll_ = -1;      // what the quorum lives by, and the next
    int strangers_ = -1;  // all others: an epoll set, too
    int control_ = -1;
    int news_ = -1;
    std::thread sockets_;
    std::thread flusher_;
};

}  // namespace fastquorum::node
