// The lane of a leader: the twin of kernels/pure/lane/leader.py. KIP-595 "Fetch"; KIP-1166.
//
// Group commit: a batch is written when the flusher is idle or a voter's Fetch waits for it; otherwise appends gather until
// the sync is reported, a voter fetches, or the batch is full. A written batch goes out to parked Fetches before it is
// synced here. A call that answers false was cut off by the log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "../codes.h"
#include "../epochs.h"
#include "../fetch_layout.h"
#include "../scan.h"
#include "context.h"
#include "mutation.h"
#include "observers.h"
#include "open_batch.h"
#include "peer.h"

namespace fastquorum::lane {

inline constexpr int endpoints_version_min = 17;  // Kafka's leader names its endpoint from here on, though 16 could
inline constexpr std::int64_t answer_bytes_max = 8 * 1024 * 1024;  // whatever the peer would take: everybody else waits
inline constexpr std::size_t peers_max = 256;  // remembered before those that are gone are forgotten
inline constexpr std::uint32_t correlation_ahead_max = static_cast<std::uint32_t>(correlation_first) + 1;

// Did it come after the other? They rise on each connection, and begin anew after the last.
inline bool is_ahead(std::int32_t correlation_id, std::int32_t other) noexcept {
    const std::uint32_t ahead = (static_cast<std::uint32_t>(correlation_id) - static_cast<std::uint32_t>(other)) & correlation_last;
    return ahead != 0 && ahead <= correlation_ahead_max;
}

inline constexpr Micros high_watermark_delay_us = 3000;  // how long a voter may be left behind it with nothing else to tell

class LeaderLane {
   public:
    LeaderLane(Context &context, LeaderSession session)
        : high_watermark(session.high_watermark),
          context_(context),
          log_(context.log),
          session_(std::move(session)),
          batch_(context.batch_bytes_max),
          observers_(context.out),
          own_index_(voter_index(context.identity.key)) {
        ends_.assign(session_.voters.size(), -1);
        sorted_.reserve(ends_.size());
        confirmed_us_.assign(session_.voters.size(), -1);
        context_.barriers.open(session_.voters.size(), own_index_);
        fixed_.topic_id = context_.identity.topic_id.bytes;
        fixed_.leader_id = context_.identity.key.id;
        fixed_.leader_epoch = session_.epoch;
        fixed_.port = session_.port;
    }

    std::int32_t epoch() const noexcept { return session_.epoch; }

    // --- appends ----------------------------------------------------------------------------------------------------------

    // The first value's offset, or a verdict. What `gathers` waits for `push`, or for whatever else has a batch written.
    Offset append(const Slice *values, std::int64_t count, std::int64_t timestamp_ms, Micros now_us, bool gathers) {
        if (batch_.record_count() == 0) batch_.open(log_.end_offset(), session_.epoch, timestamp_ms);
        if (!batch_.append(values, count)) {
            if (OpenBatch::size_alone(values, count) > context_.batch_bytes_max) return verdict_too_large;
            if (!seal()) return verdict_cut_off;
            batch_.open(log_.end_offset(), session_.epoch, timestamp_ms);
            batch_.append(values, count);
        }
        const Offset offset = batch_.next_offset() - count;
        return gathers || push(now_us) ? offset : verdict_cut_off;
    }

    // Write what gathered if nobody gains by its waiting, and answer whoever waits for records.
    bool push(Micros now_us) {
        if ((parked_voters_ > 0 || !log_.is_flushing()) && !seal()) return false;
        return parked_ == 0 || answer_parked(now_us);
    }

    // The first record's offset, or a verdict; the batch is stamped in place.
    Offset append_encoded(std::uint8_t *batch, std::int64_t size, std::int64_t record_count, std::int64_t timestamp_ms, Micros now_us) {
        if (size > context_.batch_bytes_max) return verdict_too_large;
        if (!seal()) return verdict_cut_off;
        const Offset offset = log_.end_offset();
        store_big_endian(batch, offset);
        store_big_endian(batch + framing_bytes, session_.epoch);
        if (!context_.write(Span{batch, size}, offset, offset + record_count, session_.epoch, timestamp_ms)) return verdict_cut_off;
        return parked_ == 0 || answer_parked(now_us) ? offset : verdict_cut_off;
    }

    // Would so many bytes in so many records go into the open batch, and a push do nothing?
    bool has_room(std::int64_t size_bytes, std::int64_t count) const noexcept { return batch_.has_room(size_bytes, count); }
    bool needs_no_push() noexcept { return parked_ == 0 && log_.is_flushing(); }

    std::int64_t gathered_bytes() const noexcept { return batch_.record_count() > 0 ? batch_.size_bytes() : 0; }

    // Write what was accepted.
    bool seal() {
        if (batch_.record_count() == 0) return true;
        const Offset base = batch_.base_offset(), next = batch_.next_offset();
        return context_.write(batch_.seal(), base, next, session_.epoch, batch_.timestamp_ms());
    }

    // --- fetches ----------------------------------------------------------------------------------------------------------

    enum class Seen { steady, unusual, cut_off };

    bool serves(Connection connection) const noexcept { return find(connection) != nullptr; }

    // `unusual`: nothing has changed.
    Seen on_frame(Connection connection, Span frame, Micros now_us) {
        Peer *peer = find(connection);
        if (peer == nullptr || peer->is_parked || !is_fetch(frame, peer->api_version))
            // A late answer to a Fetch of ours, from when we followed, is passed over.
            return correlation_of(frame) >= correlation_first ? Seen::steady : Seen::unusual;
        RequestFields fields;
        if (!parse_request(peer->api_version, FrameReader(frame.data, frame.size), &fields)) return Seen::unusual;
        // A copy of an earlier Fetch answers nothing that was sent since (rule 7).
        if (!is_ahead(fields.correlation_id, peer->newest_id)) return Seen::steady;
        if (!continues(fields, *peer)) return Seen::unusual;
        peer->newest_id = fields.correlation_id;
        peer->fetched(fields.fetch_offset, log_.end_offset(), now_us);
        park(*peer, fields.correlation_id, fields.high_watermark, Micros{fields.max_wait_ms} * us_per_ms, fields.max_bytes, now_us);
        observers_.fetched(*peer);
        count(*peer);
        return settle_after(peer->voter_index >= 0, now_us) ? Seen::steady : Seen::cut_off;
    }

    // Take over this peer and its Fetch, parked; `settle` answers it.
    void admit(const Admission &fetch, Micros now_us) {
        Peer &peer = known(fetch.peer);
        detach(fetch.connection, &peer);
        if (peer.connection != fetch.connection) {
            if (peer.is_parked) context_.out.unparked(peer.connection, peer.correlation_id, peer.api_version);
            detach(peer.connection);
            served_.push_back({fetch.connection, &peer});
            peer.connection = fetch.connection;
            peer.answered = 0;  // nothing was sent on this connection yet
            peer.answered_us = -1;
            peer.newest_id = fetch.correlation_id;
        } else {
            const bool is_newest = is_ahead(fetch.correlation_id, peer.newest_id);
            if (peer.is_parked || !is_newest) {
                // Sent before the parked one was answered, or a copy of an earlier one: confirms no barrier (rule 7).
                peer.answered = 0;
                peer.answered_us = -1;
            }
            if (is_newest) peer.newest_id = fetch.correlation_id;
        }
        unpark(peer);
        peer.voter_index = fetch.is_voter ? voter_index(fetch.peer) : -1;
        peer.api_version = fetch.api_version;
        peer.sent_end = fetch.fetch_offset;
        peer.sent_epoch = log_.last_epoch();  // counts only after an empty answer: then the peer is at the log's end
        peer.fetched(fetch.fetch_offset, log_.end_offset(), now_us);
        park(peer, fetch.correlation_id, fetch.request_high_watermark, fetch.max_wait_us, fetch.bytes_max, now_us);
        observers_.fetched(peer);
        count(peer);
    }

    // The connection is gone, or `keep`'s from now on: its peer is served no longer.
    void detach(Connection connection, const Peer *keep = nullptr) noexcept {
        const auto at = std::find_if(served_.begin(), served_.end(), [&](const Served &each) { return each.connection == connection; });
        if (at == served_.end() || at->peer == keep) return;
        Peer &peer = *at->peer;
        served_.erase(at);
        peer.connection = no_connection;
        unpark(peer);
        observers_.leave(peer);
    }

    bool await_observers(const std::vector<std::int32_t> &ids, Offset offset) noexcept { return observers_.begin(served_, ids, offset); }

    // Go on after anything may have moved: a sync, a pause, an admission.
    bool settle(Micros now_us) { return settle_after(true, now_us); }

    // Answer whose wait is over.
    bool on_tick(Micros now_us) {
        for (const Served &each : served_)
            if (each.peer->is_parked && each.peer->deadline_us <= now_us)
                if (!answer(*each.peer, now_us)) return false;
        return true;
    }

    Micros deadline_us() const noexcept {
        Micros due = -1;
        if (parked_ == 0) return due;
        for (const Served &each : served_)
            if (each.peer->is_parked && (due < 0 || each.peer->deadline_us < due)) due = each.peer->deadline_us;
        return due;
    }

    // The session ends: name every Fetch that somebody else must answer.
    void unpark_all() {
        for (const Served &each : served_)
            if (each.peer->is_parked) {
                unpark(*each.peer);
                context_.out.unparked(each.connection, each.peer->correlation_id, each.peer->api_version);
            }
    }

    // --- barriers and state -----------------------------------------------------------------------------------------------

    // Its number, or a verdict.
    std::int64_t begin_barrier(Micros now_us) {
        const std::int64_t barrier = context_.barriers.begin();
        if (mutated(Mutation::counts_fetches_under_way))
            for (const Served &each : served_) each.peer->answered = barrier;
        if (mutated(Mutation::counts_observers))
            for (auto &[key, peer] : peers_)
                if (peer->voter_index < 0) peer->voter_index = static_cast<int>(session_.voters.size()) - 1;
        if (parked_voters_ > 0 && !mutated(Mutation::leaves_parked_fetches_alone) && !answer_parked(now_us)) return verdict_cut_off;
        complete_barriers();
        return barrier;
    }

    std::vector<PeerState> peer_states() const {
        std::vector<PeerState> states;
        for (const auto &[key, peer] : peers_) states.push_back(peer->state());
        if (mutated(Mutation::tells_the_contacts_of_the_opening))
            for (PeerState &state : states) state.last_contact_us = -1;
        return states;
    }

    // How far some peer that is served has been sent the log.
    Offset sent_end() const noexcept {
        Offset end = unknown_offset;
        for (const Served &each : served_) end = std::max(end, each.peer->sent_end);
        return end;
    }

    // How far so many other voters have the log on their disks that with this one they are a majority.
    Offset acked_end() const noexcept {
        const Offset reached = reached_by_others(ends_);
        return reached == none_needed ? unknown_offset : reached;
    }

    // A majority followed this lead at this time, or later, whatever was under way since: so nobody else was elected before it.
    // A voter's Fetch says so of when the response was sent that it answers (as rule 7 has it), not of when it came.
    Micros confirmed_us() const noexcept {
        const Micros reached = reached_by_others(confirmed_us_);
        return reached == none_needed ? always_confirmed_us : reached;
    }

    Offset high_watermark;

   private:
    struct Served {
        Connection connection;
        Peer *peer;
    };

    static constexpr std::int64_t none_needed = -2;

    // What so many other voters have reached that with this one they are a majority; `of`: each voter's, in the order of the session.
    std::int64_t reached_by_others(const std::vector<std::int64_t> &of) const noexcept {
        const std::size_t needed = of.size() / 2 + (own_index_ < 0 ? 1 : 0);
        if (needed == 0) return none_needed;
        sorted_ = of;
        if (own_index_ >= 0) sorted_.erase(sorted_.begin() + own_index_);
        std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
        return sorted_[needed - 1];
    }

    Peer *find(Connection connection) const noexcept {
        for (const Served &each : served_)
            if (each.connection == connection) return each.peer;
        return nullptr;
    }

    static bool is_fetch(Span frame, int api_version) noexcept {
        return frame.size >= 4 && load_big_endian<std::int16_t>(frame.data) == 1 && load_big_endian<std::int16_t>(frame.data + 2) == api_version;
    }

    bool continues(const RequestFields &fields, const Peer &peer) noexcept {
        const Identity &identity = context_.identity;
        return fields.leader_epoch == session_.epoch && fields.fetch_offset == peer.sent_end && fields.last_fetched_epoch == peer.sent_epoch &&
               fields.fetch_offset >= log_.start_offset() && fields.replica_id == peer.key.id && fields.max_wait_ms >= 0 &&
               (fields.directory_id == nullptr || peer.key.directory_id.is(fields.directory_id)) &&
               (fields.cluster_id.data == nullptr || fields.cluster_id == context_.text(identity.cluster_id)) &&
               (fields.topic_id == nullptr || identity.topic_id.is(fields.topic_id));
    }

    Peer &known(const ReplicaKey &key) {
        const auto found = peers_.find(key);
        if (found != peers_.end()) return *found->second;
        if (peers_.size() >= peers_max) forget_gone();
        return *peers_.emplace(key, std::make_unique<Peer>(key)).first->second;
    }

    // Whoever comes may call itself anything, a static voter by ever new directories: those without a connection are let go
    // of, but for the last that was heard of each voter.
    void forget_gone() {
        std::vector<const Peer *> last(session_.voters.size(), nullptr);
        for (const auto &[key, peer] : peers_) {
            if (peer->voter_index < 0) continue;
            const Peer *&before = last[static_cast<std::size_t>(peer->voter_index)];
            if (before == nullptr || peer->last_contact_us >= before->last_contact_us) before = peer.get();
        }
        std::erase_if(peers_, [&last](const auto &each) {
            const Peer &peer = *each.second;
            return peer.connection < 0 && (peer.voter_index < 0 || last[static_cast<std::size_t>(peer.voter_index)] != &peer);
        });
    }

    // Write what gathered, move the high watermark, answer whom that concerns and whoever does not want to wait.
    bool settle_after(bool may_write, Micros now_us) {
        if (may_write && !seal()) return false;
        advance();
        if (!answer_parked(now_us)) return false;
        if (parked_ > 0) {
            hasten(now_us);
            if (!on_tick(now_us)) return false;
        }
        complete_barriers();
        return true;
    }

    void count(const Peer &peer) noexcept {
        if (peer.voter_index < 0) return;
        ends_[static_cast<std::size_t>(peer.voter_index)] = peer.end_offset;
        context_.barriers.confirm(peer.voter_index, peer.answered);
        Micros &confirmed = confirmed_us_[static_cast<std::size_t>(peer.voter_index)];
        confirmed = std::max(confirmed, peer.answered_us);
    }

    // Recompute the high watermark, from flushed ends alone: the leader's own too, and only if it is a voter.
    void advance() {
        if (own_index_ >= 0)
            ends_[static_cast<std::size_t>(own_index_)] =
                mutated(Mutation::counts_its_unflushed_end) ? log_.end_offset() : log_.flushed_end();
        sorted_ = ends_;
        const Offset majority = majority_reached(sorted_.data(), static_cast<std::int64_t>(sorted_.size()));
        if (majority > session_.epoch_start && majority > high_watermark) {
            high_watermark = majority;
            context_.out.advanced(majority);
        }
    }

    void park(Peer &peer, std::int32_t correlation_id, Offset request_high_watermark, Micros wait_us, std::int64_t bytes_max, Micros now_us) noexcept {
        peer.is_parked = true;
        peer.correlation_id = correlation_id;
        peer.request_high_watermark = request_high_watermark;
        peer.deadline_us = now_us + std::min(wait_us, session_.fetch_wait_us_max);
        peer.bytes_max = std::clamp<std::int64_t>(bytes_max, 1, answer_bytes_max);
        ++parked_;
        parked_voters_ += peer.voter_index >= 0;
    }

    void unpark(Peer &peer) noexcept {
        if (!peer.is_parked || mutated(Mutation::answers_a_parked_fetch_twice)) return;
        peer.is_parked = false;
        --parked_;
        parked_voters_ -= peer.voter_index >= 0;
    }

    // Answer every parked Fetch that has records to get; for a pending barrier every voter's, empty or not.
    bool answer_parked(Micros now_us) {
        const Offset end = log_.end_offset();
        const Barriers &barriers = context_.barriers;
        const std::int64_t provoking = barriers.is_pending() ? barriers.begun() : 0;
        for (const Served &each : served_) {
            Peer &peer = *each.peer;
            if (peer.is_parked && (peer.sent_end < end || (peer.answered < provoking && peer.voter_index >= 0)))
                if (!answer(peer, now_us)) return false;
        }
        return true;
    }

    // Tell peers that do not know the high watermark yet: observers at once, voters soon. An observer (a broker) applies what is
    // committed: whoever reads there what was just acknowledged must find it. A voter has no use for it before it leads, and is
    // told with the next records or by a late empty answer: one at once would be a second message for every commit, and leave no
    // Fetch parked for the next append.
    void hasten(Micros now_us) noexcept {
        const Micros soon = now_us + high_watermark_delay_us;
        for (const Served &each : served_) {
            Peer &peer = *each.peer;
            if (peer.is_parked && high_watermark > peer.request_high_watermark)
                peer.deadline_us = std::min(peer.deadline_us, peer.voter_index >= 0 ? soon : now_us);
        }
    }

    // Claim the peer's parked Fetch and answer it from the log as it is now.
    bool answer(Peer &peer, Micros now_us) {
        Span records{zero_uuid, 0};
        if (peer.sent_end < log_.end_offset()) {
            if (!log_.read(peer.sent_end, peer.bytes_max, &records)) return false;
            read_end(records, peer);
        }
        unpark(peer);
        if (peer.correlation_id == peer.newest_id) {  // the response to a copy provokes no Fetch (rule 7)
            peer.answered = context_.barriers.begun();
            peer.answered_us = now_us;
        }
        fixed_.host = session_.has_endpoint && peer.api_version >= endpoints_version_min ? context_.text(session_.host) : Span{};
        const ResponseVarying varying{peer.correlation_id, high_watermark, log_.start_offset(), records.size};
        FrameWriter head, tail;
        write_response(peer.api_version, head, fixed_, varying);
        write_response_tail(peer.api_version, tail, fixed_);
        context_.out.send(peer.connection, Frame{{{head.data(), head.size()}, records, {tail.data(), tail.size()}}});
        return true;
    }

    // Where whole batches end: the offset after the last one, and its epoch.
    static void read_end(Span batches, Peer &peer) noexcept {
        for (std::int64_t at = 0; at + header_bytes <= batches.size;) {
            const BatchHeader header = read_header(batches.data + at);
            if (header.size_bytes < header_bytes) return;
            peer.sent_end = header.base_offset + header.last_offset_delta + 1;
            peer.sent_epoch = header.leader_epoch;
            at += header.size_bytes;
        }
    }

    void complete_barriers() {
        if (context_.barriers.is_pending() && (high_watermark > session_.epoch_start || mutated(Mutation::confirms_before_the_epochs_start)))
            context_.barriers.complete(high_watermark, context_.out);
    }

    // The key's place among the voters. One whose directory is not known (kraft.version 0) is known by its id.
    int voter_index(const ReplicaKey &key) const noexcept {
        for (std::size_t i = 0; i < session_.voters.size(); ++i) {
            const ReplicaKey &voter = session_.voters[i];
            if (voter.id == key.id && (is_zero(voter.directory_id.bytes) || voter.directory_id == key.directory_id)) return static_cast<int>(i);
        }
        return -1;
    }

    Context &context_;
    Log &log_;
    const LeaderSession session_;
    OpenBatch batch_;
    AwaitedObservers observers_;
    std::map<ReplicaKey, std::unique_ptr<Peer>> peers_;
    std::vector<Served> served_;  // in the order in which they were admitted
    std::int64_t parked_ = 0;
    std::int64_t parked_voters_ = 0;
    const int own_index_;
    std::vector<Offset> ends_;  // flushed end of each voter, in the order of the session
    mutable std::vector<Offset> sorted_;  // scratch of as many, so that nothing is allocated on the way
    std::vector<Micros> confirmed_us_;  // when each voter surely followed still, in the same order; -1 unknown
    ResponseFixed fixed_;
};

}  // namespace fastquorum::lane
