// Zigzag variable-length integers, as they stand inside records (Protocol Buffers' sint32 and sint64).
#pragma once

#include <bit>
#include <cstdint>

namespace fastquorum {

inline std::uint64_t zigzag(std::int64_t value) noexcept {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

inline std::int64_t varint_size(std::int64_t value) noexcept {
    const std::uint64_t rest = zigzag(value);
    return rest < 0x80 ? 1 : (static_cast<std::int64_t>(std::bit_width(rest)) + 6) / 7;
}

inline std::uint8_t *write_varint(std::uint8_t *out, std::int64_t value) noexcept {
    std::uint64_t rest = zigzag(value);
    for (; rest >= 0x80; rest >>= 7) *out++ = static_cast<std::uint8_t>(rest | 0x80);
    *out++ = static_cast<std::uint8_t>(rest);
    return out;
}

// Reads one at *cursor, moves it on; false if it does not end before `end` or has more than `bits` bits.
template <int bits>
inline bool read_varint(const std::uint8_t **cursor, const std::uint8_t *end, std::int64_t *value) noexcept {
    const std::uint8_t *at = *cursor;
    if (at >= end) return false;
    std::uint64_t rest = *at++;
    if (rest >= 0x80) [[unlikely]] {
        rest &= 0x7F;
        for (int shift = 7;; shift += 7) {
            if (at >= end || shift >= bits) return false;
            const std::uint64_t byte = *at++;
            // The last byte may hold no more than what is left of `bits`.
            if (shift + 7 > bits && (byte & 0x7F) >> (bits - shift) != 0) return false;
            rest |= (byte & 0x7F) << shift;
            if (byte < 0x80) break;
        }
    }
    *cursor = at;
    *value = static_cast<std::int64_t>(rest >> 1) ^ -static_cast<std::int64_t>(rest & 1);
    return true;
}

}  // namespace fastquorum
