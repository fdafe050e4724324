// The lane of a follower: the twin of kernels/pure/lane/follower.py. A Fetch at offset f says that everything before f is
// durable here: it IS the acknowledgement. KIP-595 "Fetch"; KIP-853, KIP-1166.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>

#include "../fetch_layout.h"
#include "../scan.h"
#include "context.h"
#include "mutation.h"

namespace fastquorum::lane {

class FollowerLane {
   public:
    FollowerLane(Context &context, const FollowerSession &its_session)
        : session(its_session), high_watermark(its_session.high_watermark), context_(context), log_(context.log) {}

    enum class Seen { steady, unusual, cut_off };

    // The same leader and epoch, newly ordered: a new attempt forgets the Fetch in flight.
    void renew(const FollowerSession &renewed) noexcept {
        if (renewed.attempt != session.attempt) forget();
        session = renewed;
        high_watermark = std::max(high_watermark, renewed.high_watermark);
        prepare();
    }

    // The leader is reached on this connection from now on; a Fetch on another one is forgotten.
    void attach(Connection connection, int api_version) noexcept {
        forget();
        connection_ = connection;
        api_version_ = api_version;
        prepare();
    }

    void detach(Connection connection) noexcept {
        if (connection != connection_) return;
        connection_ = no_connection;
        forget();
    }

    bool serves(Connection connection) const noexcept { return connection == connection_; }

    // Send the next Fetch, if none is in flight and the whole log is flushed.
    void fetch(Micros now_us) {
        const Offset end = log_.end_offset();
        if (connection_ == no_connection || in_flight_ >= 0 || (log_.flushed_end() != end && !mutated(Mutation::fetches_past_what_is_synced)))
            return;
        in_flight_ = context_.next_correlation_id();
        fetch_offset_ = end;
        fetch_sent_us = now_us;
        FrameWriter frame;
        write_request(api_version_, frame, fixed_, {in_flight_, session.epoch, end, log_.last_epoch(), high_watermark});
        context_.out.send(connection_, Frame{{{frame.data(), frame.size()}, {}, {}}});
    }

    // `unusual`: the log is untouched. A late answer is passed over.
    Seen on_frame(Connection connection, Span frame, Micros now_us) {
        const std::int32_t correlation_id = correlation_of(frame);
        if (correlation_id < correlation_first) return Seen::unusual;
        if (correlation_id != in_flight_ || connection != connection_) return Seen::steady;
        forget();
        ResponseFields fields;
        if (!parse_response(api_version_, FrameReader(frame.data, frame.size), &fields)) return Seen::unusual;
        if (fields.leader_epoch != session.epoch || fields.leader_id != session.leader_id || fetch_offset_ != log_.end_offset() ||
            (fields.topic_id != nullptr && !context_.identity.topic_id.is(fields.topic_id)))
            return Seen::unusual;
        if (fields.records.size > 0) {
            const Seen stored = store(fields.records);
            if (stored != Seen::steady) return stored;
        }
        leader_contact_us = now_us;
        const Offset reached = std::min(fields.high_watermark, log_.end_offset());
        if (reached > high_watermark) {
            high_watermark = reached;
            context_.out.advanced(reached);
        }
        fetch(now_us);
        return Seen::steady;
    }

    // Where the last Fetch asked for more: what lies before it is acknowledged.
    Offset fetch_offset() const noexcept { return fetch_offset_; }

    std::int32_t fetch_in_flight() const noexcept { return in_flight_; }

    FollowerSession session;
    Offset high_watermark;
    Micros leader_contact_us = -1;
    Micros fetch_sent_us = -1;

   private:
    // What of the Fetches is the same from now on.
    void prepare() noexcept {
        fixed_.api_version = static_cast<std::int16_t>(api_version_);
        fixed_.client_id = context_.text(context_.client_id);
        fixed_.cluster_id = context_.text(context_.identity.cluster_id);
        fixed_.replica_id = context_.identity.key.id;
        fixed_.max_wait_ms = static_cast<std::int32_t>(session.fetch_wait_us_max / us_per_ms);
        fixed_.max_bytes = session.fetch_bytes_max;
        fixed_.topic_id = context_.identity.topic_id.bytes;
        fixed_.directory_id = context_.identity.key.directory_id.bytes;
    }

    void forget() noexcept {
        in_flight_ = -1;
        fetch_sent_us = -1;
    }

    // Check and write the records, but an incomplete last batch. `unusual`, nothing written: raft/ must see them.
    Seen store(Span records) {
        Expectation expected;
        expected.offset = log_.end_offset();
        expected.epoch_min = log_.last_epoch();
        expected.epoch_max = std::min(log_.last_epoch(), session.epoch);
        ScanResult found;
        if (!scan(records.data, records.size, 0, expected, true, batch_size_max, &found)) throw std::bad_alloc();
        if (found.valid_bytes == 0 || found.control_count != 0 ||
            (found.status.fault != Fault::none && found.status.fault != Fault::truncated))
            return Seen::unusual;
        if (!log_.fits(found.valid_bytes, found.next_offset - found.first_offset)) return Seen::unusual;
        const bool written = context_.write(Span{records.data, found.valid_bytes}, found.first_offset, found.next_offset,
                                            static_cast<std::int32_t>(found.last_epoch), found.max_timestamp_ms);
        return written ? Seen::steady : Seen::cut_off;
    }

    Context &context_;
    Log &log_;
    Connection connection_ = no_connection;
    int api_version_ = 0;
    std::int32_t in_flight_ = -1;
    Offset fetch_offset_ = -1;
    RequestFixed fixed_;
};

}  // namespace fastquorum::lane
