// What the replica's thread, which is Python's, is to be told, and the descriptor that says so.
//
// All under the lane lock, but for the descriptor's signal: the `Section` that made news gives it when the lock is free.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "event_fd.h"
#include "events.h"
#include "limits.h"

namespace fastquorum::node {

struct HandedUp {
    Connection connection;
    std::vector<std::uint8_t> frame;
};

// A frame that Python has dealt with, and its size.
struct DoneFrame {
    Connection connection;
    std::int64_t size;
};

struct Unparked {
    Connection connection;
    std::int32_t correlation_id;
    int api_version;
};

// Everything for the replica's thread, taken at once.
struct News {
    std::deque<HandedUp> handed_up;
    std::deque<Event> events;
    std::vector<Unparked> unparked;
};

class NewsQueue {
   public:
    bool open() noexcept { return readable_.open(); }
    void close() noexcept { readable_.close(); }
    int descriptor() const noexcept { return readable_.descriptor(); }

    // Have Python look, when the lock is free.
    void rouse() noexcept { is_wanted_ = true; }
    // Is Python to look? Once.
    bool take_wanted() noexcept { return std::exchange(is_wanted_, false); }
    void signal() const noexcept { readable_.signal(); }  // without the lock

    // Does a frame of the lane's wait for raft/? Whatever comes must wait behind it.
    bool has_handed_up() const noexcept { return !handed_up_.empty(); }
    void hand_up(HandedUp handed) {
        handed_up_.push_back(std::move(handed));
        is_wanted_ = true;
    }

    void unpark(const Unparked &fetch) {
        unparked_.push_back(fetch);
        is_wanted_ = true;
    }

    // Something that the quorum lives by.
    void push(Event event) {
        events_.push_back(std::move(event));
        is_wanted_ = true;
    }

    // Strangers' events wait behind those that the quorum lives by.
    void push_strangers(Event event) {
        strangers_events_.push(std::move(event));
        is_wanted_ = true;
    }

    std::deque<Event> take_strangers(Connection connection) { return strangers_events_.take_all(connection); }

    // No stranger's any more: what came on it before goes before what comes, its end too.
    void favour(Connection connection) {
        for (Event &event : strangers_events_.take_all(connection)) events_.push_back(std::move(event));
    }

    // All of what the quorum lives by, and then a slice of strangers' events; if there are more, there are news again.
    News take() {
        ++times_taken_;
        News taken;
        readable_.drain();
        taken.handed_up.swap(handed_up_);
        taken.events.swap(events_);
        taken.unparked.swap(unparked_);
        for (std::size_t left = slice_events; left > 0 && !strangers_events_.is_empty(); --left) taken.events.push_back(strangers_events_.take());
        is_wanted_ |= !strangers_events_.is_empty();
        return taken;
    }

    // How often Python took its news.
    std::uint64_t times_taken() const noexcept { return times_taken_; }

   private:
    EventFd readable_;                  // while there is news that Python has not been told of
    std::deque<HandedUp> handed_up_;    // frames that the frozen lane leaves to raft/, in their order
    std::deque<Event> events_;          // that the quorum lives by
    StrangersEvents strangers_events_;  // all others
    std::vector<Unparked> unparked_;    // Fetches that the lane has ceased to keep
    std::uint64_t times_taken_ = 0;     // see times_taken()
    bool is_wanted_ = false;            // Python is to look, when the lock is free
};

}  // namespace fastquorum::node
