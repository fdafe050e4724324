// The native lane: the twin of kernels/pure/lane/lane.py, which names the seven rules and who writes what.
//
// Sans-IO, no clock, no lock of its own: every call is made under the shell's lane lock. A call that answers false, or
// verdict_cut_off, was cut off by the log, which has kept why; the shell then ends the replica.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../codes.h"
#include "context.h"
#include "follower.h"
#include "leader.h"
#include "mutation.h"
#include "ports.h"

namespace fastquorum::lane {

class Lane {
   public:
    Lane(Identity identity, Log &log, Outputs &out, std::int64_t batch_bytes_max)
        : context_(std::move(identity), log, out, batch_bytes_max), log_(log) {}

    Mode mode() const noexcept { return leader_ ? Mode::leader : follower_ ? Mode::follower : Mode::closed; }
    bool is_frozen() const noexcept { return is_frozen_; }
    std::int32_t epoch() const noexcept { return epoch_; }  // of the session, while it is open
    bool has_failed() const noexcept { return context_.has_failed; }
    Offset high_watermark() const noexcept {
        return leader_ ? leader_->high_watermark : follower_ ? follower_->high_watermark : high_watermark_;
    }
    Micros deadline_us() const noexcept { return leader_ ? leader_->deadline_us() : -1; }
    // Leader: nobody else was elected before this time; -1 unknown, or not a leader.
    Micros confirmed_us() const noexcept { return leader_ ? leader_->confirmed_us() : -1; }
    // Are this connection's frames the lane's business?
    bool serves(Connection connection) const noexcept {
        return leader_ ? leader_->serves(connection) : follower_ && follower_->serves(connection);
    }

    // --- raft's side ------------------------------------------------------------------------------------------------------

    // Rule 1: may this lead begin? The shell asks before it opens.
    bool may_lead(const LeaderSession &session) noexcept {
        if (mutated(Mutation::leads_without_a_leader_change)) return true;
        return log_.last_epoch() == session.epoch && session.epoch_start < log_.end_offset();
    }

    bool open_leader(const LeaderSession &session, Micros now_us) {
        leader_ = std::make_unique<LeaderLane>(context_, session);
        is_frozen_ = false;
        epoch_ = session.epoch;
        return context_.flush_rest() && go_on(now_us);
    }

    // Does this session follow the leader that the open lane follows already?
    bool follows(const FollowerSession &session) const noexcept {
        return follower_ && follower_->session.epoch == session.epoch && follower_->session.leader_id == session.leader_id;
    }

    bool open_follower(const FollowerSession &session, Micros now_us) {
        if (follower_) {
            follower_->renew(session);
        } else {
            follower_ = std::make_unique<FollowerLane>(context_, session);
        }
        is_frozen_ = false;
        epoch_ = session.epoch;
        return context_.flush_rest() && go_on(now_us);
    }

    bool attach_leader(Connection connection, int api_version, Micros now_us) {
        if (!follower_) return true;
        follower_->attach(connection, api_version);
        return go_on(now_us);
    }

    void detach(Connection connection) noexcept {
        if (leader_) leader_->detach(connection);
        if (follower_) follower_->detach(connection);
    }

    bool admit(const Admission &fetch, Micros now_us) {
        leader_->admit(fetch, now_us);
        return go_on(now_us);
    }

    // False: what gathered could not be written.
    bool freeze() {
        is_frozen_ = true;
        return !leader_ || context_.has_failed || mutated(Mutation::freezes_without_writing_what_gathered) || leader_->seal();
    }

    bool resume(Micros now_us) {
        is_frozen_ = false;
        if (mode() != Mode::closed && !context_.has_failed && !context_.flush_rest()) return false;
        return go_on(now_us);
    }

    // `state`: as freeze leaves it. False: what gathered could not be written; the lane is closed all the same.
    bool close(State *closing) {
        const bool is_whole = freeze();
        *closing = state();
        if (leader_) {
            leader_->unpark_all();
            context_.barriers.fail(context_.out);
        }
        if (mutated(Mutation::goes_on_after_close)) {
            is_frozen_ = false;
            return is_whole;
        }
        high_watermark_ = high_watermark();
        leader_.reset();
        follower_.reset();
        return is_whole;
    }

    State state() const {
        State now;
        now.mode = mode();
        now.epoch = epoch_;
        now.log_end = log_.end_offset();
        now.flushed_end = log_.flushed_end();
        now.high_watermark = high_watermark();
        if (leader_) now.peers = leader_->peer_states();
        if (follower_) {
            now.leader_contact_us = mutated(Mutation::tells_the_contacts_of_the_opening) ? -1 : follower_->leader_contact_us;
            now.fetch_sent_us = follower_->fetch_sent_us;
            now.fetch_in_flight = follower_->fetch_in_flight();
        }
        return now;
    }

    // --- the shell's side -------------------------------------------------------------------------------------------------

    // Rule 2: not while frozen; frames wait until raft/ has decided.
    bool on_frame(Connection connection, Span frame, Micros now_us) {
        if (context_.has_failed) return true;
        if (leader_) {
            const LeaderLane::Seen seen = leader_->on_frame(connection, frame, now_us);
            if (seen != LeaderLane::Seen::unusual) return seen == LeaderLane::Seen::steady;
        } else if (follower_) {
            const FollowerLane::Seen seen = follower_->on_frame(connection, frame, now_us);
            if (seen != FollowerLane::Seen::unusual) return seen == FollowerLane::Seen::steady;
        } else if (correlation_of(frame) >= correlation_first) {
            return true;  // a late answer to a Fetch of an earlier session
        }
        is_frozen_ = !mutated(Mutation::hands_up_without_freezing);
        context_.out.hand_up(connection, frame);
        return true;
    }

    // Rule 4: the log has learned of the sync before; false if it has not.
    bool on_flushed(std::int64_t generation, Offset end, Micros now_us) {
        if (generation != log_.generation() && !mutated(Mutation::ignores_the_generation)) return true;
        return end <= log_.flushed_end() && go_on(now_us);
    }

    void on_flush_failed() noexcept { context_.has_failed = !mutated(Mutation::forgets_a_failed_sync); }

    bool on_tick(Micros now_us) { return !leader_ || is_frozen_ || context_.has_failed || leader_->on_tick(now_us); }

    // `ids`: ascending. False: none of these observers is awaited; else `observers_informed` follows.
    bool await_observers(const std::vector<std::int32_t> &ids, Offset offset) noexcept {
        return leader_ && leader_->await_observers(ids, offset);
    }

    // --- the callers' side ------------------------------------------------------------------------------------------------

    Offset append(const Slice *values, std::int64_t count, std::int64_t timestamp_ms, Micros now_us, bool gathers = false) {
        const Offset refused = refusal();
        return refused != 0 ? refused : leader_->append(values, count, timestamp_ms, now_us, gathers);
    }

    // What was appended to be gathered is written and sent now, unless it is to wait for a sync's end or raft/'s decision.
    bool push(Micros now_us) { return refusal() != 0 || leader_->push(now_us); }

    Offset append_encoded(std::uint8_t *batch, std::int64_t size, std::int64_t record_count, std::int64_t timestamp_ms, Micros now_us) {
        const Offset refused = refusal();
        return refused != 0 ? refused : leader_->append_encoded(batch, size, record_count, timestamp_ms, now_us);
    }

    std::int64_t begin_barrier(Micros now_us) {
        const Offset refused = refusal();
        return refused != 0 ? refused : leader_->begin_barrier(now_us);
    }

    // Everything below it has been given to some socket; on a follower: has been asked for, and so acknowledged, last.
    Offset sent_end() const noexcept { return leader_ ? leader_->sent_end() : follower_ ? follower_->fetch_offset() : unknown_offset; }

    // Everything below it is on so many other voters' disks that with this one they are a majority; unknown if none leads here.
    Offset acked_end() const noexcept { return leader_ ? leader_->acked_end() : unknown_offset; }

    // Accepted, and not written yet.
    std::int64_t gathered_bytes() const noexcept { return leader_ ? leader_->gathered_bytes() : 0; }

    // Would this append make no system call, be it pushed at once or not?
    bool gathers(std::int64_t size_bytes, std::int64_t count, bool is_pushed_later) noexcept {
        return refusal() == 0 && leader_->has_room(size_bytes, count) && (is_pushed_later || leader_->needs_no_push());
    }

   private:
    // 0: appends are taken.
    Offset refusal() const noexcept {
        if (context_.has_failed) return verdict_failed;
        if (!leader_) return verdict_not_leader;
        return is_frozen_ ? verdict_frozen : 0;
    }

    // Do whatever has become possible, unless raft/ is deciding or a sync has failed.
    bool go_on(Micros now_us) {
        if ((is_frozen_ && !mutated(Mutation::sends_while_frozen)) || context_.has_failed) return true;
        if (leader_) return leader_->settle(now_us);
        if (follower_) follower_->fetch(now_us);
        return true;
    }

    Context context_;
    Log &log_;
    std::unique_ptr<LeaderLane> leader_;
    std::unique_ptr<FollowerLane> follower_;
    bool is_frozen_ = false;
    std::int32_t epoch_ = 0;
    Offset high_watermark_ = unknown_offset;
};

}  // namespace fastquorum::lane
