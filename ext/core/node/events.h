// What is to be told to the replica's thread, and strangers' part of it, which waits behind what the quorum lives by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../codes.h"
#include "../lane/ports.h"

namespace fastquorum::node {

using lane::Connection;

// Something for the replica's thread.
struct Event {
    EventKind kind;
    Connection connection = lane::no_connection;
    std::vector<std::uint8_t> frame{};
    std::int64_t token = 0;
    int error = 0;
};

// False: there is no memory for it.
inline bool copied(Span frame, std::vector<std::uint8_t> *copy) noexcept {
    try {
        copy->assign(frame.data, frame.data + frame.size);
    } catch (const std::bad_alloc &) {
        return false;
    }
    return true;
}

// What a frame that waits takes beside its bytes, here or in Python, at most: many small ones are more than their bytes.
inline constexpr std::int64_t frame_overhead_bytes = 256;

// Of a frame that waits, in bytes.
inline std::int64_t waiting_size(std::int64_t frame_size) noexcept { return frame_size + frame_overhead_bytes; }

// Each connection's events in their order, and connections in turn: a connection that has few waits behind no other's many.
class StrangersEvents {
   public:
    bool is_empty() const noexcept { return turns_.empty(); }

    void push(Event event) {
        std::deque<Event> &own = queues_[event.connection];
        if (own.empty()) turns_.push_back(event.connection);
        own.push_back(std::move(event));
    }

    // The first of the connection whose turn it is; there must be one.
    Event take() {
        const Connection connection = turns_.front();
        const auto found = queues_.find(connection);
        Event first = std::move(found->second.front());
        found->second.pop_front();
        turns_.pop_front();
        if (found->second.empty()) {
            queues_.erase(found);
        } else {
            turns_.push_back(connection);
        }
        return first;
    }

    // All of one connection.
    std::deque<Event> take_all(Connection connection) {
        const auto found = queues_.find(connection);
        if (found == queues_.end()) return {};
        std::deque<Event> taken = std::move(found->second);
        queues_.erase(found);
        turns_.erase(std::find(turns_.begin(), turns_.end(), connection));
        return taken;
    }

   private:
    std::unordered_map<Connection, std::deque<Event>> queues_;
    std::deque<Connection> turns_;
};

}  // namespace fastquorum::node
