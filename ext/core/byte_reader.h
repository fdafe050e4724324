// Reading Kafka's numbers one after another: nothing is read that is not there.
#pragma once

#include <cstdint>
#include <cstring>

#include "batch.h"

namespace fastquorum {

class ByteReader {
public:
    ByteReader(const std::uint8_t *at, const std::uint8_t *end) noexcept : at_(at), end_(end) {}

    const std::uint8_t *at() const noexcept { return at_; }

    std::int64_t left() const noexcept { return end_ - at_; }

    template <class Integer>
    bool take(Integer *value) noexcept {
        if (left() < static_cast<std::int64_t>(sizeof(Integer))) return false;
        *value = load_big_endian<Integer>(at_);
        at_ += sizeof(Integer);
        return true;
    }

    bool take_bytes(void *to, std::int64_t size) noexcept {
        if (left() < size) return false;
        std::memcpy(to, at_, static_cast<std::size_t>(size));
        at_ += size;
        return true;
    }

    // At most 32 bits in at most 5 bytes.
    bool take_uvarint(std::int64_t *value) noexcept {
        std::uint64_t read = 0;
        for (int shift = 0; shift < 35; shift += 7) {
            if (at_ == end_) return false;
            const std::uint8_t byte = *at_++;
            read |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) {
                *value = static_cast<std::int64_t>(read);
                return read <= UINT32_MAX;
            }
        }
        return false;
    }

protected:
    const std::uint8_t *at_;
    const std::uint8_t *end_;
};

}  // namespace fastquorum
