// Which leader epoch begins at which offset: two ascending columns. KIP-101.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>
#include <vector>

namespace fastquorum {

class EpochTable {
   public:
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(epochs_.size()); }
    std::int64_t epoch(std::int64_t i) const noexcept { return epochs_[static_cast<std::size_t>(i)]; }
    std::int64_t start(std::int64_t i) const noexcept { return starts_[static_cast<std::size_t>(i)]; }
    std::int64_t latest_epoch() const noexcept { return epochs_.empty() ? -1 : epochs_.back(); }
    std::int64_t latest_start() const noexcept { return starts_.empty() ? -1 : starts_.back(); }

    // False if memory ran out; nothing has changed then.
    bool append(std::int64_t epoch, std::int64_t start_offset) noexcept {
        try {
            epochs_.reserve(epochs_.size() + 1 > epochs_.capacity() ? 2 * epochs_.size() + 8 : 0);
            starts_.reserve(epochs_.capacity());
        } catch (const std::bad_alloc &) {
            return false;
        }
        epochs_.push_back(epoch);
        starts_.push_back(start_offset);
        return true;
    }

    // Epoch of the record at offset; -1 if it precedes the first entry.
    std::int64_t epoch_for(std::int64_t offset) const noexcept {
        const std::int64_t following = after(starts_, offset);
        return following == 0 ? -1 : epoch(following - 1);
    }

    std::pair<std::int64_t, std::int64_t> end_offset_for(std::int64_t wanted, std::int64_t log_end_offset) const noexcept {
        if (epochs_.empty()) return {-1, -1};
        if (wanted >= epochs_.back()) return {epochs_.back(), log_end_offset};
        const std::int64_t following = after(epochs_, wanted);
        return {following == 0 ? wanted : epoch(following - 1), start(following)};
    }

    void truncate_to(std::int64_t end_offset) noexcept {
        const auto keep = std::lower_bound(starts_.begin(), starts_.end(), end_offset) - starts_.begin();
        epochs_.resize(static_cast<std::size_t>(keep));
        starts_.resize(static_cast<std::size_t>(keep));
    }

    void truncate_before(std::int64_t start_offset) noexcept {
        const std::int64_t covering = after(starts_, start_offset) - 1;
        if (covering < 0) return;
        epochs_.erase(epochs_.begin(), epochs_.begin() + covering);
        starts_.erase(starts_.begin(), starts_.begin() + covering);
        starts_.front() = start_offset;
    }

   private:
    static std::int64_t after(const std::vector<std::int64_t> &column, std::int64_t value) noexcept {
        return std::upper_bound(column.begin(), column.end(), value) - column.begin();
    }

    std::vector<std::int64_t> epochs_;
    std::vector<std::int64_t> starts_;
};

inline constexpr std::int64_t sorted_by_insertion_max = 16;  // of so few no other way is faster

// The value that a majority of `count` values reaches, at least one; their order is changed.
inline std::int64_t majority_reached(std::int64_t *end_offsets, std::int64_t count) noexcept {
    if (count > sorted_by_insertion_max) {
        std::nth_element(end_offsets, end_offsets + count / 2, end_offsets + count, std::greater<>());
        return end_offsets[count / 2];
    }
    for (std::int64_t i = 1; i < count; ++i) {
        const std::int64_t value = end_offsets[i];
        std::int64_t j = i;
        for (; j > 0 && end_offsets[j - 1] < value; --j) end_offsets[j] = end_offsets[j - 1];
        end_offsets[j] = value;
    }
    return end_offsets[count / 2];
}

}  // namespace fastquorum
