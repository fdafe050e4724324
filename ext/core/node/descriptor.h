// A file descriptor and its end: whoever holds it closes it, once.
#pragma once

#include "system.h"

namespace fastquorum::node {

class Descriptor {
   public:
    Descriptor() = default;
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() { close(); }

    int get() const noexcept { return number_; }

    // Of what holds nothing; false: the system call that made it has failed, see errno.
    bool hold(int number) noexcept {
        number_ = number;
        return number >= 0;
    }

    void close() noexcept {
        if (number_ >= 0) System::close(number_);
        number_ = -1;
    }

   private:
    int number_ = -1;  // negative: none
};

}  // namespace fastquorum::node
