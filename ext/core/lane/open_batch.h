// The leader's open batch: values are encoded straight into it, and it is sealed once, when it is written.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

#include "../batch.h"
#include "../encode.h"
#include "ports.h"

namespace fastquorum::lane {

// Of a value's record: two lengths, an offset delta, and four single bytes.
inline constexpr std::int64_t record_overhead_max = 24;

class OpenBatch {
   public:
    explicit OpenBatch(std::int64_t bytes_max) : bytes_max_(bytes_max), buffer_(static_cast<std::uint8_t *>(std::malloc(static_cast<std::size_t>(bytes_max)))) {
        // Not zeroed: the pages of a large buffer are touched only as far as batches grow.
        if (buffer_ == nullptr) throw std::bad_alloc();
    }
    OpenBatch(const OpenBatch &) = delete;
    OpenBatch &operator=(const OpenBatch &) = delete;
    ~OpenBatch() { std::free(buffer_); }

    std::int64_t record_count() const noexcept { return record_count_; }
    Offset base_offset() const noexcept { return header_.base_offset; }
    Offset next_offset() const noexcept { return header_.base_offset + record_count_; }
    std::int64_t size_bytes() const noexcept { return size_; }
    std::int64_t timestamp_ms() const noexcept { return header_.base_timestamp_ms; }

    // Begin an empty one.
    void open(Offset base_offset, std::int32_t epoch, std::int64_t timestamp_ms) noexcept {
        header_ = {};
        header_.base_offset = base_offset;
        header_.leader_epoch = epoch;
        header_.base_timestamp_ms = header_.max_timestamp_ms = timestamp_ms;
        header_.producer_id = -1;
        header_.producer_epoch = -1;
        header_.base_sequence = -1;
        size_ = header_bytes;
        record_count_ = 0;
    }

    static std::int64_t size_alone(const Slice *values, std::int64_t count) noexcept { return header_bytes + values_size(values, count, 0); }

    // Certainly, whatever their sizes.
    bool has_room(std::int64_t size_bytes, std::int64_t count) const noexcept {
        const std::int64_t used = record_count_ > 0 ? size_ : header_bytes;
        return used + size_bytes + record_overhead_max * count <= bytes_max_ && record_count_ + count <= INT32_MAX;
    }

    // All or none; false if they do not fit any more.
    bool append(const Slice *values, std::int64_t count) noexcept {
        const std::int64_t grown = size_ + values_size(values, count, record_count_);
        if (grown > bytes_max_ || record_count_ + count > INT32_MAX) return false;
        write_values(buffer_ + size_, values, count, record_count_);
        size_ = grown;
        record_count_ += count;
        return true;
    }

    // Its bytes, good until the next one is begun.
    Span seal() noexcept {
        header_.size_bytes = size_;
        header_.records_count = static_cast<std::int32_t>(record_count_);
        header_.last_offset_delta = static_cast<std::int32_t>(record_count_ - 1);
        fastquorum::seal(buffer_, header_);
        record_count_ = 0;
        return Span{buffer_, size_};
    }

   private:
    const std::int64_t bytes_max_;
    std::uint8_t *const buffer_;
    std::int64_t size_ = 0;
    std::int64_t record_count_ = 0;
    BatchHeader header_{};
};

}  // namespace fastquorum::lane
