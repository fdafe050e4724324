// Whether Python, which alone can decide some things, still takes its news. All under the lane lock, but where it says otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "limits.h"
#include "news.h"
#include "replica_lane.h"
#include "sockets_wakeup.h"

namespace fastquorum::node {

class PythonWatch {
   public:
    PythonWatch(Micros alone_us_max, ReplicaLane &lane, NewsQueue &news, SocketsWakeup &sockets) noexcept
        : alone_us_max_(alone_us_max), lane_(lane), news_(news), sockets_(sockets) {}
    PythonWatch(const PythonWatch &) = delete;
    PythonWatch &operator=(const PythonWatch &) = delete;

    // A lead begins, or ends: Python's silence counts from now on.
    void begin_anew() noexcept {
        looks_ = 0;
        look_at_us_ = never;
        is_given_up_ = false;
        sockets_.want();
    }

    // What Python alone can decide waits for it: elections, clients, whoever is to be fenced. A leader whose Python hangs, be it in a call
    // that holds the interpreter or at a disk, would keep its followers content for ever. It is asked to take its news now and
    // then; if it does not, time and again, nothing is taken or sent any more, so that others elect.
    void look(Micros at_us) {
        if (alone_us_max_ == 0 || !lane_.is_leader() || is_given_up_) {
            look_at_us_ = never;
            return;
        }
        if (look_at_us_ != never && at_us < look_at_us_) return;
        looks_ = look_at_us_ != never && news_.times_taken() == times_taken_seen_ ? looks_ + 1 : 0;
        times_taken_seen_ = news_.times_taken();
        look_at_us_ = at_us + alone_us_max_ / alone_looks;
        news_.rouse();
        if (looks_ < alone_looks) return;
        is_given_up_ = true;
        is_giving_up_ = true;
        look_at_us_ = never;
        lane_.freeze();
    }

    // When `look` has something to do; never: it has not.
    Micros deadline_us() const noexcept { return look_at_us_; }

    // Has the lead been given up?
    bool is_given_up() const noexcept { return is_given_up_; }

    // The same, for Python; true once. From any thread.
    bool take_given_up() noexcept { return is_giving_up_.load(std::memory_order_relaxed) && is_giving_up_.exchange(false); }

   private:
    const Micros alone_us_max_;              // how long a leader may go on while Python takes no news; 0: for ever
    ReplicaLane &lane_;                      // frozen when it is given up
    NewsQueue &news_;                        // Python is to take these
    SocketsWakeup &sockets_;                 // its thread looks
    std::uint64_t times_taken_seen_ = 0;     // how often Python had taken its news at the last look
    int looks_ = 0;                          // in a row that found it had not
    Micros look_at_us_ = never;              // see deadline_us()
    bool is_given_up_ = false;               // until the session ends
    std::atomic<bool> is_giving_up_{false};  // and Python does not know
};

}  // namespace fastquorum::node
