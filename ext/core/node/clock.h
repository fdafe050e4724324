// The clocks of the native shell.
#pragma once

#include <cstdint>

#include "../lane/ports.h"
#include "system.h"

namespace fastquorum::node {

using lane::Micros;
using Nanos = std::int64_t;

inline constexpr Nanos ns_per_us = 1000;

inline Nanos now_ns() noexcept {
    const timespec now = System::now(CLOCK_BOOTTIME);  // as the reactor's now_us, which stamps are held against
    return Nanos{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// As Python's `node.io.clock.now_us`: it goes on while the machine sleeps.
inline Micros now_us() noexcept {
    const timespec now = System::now(CLOCK_BOOTTIME);
    return Micros{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

// What a batch is stamped with, in milliseconds since 1970.
inline std::int64_t wall_ms() noexcept {
    const timespec now = System::now(CLOCK_REALTIME);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

}  // namespace fastquorum::node
