// An eventfd: one thread has another one look, through the descriptor that this waits on. Signals add up to one.
#pragma once

#include "descriptor.h"
#include "system.h"

namespace fastquorum::node {

class EventFd {
   public:
    bool open() noexcept { return descriptor_.hold(System::open_eventfd()); }  // false: see errno
    void close() noexcept { descriptor_.close(); }
    int descriptor() const noexcept { return descriptor_.get(); }
    void signal() const noexcept { System::signal(descriptor_.get()); }

    // Whatever is signalled from here on makes it readable again.
    void drain() const noexcept { System::drain(descriptor_.get()); }

   private:
    Descriptor descriptor_;
};

}  // namespace fastquorum::node
