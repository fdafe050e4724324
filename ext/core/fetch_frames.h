// What the Fetch layouts are written with: a reader that refuses to run past the end, a writer into a small buffer.
// Source: KIP-482 (compact types, tags).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "batch.h"

namespace fastquorum {

// Bytes of somebody else's; data null = there is none.
struct Span {
    const std::uint8_t *data = nullptr;
    std::int64_t size = 0;

    bool operator==(const Span &other) const noexcept {
        return size == other.size && (size == 0 || std::memcmp(data, other.data, static_cast<std::size_t>(size)) == 0);
    }
};

inline constexpr std::int64_t uuid_bytes = 16;
inline constexpr std::uint8_t zero_uuid[uuid_bytes] = {};
inline bool is_zero(const std::uint8_t *uuid) noexcept { return std::memcmp(uuid, zero_uuid, sizeof zero_uuid) == 0; }

class FrameReader {
   public:
    FrameReader(const std::uint8_t *data, std::int64_t size) noexcept : at_(data), end_(data + size) {}

    bool at_end() const noexcept { return at_ == end_; }

    template <typename Integer>
    bool take(Integer *value) noexcept {
        if (left() < static_cast<std::int64_t>(sizeof(Integer))) return false;
        *value = load_big_endian<Integer>(at_);
        at_ += sizeof(Integer);
        return true;
    }

    template <typename Integer>
    bool expect(Integer wanted) noexcept {
        Integer value;
        return take(&value) && value == wanted;
    }

    bool expect_bytes(const char *wanted, std::int64_t size) noexcept {
        if (left() < size || std::memcmp(at_, wanted, static_cast<std::size_t>(size)) != 0) return false;
        at_ += size;
        return true;
    }

    bool skip(std::int64_t size) noexcept {
        if (left() < size) return false;
        at_ += size;
        return true;
    }

    bool take_uuid(const std::uint8_t **uuid) noexcept {
        *uuid = at_;
        return skip(uuid_bytes);
    }

    // A string with an int16 length, -1 for null.
    bool skip_string() noexcept {
        std::int16_t size;
        return take(&size) && size >= -1 && skip(size < 0 ? 0 : size);
    }

    // Compact bytes; null is refused.
    bool take_bytes(Span *bytes) noexcept {
        std::uint64_t size;
        if (!uvarint(&size) || size == 0 || size - 1 > static_cast<std::uint64_t>(left())) return false;
        *bytes = Span{at_, static_cast<std::int64_t>(size) - 1};
        return skip(bytes->size);
    }

    // As they are, their size known.
    bool take_span(std::int64_t size, Span *bytes) noexcept {
        *bytes = Span{at_, size};
        return skip(size);
    }

    // A compact length of this value.
    bool expect_size(std::int64_t wanted) noexcept {
        std::uint64_t size;
        return uvarint(&size) && size == static_cast<std::uint64_t>(wanted) + 1;
    }

    // Is this the next tag? False at the end, where a parser finds that its tags are not used up.
    bool next_is(std::uint8_t tag) const noexcept { return at_ != end_ && *at_ == tag; }

    // A tag's payload that is one compact string, both lengths of one byte; its bytes. An empty one has no null data.
    bool take_tagged_string(Span *text) noexcept {
        std::uint8_t size, inner;
        if (!take(&size) || size == 0 || size > 0x7F || !take(&inner) || inner != size) return false;
        *text = Span{at_, size - 1};
        return skip(text->size);
    }

    bool skip_tagged() noexcept {
        std::uint64_t size;
        return uvarint(&size) && size <= static_cast<std::uint64_t>(left()) && skip(static_cast<std::int64_t>(size));
    }

   private:
    std::int64_t left() const noexcept { return end_ - at_; }

    // At most five bytes, as Kafka writes them.
    bool uvarint(std::uint64_t *value) noexcept {
        *value = 0;
        for (int shift = 0; shift <= 28; shift += 7) {
            std::uint8_t byte;
            if (!take(&byte)) return false;
            *value |= std::uint64_t{byte & 0x7Fu} << shift;
            if (byte < 0x80) return true;
        }
        return false;
    }

    const std::uint8_t *at_;
    const std::uint8_t *end_;
};

// Room for everything of a frame but its records; whoever makes a lane has checked that its texts are short.
inline constexpr std::int64_t frame_head_max = 1024;
inline constexpr std::int64_t frame_text_max = 255;

class FrameWriter {
   public:
    const std::uint8_t *data() const noexcept { return bytes_; }
    std::int64_t size() const noexcept { return size_; }

    template <typename Integer>
    void put(Integer value) noexcept {
        store_big_endian(reserve(sizeof(Integer)), value);
    }

    void bytes(const void *data, std::int64_t size) noexcept {
        if (size > 0) std::memcpy(reserve(size), data, static_cast<std::size_t>(size));
    }

    void uuid(const std::uint8_t *data) noexcept { bytes(data, uuid_bytes); }

    // A string with an int16 length.
    void text(Span text) noexcept {
        put(static_cast<std::int16_t>(text.size));
        bytes(text.data, text.size);
    }

    void compact(Span text) noexcept {
        uvarint(static_cast<std::uint64_t>(text.size) + 1);
        bytes(text.data, text.size);
    }

    void uvarint(std::uint64_t value) noexcept {
        for (; value > 0x7F; value >>= 7) put(static_cast<std::uint8_t>((value & 0x7F) | 0x80));
        put(static_cast<std::uint8_t>(value));
    }

    void tagged(std::uint8_t tag, const FrameWriter &payload) noexcept {
        put(tag);
        uvarint(static_cast<std::uint64_t>(payload.size_));
        bytes(payload.bytes_, payload.size_);
    }

   private:
    std::uint8_t *reserve(std::int64_t size) noexcept {
        // Cannot happen: see frame_text_max. Should it, a frame is spoiled, and no memory.
        if (size_ + size > frame_head_max) size_ = 0;
        std::uint8_t *at = bytes_ + size_;
        size_ += size;
        return at;
    }

    std::int64_t size_ = 0;
    std::uint8_t bytes_[frame_head_max];
};

}  // namespace fastquorum
