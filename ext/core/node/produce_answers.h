// Produces that were taken without Python and wait for their commit, each on its connection, and the answers to them.
//
// All under the lane lock. Answers go in the order of requests: what Python answers later waits behind them, as `held`.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "connection_table.h"
#include "hooks.h"
#include "produce.h"
#include "replica_lane.h"
#include "sockets_wakeup.h"

namespace fastquorum::node {

class ProduceAnswers {
   public:
    ProduceAnswers(ConnectionTable &connections, ReplicaLane &lane, SocketsWakeup &sockets) noexcept
        : connections_(connections), lane_(lane), sockets_(sockets) {}
    ProduceAnswers(const ProduceAnswers &) = delete;
    ProduceAnswers &operator=(const ProduceAnswers &) = delete;

    void serve(ProduceService service) { service_ = std::move(service); }
    const ProduceService &service() const noexcept { return service_; }

    // May one more of the connection's wait?
    bool has_place(const Channel &channel) const noexcept { return static_cast<std::int64_t>(channel.produces.size()) < service_.unanswered_max; }

    // A place for one that is about to be appended.
    ProduceRef begin(Channel &channel, const WaitingProduce &produce) {
        channel.produces.push_back(produce);
        return {channel.number, channel.produces_taken++};
    }
    // It was not.
    void take_back(Channel &channel) noexcept {
        channel.produces.pop_back();
        --channel.produces_taken;
    }
    // It was.
    void begun(Channel &channel) { connections_.produce_deadlines().note(channel); }

    // False: its time was over before and it was told so, or its connection is gone.
    bool answer(const ProduceRef &to, std::int16_t error, Offset base_offset) {
        Channel *channel = connections_.find(to.connection);
        if (channel == nullptr || to.number != channel->produces_answered()) return false;
        answer_first(*channel, error, base_offset);
        // It may have kept one waiting whose time is over.
        if (connections_.produce_deadlines().note(*channel)) sockets_.want();
        return true;
    }

    // Those whose time is over are told so, in the order of their requests; what they appended may still be committed.
    void expire(Micros at_us) {
        ProduceDeadlines &deadlines = connections_.produce_deadlines();
        while (deadlines.is_due(at_us)) {
            Channel &channel = *connections_.find(deadlines.first());
            while (!channel.produces.empty() && channel.produces.front().deadline_us <= at_us)
                answer_first(channel, request_timed_out, lane::unknown_offset);
            deadlines.forget(channel);
            deadlines.note(channel);
        }
    }

    // When `expire` has something to do, or earlier; never: it has not.
    Micros deadline_us() const noexcept { return connections_.produce_deadlines().earliest_us(); }

    // A frame of Python's, behind the same gate as the lane's, and behind the answers to what was asked before.
    void send_behind(Connection connection, Span frame) {
        if (!lane_.may_send()) return;
        Channel *channel = connections_.find(connection);
        if (channel == nullptr || channel->produces.empty()) {
            connections_.transmit(connection, Frame{{frame, {}, {}}});
        } else if (channel->takes_frames()) {
            connections_.sent(*channel, channel->hold(frame) ? Channel::Sent::later : Channel::Sent::broken);
        }
    }

   private:
    void answer_first(Channel &channel, std::int16_t error, Offset base_offset) {
        // Sending may break the connection off, and with it all that waits there.
        const WaitingProduce to = channel.produces.front();
        channel.produces.pop_front();
        if (lane_.may_send()) {
            const bool is_good = error == 0;
            const std::vector<std::uint8_t> frame = service_.answer(to, error, is_good ? base_offset : lane::unknown_offset,
                                                                    is_good ? lane_.log().start_offset() : lane::unknown_offset);
            if (hit(Point::before_send_produce_response) != 0) connections_.break_off(channel);
            transmit(channel, frame);
            if (hit(Point::after_send_produce_response) != 0) connections_.break_off(channel);
        }
        if (!channel.produces.empty()) return;
        for (const std::vector<std::uint8_t> &frame : channel.take_held())
            if (lane_.may_send()) transmit(channel, frame);
        connections_.set_interest(channel);
    }

    void transmit(Channel &channel, const std::vector<std::uint8_t> &frame) {
        connections_.transmit(channel, Frame{{Span{frame.data(), static_cast<std::int64_t>(frame.size())}, {}, {}}});
    }

    ConnectionTable &connections_;  // they wait there
    ReplicaLane &lane_;             // while it may send, answers go
    SocketsWakeup &sockets_;        // its thread looks when the next one's time is over
    ProduceService service_;        // what is served, and how it is answered; nothing until Python has said so
};

}  // namespace fastquorum::node
