// An eventfd: one thread has another one look, through the descriptor that this waits on. Signals add up to one.
#pragma once

#include "system.h"

namespace fastquorum::node {

class EventFd {
   public:
    EventFd() = default;
    EventFd(const EventFd &) = delete;
    EventFd &operator=(const EventFd &) = delete;
    ~EventFd() { close(); }

    // False: see errno.
    bool open() noexcept {
        descriptor_ = System::open_eventfd();
        return descriptor_ >= 0;
    }

    int descriptor() const noexcept { return descriptor_; }

    void signal() const noexcept { System::signal(descriptor_); }

    // Whatever is signalled from here on makes it readable again.
    void drain() const noexcept { System::drain(descriptor_); }

    void close() noexcept {
        if (descriptor_ >= 0) System::close(descriptor_);
        descriptor_ = -1;
    }

   private:
    int descriptor_ = -1;
};

}  // namespace fastquorum::node
