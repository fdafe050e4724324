// Clients' requests that need no Python: Produces of the plain shape, and heartbeats that say nothing new.
//
// All under the lane lock. What is not taken here has changed nothing, and is Python's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "append_queue.h"
#include "beats.h"
#include "connection_table.h"
#include "limits.h"
#include "produce.h"
#include "produce_answers.h"
#include "replica_lane.h"

namespace fastquorum::node {

class ClientFastPath {
   public:
    ClientFastPath(ReplicaLane &lane, ConnectionTable &connections, AppendQueue &appends, ProduceAnswers &produces) noexcept
        : lane_(lane), connections_(connections), appends_(appends), produces_(produces) {}
    ClientFastPath(const ClientFastPath &) = delete;
    ClientFastPath &operator=(const ClientFastPath &) = delete;

    void serve_beats(std::shared_ptr<SteadyBeats> beats, Micros confirmed_us_max) noexcept {
        beats_ = std::move(beats);
        beats_confirmed_us_max_ = confirmed_us_max;
    }

    // False: the frame is Python's.
    bool take(Channel &channel, Span frame, Micros at_us) { return take_produce(channel, frame, at_us) || answer_beat(channel, frame, at_us); }

   private:
    // Of a leader that goes on, and of a client that asks it alone: what a replica asks is answered in its own order.
    bool may_answer(const Channel &channel) const noexcept {
        if (!lane_.is_leader() || lane_.is_frozen()) return false;
        return channel.accepted && !channel.is_pythons() && !lane_.lane().serves(channel.number);
    }

    // A Produce that needs no Python. False: nothing has changed.
    bool take_produce(Channel &channel, Span frame, Micros at_us) {
        const ProduceService &service = produces_.service();
        if (!service.is_open() || !may_answer(channel) || !produces_.has_place(channel)) return false;
        ProduceFields fields;
        BatchHeader batch;
        if (!service.parse(frame, &fields) || (fields.acks != -1 && fields.acks != 1) || !service.takes(fields.records, &batch)) return false;
        // What is there already may be answered before what was asked earlier, and what is refused needs words: both are Python's.
        if (!appends_.is_next(batch)) return false;
        const Micros deadline = at_us + std::max<Micros>(fields.timeout_ms, 0) * 1000;
        // There is a place for whoever is in the log, also where memory runs out behind it.
        Waiter waiter;
        waiter.produce = produces_.begin(channel, {fields.correlation_id, fields.version, deadline});
        // The frame lies in a buffer of the sockets' thread: the batch is given its place right there. A batch that is refused
        // is looked at again by Python, which gives it its place anew.
        const Offset offset = appends_.append_next(const_cast<std::uint8_t *>(fields.records.data), fields.records.size, batch.records_count,
                                                   batch.max_timestamp_ms, at_us, waiter, false);
        if (offset < 0) {
            produces_.take_back(channel);
            return false;
        }
        produces_.begun(channel);
        return true;
    }

    // A heartbeat that needs no Python, unless something that came before it on its connection is to be answered first, or somebody
    // else may have been elected.
    bool answer_beat(Channel &channel, Span frame, Micros at_us) {
        if (!beats_ || !may_answer(channel) || !channel.produces.empty() || !lane_.may_send()) return false;
        BeatAnswer answer;
        if (!lane_.is_confirmed(beats_confirmed_us_max_, at_us)) return false;
        if (!beats_->answer(frame, lane_.lane().epoch(), at_us, &answer)) return false;
        connections_.transmit(channel, Frame{{Span{answer.bytes, answer.size}, {}, {}}});
        return true;
    }

    ReplicaLane &lane_;                   // only its leader answers
    ConnectionTable &connections_;        // heartbeats are answered there
    AppendQueue &appends_;                // Produces go there
    ProduceAnswers &produces_;            // and wait here
    std::shared_ptr<SteadyBeats> beats_;  // answers that Python has given; null: no controller is here
    Micros beats_confirmed_us_max_ = 0;   // a majority must have followed this lead so recently
};

}  // namespace fastquorum::node
