// What the native shell is held to.
#pragma once

#include <cstdint>

#include "../lane/ports.h"

namespace fastquorum::node {

using lane::Connection;
using lane::Micros;
using lane::Offset;

inline constexpr Micros never = -1;
inline constexpr std::int64_t waiting_max = 64;  // frames of one connection kept for Python, beyond which it is not read from
inline constexpr std::int64_t waiting_bytes_max = 4 * 1024 * 1024;
inline constexpr std::int64_t receive_bytes = 1024 * 1024;
inline constexpr std::int64_t slice_bytes = 16 * 1024;  // of strangers' at once, but for the rest of a frame: less than a millisecond's
inline constexpr std::int64_t crowded_slice_bytes = 1024;  // when the node keeps too much
inline constexpr int slice_connections = 64;            // of strangers' that are looked at together, at most
inline constexpr std::size_t slice_events = 256;        // of strangers' that Python is given together
inline constexpr int alone_looks = 4;  // at a Python that takes no news, before a leader is given up: lost time is not taken for silence

// What whoever makes a node has chosen.
struct Limits {
    std::int64_t frame_bytes_max = 0;  // of one frame, in bytes without its length
    std::int64_t records_max = 0;      // that wait for their commit, but for a first append's
    std::int64_t bytes_max = 0;        // of values that wait for their commit, but for a first append's
    Micros busy_poll_us = 0;           // how long the sockets' thread looks again and again before it sleeps; 0: not at all
    Micros alone_us_max = 0;           // how long a leader may go on while Python takes no news; 0: for ever
};

}  // namespace fastquorum::node
