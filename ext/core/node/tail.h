// The log's most recent batches in memory, so that whoever fetches at the end of the log costs no read of the disk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "../lane/ports.h"
#include "../scan.h"

namespace fastquorum::node {

using lane::Offset;

class RecentTail {
   public:
    static constexpr std::int64_t bytes_max = 8 * 1024 * 1024;
    static constexpr std::int64_t chunk_bytes = 1024 * 1024;

    // Where what is held ends; -1 while nothing is.
    Offset end_offset() const noexcept { return chunks_.empty() ? -1 : end_; }

    // Whole batches that continue what is held.
    void append(Span batches, Offset base_offset, Offset next_offset) {
        if (chunks_.empty() || chunks_.back().used + batches.size > chunks_.back().capacity) begin_chunk(batches.size);
        Chunk &chunk = chunks_.back();
        std::memcpy(chunk.bytes.get() + chunk.used, batches.data, static_cast<std::size_t>(batches.size));
        chunk.starts.emplace_back(base_offset, chunk.used);
        chunk.used += batches.size;
        total_ += batches.size;
        end_ = next_offset;
        while (total_ > bytes_max && chunks_.size() > 1) drop_first();
    }

    void clear() noexcept {
        chunks_.clear();
        total_ = 0;
    }

    // Whole batches from the one that contains `offset`, at most limit but at least one; false if they are not held.
    bool read(Offset offset, std::int64_t limit, Span *batches) const noexcept {
        for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
            if (chunk->starts.front().first > offset) continue;
            const auto next = std::upper_bound(chunk->starts.begin(), chunk->starts.end(), offset,
                                               [](Offset wanted, const auto &start) { return wanted < start.first; });
            const std::int64_t from = std::prev(next)->second;
            const Pair found = slice_batches(chunk->bytes.get() + from, chunk->used - from, offset, limit);
            *batches = Span{chunk->bytes.get() + from + found.first, found.second - found.first};
            return batches->size > 0;
        }
        return false;
    }

   private:
    struct Chunk {
        std::unique_ptr<std::uint8_t[]> bytes;
        std::int64_t capacity;
        std::int64_t used;
        std::vector<std::pair<Offset, std::int64_t>> starts;  // of what was appended at a time, and where it lies
    };

    void begin_chunk(std::int64_t size) {
        const std::int64_t capacity = std::max(size, chunk_bytes);
        if (spare_.bytes != nullptr && spare_.capacity >= capacity) {
            spare_.used = 0;
            spare_.starts.clear();
            chunks_.push_back(std::move(spare_));
            spare_ = {};
        } else {
            // Not zeroed: its pages are touched as far as it fills.
            chunks_.push_back({std::unique_ptr<std::uint8_t[]>(new std::uint8_t[static_cast<std::size_t>(capacity)]), capacity, 0, {}});
        }
    }

    void drop_first() noexcept {
        total_ -= chunks_.front().used;
        spare_ = std::move(chunks_.front());
        chunks_.pop_front();
    }

    std::deque<Chunk> chunks_;
    Chunk spare_{};
    std::int64_t total_ = 0;
    Offset end_ = -1;
};

}  // namespace fastquorum::node
