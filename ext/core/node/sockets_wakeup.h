// What the sockets' thread is to look for, and the descriptor that wakes it up. All under the lane lock, but for the signal.
#pragma once

#include <utility>

#include "event_fd.h"
#include "limits.h"
#include "replica_lane.h"

namespace fastquorum::node {

class SocketsWakeup {
   public:
    explicit SocketsWakeup(ReplicaLane &lane) noexcept : lane_(lane) {}
    SocketsWakeup(const SocketsWakeup &) = delete;
    SocketsWakeup &operator=(const SocketsWakeup &) = delete;

    bool open() noexcept { return control_.open(); }
    void close() noexcept { control_.close(); }
    int descriptor() const noexcept { return control_.descriptor(); }
    void signal() const noexcept { control_.signal(); }  // without the lock
    void drain() const noexcept { control_.drain(); }    // the sockets' thread's, without the lock

    // Have it look, when the lock is free.
    void want() noexcept { is_wanted_ = true; }

    // Have it write and send what gathered, soon.
    void want_push() noexcept {
        if (std::exchange(is_push_wanted_, true)) return;
        is_wanted_ = true;
    }

    // Is it to be woken up, as something is wanted, or as the lane has something to do earlier than it would look?
    bool take_need() noexcept {
        if (std::exchange(is_wanted_, false)) return true;
        if (lane_.is_frozen() || !lane_.is_leader()) return false;
        const Micros deadline = lane_.lane().deadline_us();
        if (deadline == never || (deadline_us_ != never && deadline_us_ <= deadline)) return false;
        deadline_us_ = deadline;
        return true;
    }

    // --- of the sockets' thread, at the end of its turn --------------------------------------------------------------

    // All that was wanted it does now; true: to push is part of it.
    bool take_push() noexcept {
        is_wanted_ = false;
        return std::exchange(is_push_wanted_, false);
    }
    void set_deadline(Micros lanes_deadline_us) noexcept { deadline_us_ = lanes_deadline_us; }

   private:
    ReplicaLane &lane_;            // it has deadlines
    EventFd control_;              // readable when it is to look
    bool is_wanted_ = false;       // see want()
    bool is_push_wanted_ = false;  // see want_push()
    Micros deadline_us_ = never;   // of the lane's, when it looks by itself; never: it need not
};

}  // namespace fastquorum::node
