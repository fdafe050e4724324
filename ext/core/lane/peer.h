// A peer as a leader's lane sees it: the twin of kernels/pure/lane/peer.py. KIP-595 "Fetch"; progress as KAFKA-15911 asks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ports.h"

namespace fastquorum::lane {

// One admitted replica. Its offset and times outlive its connection.
struct Peer {
    explicit Peer(const ReplicaKey &its_key) noexcept : key(its_key) {}

    // A valid Fetch at `offset` came in.
    void fetched(Offset offset, Offset leader_end, Micros now_us) noexcept {
        if (offset >= leader_end) {
            last_caught_up_us = last_progress_us = now_us;
        } else {
            if (offset > end_offset) last_progress_us = now_us;
            if (leader_end_seen > 0 && leader_end_seen <= offset) last_caught_up_us = std::max(last_caught_up_us, last_contact_us);
        }
        end_offset = offset;
        leader_end_seen = leader_end;
        last_contact_us = now_us;
    }

    PeerState state() const {
        return {key, voter_index >= 0, connection, end_offset, last_contact_us, last_progress_us, last_caught_up_us};
    }

    const ReplicaKey key;
    int voter_index = -1;  // its place among the session's voters; -1: an observer
    Connection connection = no_connection;
    int api_version = 0;
    Offset end_offset = -1;
    Micros last_contact_us = -1;
    Micros last_progress_us = -1;
    Micros last_caught_up_us = -1;
    Offset leader_end_seen = -1;
    Offset sent_end = -1;  // where the last answer ended, and the epoch of its last batch: what the next Fetch continues
    std::int32_t sent_epoch = -1;
    std::int64_t answered = 0;  // the latest barrier when the last response was sent on this connection (rule 7)
    Micros answered_us = -1;    // when that was sent, or earlier; -1: none that its next Fetch answers
    bool is_parked = false;
    std::int32_t correlation_id = -1;  // of its latest Fetch
    std::int32_t newest_id = -1;  // the highest that came on its connection: what is not ahead of it is a copy of an earlier Fetch
    Offset request_high_watermark = -1;
    Offset awaited_offset = -1;  // the high watermark that it is, or was, awaited to name; -1: it has, or was never awaited
    bool is_awaited = false;     // still
    Micros deadline_us = -1;
    std::int64_t bytes_max = 0;
};

}  // namespace fastquorum::lane
