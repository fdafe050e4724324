// An eventfd: one thread has another one look, through the descriptor that this waits on. Signals add up to one.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace fastquorum::node {

class EventFd {
   public:
    EventFd() = default;
    EventFd(const EventFd &) = delete;
    EventFd &operator=(const EventFd &) = delete;
    ~EventFd() { close(); }

    // False: see errno.
    bool open() noexcept {
        descriptor_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return descriptor_ >= 0;
    }

    int descriptor() const noexcept { return descriptor_; }

    void signal() const noexcept {
        const std::uint64_t one = 1;
        (void)!::write(descriptor_, &one, sizeof one);
    }

    // Whatever is signalled from here on makes it readable again.
    void drain() const noexcept {
        std::uint64_t count;
        (void)!::read(descriptor_, &count, sizeof count);
    }

    void close() noexcept {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }

   private:
    int descriptor_ = -1;
};

}  // namespace fastquorum::node
