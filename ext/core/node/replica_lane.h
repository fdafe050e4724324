// A replica's lane and the end of its log, and whether anything may still be sent: the part that all others work on.
//
// All under the lane lock, but where it says otherwise. Every call of the lane that may fail goes through `check`.
//
// While the lane is frozen or closed raft/ decides: frames and syncs' ends are kept for Python,
// and the log is storage.Log's again. A failed sync latches under the lock, before anybody is told (rule 5).
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "../lane/lane.h"
#include "clock.h"
#include "hooks.h"
#include "limits.h"
#include "log.h"
#include "news.h"

namespace fastquorum::node {

// At the log's end, for an append.
struct Room {
    std::int64_t size_bytes = 0;
    std::int64_t record_count = 0;
};

class ReplicaLane {
   public:
    ReplicaLane(lane::Identity identity, lane::Outputs &outputs, std::int64_t batch_bytes_max, NewsQueue &news)
        : batch_bytes_max_(batch_bytes_max), news_(news), lane_(std::move(identity), log_, outputs, batch_bytes_max) {}
    ReplicaLane(const ReplicaLane &) = delete;
    ReplicaLane &operator=(const ReplicaLane &) = delete;

    lane::Lane &lane() noexcept { return lane_; }
    NodeLog &log() noexcept { return log_; }
    Trace &trace() noexcept { return log_.trace(); }

    bool is_leader() const noexcept { return lane_.mode() == lane::Mode::leader; }
    bool is_follower() const noexcept { return lane_.mode() == lane::Mode::follower; }
    bool is_closed() const noexcept { return lane_.mode() == lane::Mode::closed; }
    bool is_frozen() const noexcept { return lane_.is_frozen(); }

    // --- what ends it ------------------------------------------------------------------------------------------------

    bool has_failed() const noexcept { return latch_.load(std::memory_order_acquire); }  // from any thread
    bool was_cut_off() const noexcept { return was_cut_off_; }
    bool is_stopped() const noexcept { return is_stopped_; }
    bool may_send() const noexcept { return !is_stopped_ && !has_failed() && !lane_.has_failed(); }

    void stop() noexcept { is_stopped_ = true; }

    void latch() noexcept {
        lane_.on_flush_failed();
        latch_.store(true, std::memory_order_release);
    }

    // Of every call of the lane: false means that the log cut it off. Then nothing is sent or accepted any more.
    void check(bool went_well) noexcept {
        if (went_well) return;
        latch();
        was_cut_off_ = true;
        news_.rouse();
    }

    // What a Section was about cannot be finished, and nothing may be built on that: the replica ends, and says why.
    void lack_memory() noexcept {
        lacks_memory_ |= log_.failure() == Failure::none;  // what fails after it follows from it
        check(false);
    }

    // Why the log cut the lane off.
    Failure failure(int *error, Offset *offset) const noexcept {
        if (lacks_memory_) {
            *error = ENOMEM;
            return Failure::memory;
        }
        *error = log_.failure_errno();
        *offset = log_.failure_offset();
        return log_.failure();
    }

    // --- its work ----------------------------------------------------------------------------------------------------

    // Write and send what gathered.
    void push() { check(lane_.push(now_us())); }

    // Frozen from here on; what was handed up or unparked meanwhile is in the news.
    void freeze() { check(lane_.freeze()); }

    void serve(Connection connection, Span frame, Micros at_us) {
        Trace &trace = log_.trace();
        const Nanos received = now_ns();
        trace.begin(received);
        check(lane_.on_frame(connection, frame, at_us));
        if (trace.awaits(Stage::acked)) trace.acked(lane_.acked_end(), received);
    }

    // What is due by now. When the next is; never: nothing is.
    Micros tick() {
        Micros deadline = lane_.is_frozen() || lane_.has_failed() ? never : lane_.deadline_us();
        if (deadline != never && deadline <= now_us()) {
            check(lane_.on_tick(now_us()));
            deadline = lane_.deadline_us();
        }
        return deadline;
    }

    // A sync ended. Of one that is storage.Log's the news tell.
    void synced(std::int64_t token, int error, Micros at_us) {
        if (error != 0) latch();
        if (!log_.owns(token)) {
            Event event{EventKind::synced};
            event.token = token;
            event.error = error;
            news_.push(std::move(event));
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

    // A majority surely followed this lead at some time in the last `within_us`; it led until then.
    bool is_confirmed(Micros within_us, Micros at_us) const noexcept {
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

    void observers_informed() noexcept {
        are_observers_awaited_.store(false, std::memory_order_relaxed);
        news_.rouse();
    }

    // --- room at the log's end ---------------------------------------------------------------------------------------

    // Would an append now only gather in memory, without a system call?
    bool gathers(std::int64_t size_bytes, std::int64_t count, std::int64_t most_bytes, bool is_pushed_later) noexcept {
        return lane_.gathers(size_bytes, count, is_pushed_later) && log_.has_zeros(lane_.gathered_bytes() + most_bytes);
    }

    // Behind what gathered. What is too large for a batch is the lane's to refuse, and no other role appends.
    bool make_room_for_batch(std::int64_t count, std::int64_t size_bytes, std::int64_t most_bytes) {
        if (!is_leader() || size_bytes > batch_bytes_max_) return true;
        return make_room(lane_.gathered_bytes(), {std::min(most_bytes, batch_bytes_max_), count});
    }

    // A leader writes nothing of what comes: what gathered has its room. The records are counted by the lane, which reads the frame.
    bool make_room_for_frame(Span frame) { return !is_follower() || make_room(0, {frame.size, 0}); }

    // Room at the log's end, which it had not; of 0 bytes: none is wanted. The lane is frozen until it was looked for.
    Room room_wanted() const noexcept { return room_wanted_; }
    void room_sought() noexcept { room_wanted_ = {}; }

   private:
    // False: the segment is full, or the file system. The lane is frozen then, which writes what gathered, and Python rolls, or finds
    // that it cannot. No record that gathered is smaller than a byte; those of a compressed batch may be.
    bool make_room(std::int64_t gathered_bytes, Room wanted) {
        if (is_closed() || lane_.is_frozen() || !log_.is_lent()) return true;
        if (log_.make_room(gathered_bytes + wanted.size_bytes, gathered_bytes + wanted.record_count)) return true;
        check(log_.failure() == Failure::none && lane_.freeze());
        room_wanted_ = wanted;
        news_.rouse();
        return false;
    }

    const std::int64_t batch_bytes_max_;  // the largest batch, in bytes
    NewsQueue &news_;                     // told of what Python has to do
    NodeLog log_;                         // the log's end, while storage.Log lends it
    lane::Lane lane_;                     // what the protocol's steady state does with it
    Room room_wanted_;                    // see room_wanted()
    bool is_stopped_ = false;             // the node ends: nothing is accepted or sent any more
    bool was_cut_off_ = false;            // a call of the lane failed
    bool lacks_memory_ = false;           // and that was why
    std::atomic<bool> latch_{false};      // a sync failed, or the log cut the lane off; it never clears
    std::atomic<bool> are_observers_awaited_{false};  // see are_observers_awaited()
};

}  // namespace fastquorum::node
