// An epoll set: descriptors that a thread waits on together, each with a number by which it is reported.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "descriptor.h"
#include "system.h"

namespace fastquorum::node {

class EpollSet {
   public:
    bool open() noexcept { return descriptor_.hold(System::open_epoll()); }  // false: see errno
    void close() noexcept { descriptor_.close(); }
    int descriptor() const noexcept { return descriptor_.get(); }

    // Add, change or remove (EPOLL_CTL_*). 0, or not; see errno.
    int change(int operation, int descriptor, unsigned interest, std::uint64_t source) const noexcept {
        epoll_event event{};
        event.events = interest;
        event.data.u64 = source;
        return System::change_epoll(descriptor_.get(), operation, descriptor, &event);
    }

    // How many of them are ready, `count` at most; negative: see errno.
    int wait(epoll_event *events, int count, int timeout_ms) const noexcept {
        return System::wait_epoll(descriptor_.get(), events, count, timeout_ms);
    }

   private:
    Descriptor descriptor_;
};

}  // namespace fastquorum::node
