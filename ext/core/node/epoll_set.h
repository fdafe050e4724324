// An epoll set: descriptors that a thread waits on together, each with a number by which it is reported.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "system.h"

namespace fastquorum::node {

class EpollSet {
   public:
    EpollSet() = default;
    EpollSet(const EpollSet &) = delete;
    EpollSet &operator=(const EpollSet &) = delete;
    ~EpollSet() { close(); }

    // False: see errno.
    bool open() noexcept {
        descriptor_ = System::open_epoll();
        return descriptor_ >= 0;
    }

    int descriptor() const noexcept { return descriptor_; }

    // Add, change or remove (EPOLL_CTL_*). 0, or not; see errno.
    int change(int operation, int descriptor, unsigned interest, std::uint64_t source) const noexcept {
        epoll_event event{};
        event.events = interest;
        event.data.u64 = source;
        return System::change_epoll(descriptor_, operation, descriptor, &event);
    }

    // How many of them are ready, `count` at most; negative: see errno.
    int wait(epoll_event *events, int count, int timeout_ms) const noexcept { return System::wait_epoll(descriptor_, events, count, timeout_ms); }

    void close() noexcept {
        if (descriptor_ >= 0) System::close(descriptor_);
        descriptor_ = -1;
    }

   private:
    int descriptor_ = -1;
};

}  // namespace fastquorum::node
