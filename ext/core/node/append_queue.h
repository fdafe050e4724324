// Appends on their way to their commit, barriers, and who waits for either.
//
// All under the lane lock, but where it says otherwise. An append is admitted or refused by a verdict; its waiter is told
// when the high watermark passes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "../codes.h"
#include "../producers.h"
#include "clock.h"
#include "hooks.h"
#include "limits.h"
#include "mailbox.h"
#include "news.h"
#include "produce_answers.h"
#include "python_watch.h"
#include "replica_lane.h"
#include "section.h"

namespace fastquorum::node {

class AppendQueue {
   public:
    AppendQueue(const Limits &limits, ReplicaLane &lane, NewsQueue &news, LaneLock &lock, PythonWatch &watch, ProduceAnswers &produces) noexcept
        : limits_(limits), lane_(lane), news_(news), lock_(lock), watch_(watch), produces_(produces) {}
    AppendQueue(const AppendQueue &) = delete;
    AppendQueue &operator=(const AppendQueue &) = delete;

    Offset high_watermark() const noexcept { return high_watermark_.load(std::memory_order_relaxed); }  // from any thread
    Micros appended_us() const noexcept { return appended_us_.load(std::memory_order_relaxed); }          // from any thread
    void set_appended_us(Micros at_us) noexcept { appended_us_.store(at_us, std::memory_order_relaxed); }

    // Records and bytes that wait for their commit.
    std::int64_t records() const noexcept { return records_; }
    std::int64_t bytes() const noexcept { return bytes_; }

    // --- appends -----------------------------------------------------------------------------------------------------

    // Would an append now only gather in memory, without a system call?
    bool gathers(std::int64_t size_bytes, std::int64_t count, bool is_pushed_later) noexcept {
        return !lane_.is_stopped() && !holds_appends_ && !refuses_appends_ && !watch_.is_given_up() &&
               lane_.gathers(size_bytes, count, batch_bytes(size_bytes, count), is_pushed_later);
    }

    // Append; the waiter is told when it is committed, if the answer is an offset. Else a verdict, and the waiter is untouched.
    // An append that finds raft/ deciding is kept by its caller: what comes after it waits behind it. `has_waited`: it is one of
    // those, and its turn has come.
    Offset append(const Slice *values, std::int64_t count, std::int64_t size_bytes, std::int64_t timestamp_ms, Micros at_us, Waiter &waiter,
                  bool has_waited, bool is_pushed_later) {
        const Offset refused = admit(count, size_bytes, batch_bytes(size_bytes, count), has_waited);
        if (refused != 0) return noted(refused);
        lane_.trace().begin(at_us * ns_per_us);
        return noted(appended(lane_.lane().append(values, count, timestamp_ms, at_us, is_pushed_later), count, size_bytes, at_us, waiter));
    }

    // A client's batch, stamped here. One that its producer has in the log already is not appended again: its waiter shares the
    // first one's fate. `admits_new`: its producer may be one of which nothing is known.
    Offset append_encoded(std::uint8_t *batch, std::int64_t size, std::int64_t count, std::int64_t timestamp_ms, Micros at_us, Waiter &waiter,
                          bool has_waited, bool admits_new) {
        // Judged when it is this batch's turn: one that waits may be what makes it its producer's next.
        if (waits_for_raft(has_waited)) return noted(verdict_frozen);
        ProducedBatch there;
        const Offset judged = judge_producer(read_header(batch), admits_new, &there);
        if (judged < 0) return judged;
        if (judged > 0) {
            join(there.base_offset, there.end_offset, waiter);
            return there.base_offset;
        }
        return noted(append_next(batch, size, count, timestamp_ms, at_us, waiter, has_waited));
    }

    // The same of a batch that was found to be its producer's next, or nobody's. `verdict_frozen` holds nothing up here: whoever
    // is given it does not wait.
    Offset append_next(std::uint8_t *batch, std::int64_t size, std::int64_t count, std::int64_t timestamp_ms, Micros at_us, Waiter &waiter,
                       bool has_waited) {
        const Offset refused = admit(count, size, size, has_waited);
        if (refused != 0) return refused;
        lane_.trace().begin(at_us * ns_per_us);
        return appended(lane_.lane().append_encoded(batch, size, count, timestamp_ms, at_us), count, size, at_us, waiter);
    }

    // Is it its producer's next batch, or nobody's, and need it not wait for raft/'s decision?
    bool is_next(const BatchHeader &batch) const {
        ProducedBatch there;
        return !waits_for_raft(false) && judge_producer(batch, false, &there) == 0;
    }

    // Of a batch that is in the log already: the waiter is told when it is committed. Or a verdict.
    Offset await_commit(Offset base_offset, Offset end_offset, Waiter &waiter) {
        if (lane_.is_stopped()) return verdict_stopped;
        if (lane_.has_failed()) return verdict_failed;
        if (!lane_.is_leader()) return verdict_not_leader;
        join(base_offset, end_offset, waiter);
        return base_offset;
    }

    // Appends wait for raft/'s decision: whatever comes waits behind them, until none is left.
    void hold() noexcept { holds_appends_ = true; }
    void release() noexcept { holds_appends_ = false; }

    // Appends are refused as by one who does not lead, though this one may, and Fetches are served.
    void refuse(bool refuse) noexcept { refuses_appends_ = refuse; }

    // Everybody who waits for a commit is told `code` instead.
    void fail_pending(std::int64_t code) {
        for (Pending &each : pending_) {
            give_room_back(each.record_count, each.size_bytes);
            tell(each.waiter, code);
        }
        for (auto &[end_offset, each] : joined_) tell(each.waiter, code);
        pending_.clear();
        joined_.clear();
    }

    // --- commits -----------------------------------------------------------------------------------------------------

    void advance(Offset high_watermark) {
        if (high_watermark <= high_watermark_) return;
        high_watermark_ = high_watermark;
        lane_.trace().committed(high_watermark, now_ns());
        if (lane_.is_leader()) complete();
        if (std::exchange(is_commit_watched_, false)) news_.rouse();
    }

    // The next time the high watermark moves, the replica's thread is told.
    void watch_commit() noexcept { is_commit_watched_ = true; }

    // --- barriers ----------------------------------------------------------------------------------------------------

    std::int64_t begin_barrier(Waiter &waiter) {
        if (lane_.is_stopped()) return verdict_stopped;
        // Known before it begins: it may be over at once.
        barriers_.push_back(std::move(waiter));
        const std::int64_t number = lane_.lane().begin_barrier(now_us());
        if (number == verdict_cut_off) {
            lane_.check(false);
            return 0;  // begun: it fails when the lane is closed
        }
        if (number < 0) {
            waiter = std::move(barriers_.back());
            barriers_.pop_back();
        }
        return number;
    }

    // The first one is over; of a negative high watermark: it failed.
    void barrier_done(Offset high_watermark) {
        tell(barriers_.front(), high_watermark >= 0 ? high_watermark : barrier_failure_);
        barriers_.pop_front();
    }

    // What a barrier that fails is told from now on.
    void set_barrier_failure(std::int64_t code) noexcept { barrier_failure_ = code; }

   private:
    // An append in the log, and who waits for its commit.
    struct Pending {
        Offset end_offset;
        Offset base_offset;
        std::int64_t record_count;
        std::int64_t size_bytes;
        Waiter waiter;
    };

    // What values of so many bytes take in a batch, at most.
    static std::int64_t batch_bytes(std::int64_t size_bytes, std::int64_t count) noexcept {
        return header_bytes + size_bytes + lane::record_overhead_max * count;
    }

    // 0, or a verdict. `most_bytes`: of the batch that it may become.
    Offset admit(std::int64_t count, std::int64_t size_bytes, std::int64_t most_bytes, bool has_waited) {
        if (lane_.is_stopped()) return verdict_stopped;
        if (lane_.has_failed()) return verdict_failed;
        if (refuses_appends_ || watch_.is_given_up()) return verdict_not_leader;
        const Offset refused = take_room(count, size_bytes);
        if (refused != 0) return refused;
        if ((holds_appends_ && !has_waited) || !lane_.make_room_for_batch(count, size_bytes, most_bytes)) {
            give_room_back(count, size_bytes);
            return lane_.is_leader() ? verdict_frozen : verdict_not_leader;
        }
        return 0;
    }

    Offset noted(Offset offset) noexcept {
        if (offset == verdict_frozen) hold();
        return offset;
    }

    // Room for records that wait; 0 or a verdict.
    Offset take_room(std::int64_t count, std::int64_t size_bytes) noexcept {
        if (records_ > 0 && records_ + count > limits_.records_max) return verdict_records_overloaded;
        if (bytes_ > 0 && bytes_ + size_bytes > limits_.bytes_max) return verdict_bytes_overloaded;
        records_ += count;
        bytes_ += size_bytes;
        return 0;
    }
    void give_room_back(std::int64_t count, std::int64_t size_bytes) noexcept {
        records_ -= count;
        bytes_ -= size_bytes;
    }

    // Must an append wait for raft/'s decision, or behind those that do? What is wrong with it is said when its turn comes.
    bool waits_for_raft(bool has_waited) const noexcept {
        return lane_.is_leader() && !lane_.is_stopped() && !lane_.has_failed() && ((holds_appends_ && !has_waited) || lane_.is_frozen());
    }

    // 0: it is its producer's next, or nobody's; 1: it lies `there` already; or a verdict: what is not seen from here, Python looks
    // at. While the log is storage.Log's nothing is appended anyway.
    Offset judge_producer(const BatchHeader &batch, bool admits_new, ProducedBatch *there) const {
        const NodeLog &log = lane_.log();
        if (batch.producer_id < 0 || !lane_.is_leader() || !log.is_lent()) return 0;
        const Producers &producers = *log.loan().producers;
        if (producers.end_offset() != log.loan().end_offset) return verdict_producers_behind;
        std::int64_t expected;
        switch (producers.check(stamp_of(batch), there, &expected)) {
            case Producers::Verdict::next: return 0;
            case Producers::Verdict::unknown: return admits_new ? 0 : verdict_not_next;
            case Producers::Verdict::duplicate: return 1;
            default: return verdict_not_next;
        }
    }

    Offset appended(Offset offset, std::int64_t count, std::int64_t size_bytes, Micros at_us, Waiter &waiter) {
        if (offset < 0) {
            give_room_back(count, size_bytes);
            lane_.check(offset != verdict_cut_off);
            return offset;
        }
        appended_us_ = at_us;
        waiter.appended_us = at_us;
        if (offset >= lane_.log().end_offset()) lane_.trace().gathers();
        pending_.push_back({offset + count, offset, count, size_bytes, std::move(waiter)});
        return offset;
    }

    // Told when what is in the log already is committed.
    void join(Offset base_offset, Offset end_offset, Waiter &waiter) {
        joined_.emplace(end_offset, Pending{end_offset, base_offset, 0, 0, std::move(waiter)});
        complete();
    }

    void complete() {
        while (!pending_.empty() && pending_.front().end_offset <= high_watermark_) {
            Pending &first = pending_.front();
            give_room_back(first.record_count, first.size_bytes);
            tell(first.waiter, first.base_offset);
            pending_.pop_front();
        }
        while (!joined_.empty() && joined_.begin()->first <= high_watermark_) {
            tell(joined_.begin()->second.waiter, joined_.begin()->second.base_offset);
            joined_.erase(joined_.begin());
        }
    }

    // A thread or Python by the Section, a producer by an answer.
    void tell(Waiter &waiter, std::int64_t result) {
        allocate_at(Point::memory_for_waiter);
        if (waiter.slot || waiter.box) return lock_.section().post(waiter, result);
        if (!produces_.answer(waiter.produce, result >= 0 ? 0 : not_leader_or_follower, result)) return;
        Trace &trace = lane_.trace();
        trace.announcements()->note_one(result, trace.stamp(waiter.appended_us), now_ns());
    }

    const Limits &limits_;                        // of what may wait
    ReplicaLane &lane_;                           // it appends
    NewsQueue &news_;                             // Python is told when a watched commit comes
    LaneLock &lock_;                              // its Section tells threads and Python
    PythonWatch &watch_;                          // a lead that was given up takes nothing
    ProduceAnswers &produces_;                    // it tells producers
    std::deque<Pending> pending_;                 // appends, in the order of the log
    std::multimap<Offset, Pending> joined_;       // by their ends, who waits for the commit of what others have appended
    std::deque<Waiter> barriers_;                 // in the order in which they began, which they end in
    std::int64_t barrier_failure_ = verdict_not_leader;  // see set_barrier_failure()
    std::int64_t records_ = 0;                    // of `pending_`
    std::int64_t bytes_ = 0;                      // of `pending_`, their values'
    bool holds_appends_ = false;                  // see hold()
    bool refuses_appends_ = false;                // see refuse()
    bool is_commit_watched_ = false;              // see watch_commit()
    std::atomic<Offset> high_watermark_{lane::unknown_offset};  // everything below it is committed
    std::atomic<Micros> appended_us_{0};          // of the last append, or when the lead began
};

}  // namespace fastquorum::node
