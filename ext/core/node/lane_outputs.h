// What a call of the lane brings about, carried out in that call, in the same Section.
#pragma once

#include <cstdint>
#include <utility>

#include "append_queue.h"
#include "clock.h"
#include "connection_table.h"
#include "hooks.h"
#include "news.h"
#include "replica_lane.h"

namespace fastquorum::node {

class LaneOutputs final : public lane::Outputs {
   public:
    LaneOutputs(ReplicaLane &lane, NewsQueue &news, ConnectionTable &connections, AppendQueue &appends) noexcept
        : lane_(lane), news_(news), connections_(connections), appends_(appends) {}

    void send(Connection connection, const Frame &frame) override {
        if (!lane_.may_send()) return;
        const bool asks = lane_.is_follower();
        if (hit(asks ? Point::before_send_fetch_request : Point::before_send_fetch_response) != 0) return connections_.break_off(connection);
        connections_.transmit(connection, frame);
        Trace &trace = lane_.trace();
        if (trace.awaits(Stage::sent)) trace.sent(lane_.lane().sent_end(), now_ns());
        if (Channel *channel = connections_.find(connection)) channel->is_lanes_half_sent |= channel->is_owed();
        if (hit(asks ? Point::after_send_fetch_request : Point::after_send_fetch_response) != 0) connections_.break_off(connection);
    }

    void hand_up(Connection connection, Span frame) override {
        HandedUp handed{connection, {}};
        // Empty it is no request, and its lane goes on all the same.
        if (!copied(frame, &handed.frame)) connections_.break_off(connection);
        const auto size = static_cast<std::int64_t>(handed.frame.size());
        allocate_at(Point::memory_for_event);
        news_.hand_up(std::move(handed));
        connections_.count_waiting(connection, size);
    }

    void advanced(Offset high_watermark) override { appends_.advance(high_watermark); }
    void barrier_done(std::int64_t, Offset high_watermark) override { appends_.barrier_done(high_watermark); }
    void unparked(Connection connection, std::int32_t correlation_id, int api_version) override {
        news_.unpark({connection, correlation_id, api_version});
    }
    void observers_informed() noexcept override { lane_.observers_informed(); }

   private:
    ReplicaLane &lane_;             // whose calls these are
    NewsQueue &news_;               // Python is told what is raft/'s
    ConnectionTable &connections_;  // frames are sent there
    AppendQueue &appends_;          // appends are committed there, and barriers are over
};

}  // namespace fastquorum::node
