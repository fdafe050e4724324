// A segment's offset index: where, roughly, an offset lies in the file. Ascending in both columns, as Kafka's `OffsetIndex`.
//
// Shared between threads: one appends while others look up. Everything but the base, which never changes, is read and
// written under the mutex, and nobody waits for anything while holding it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "batch.h"
#include "scan.h"

namespace fastquorum {

class OffsetIndex {
   public:
    explicit OffsetIndex(std::int64_t base_offset) noexcept : base_offset_(base_offset) {}
    OffsetIndex(const OffsetIndex &) = delete;
    OffsetIndex &operator=(const OffsetIndex &) = delete;

    std::int64_t base_offset() const noexcept { return base_offset_; }

    std::int64_t size() const noexcept {
        std::lock_guard guard(mutex_);
        return static_cast<std::int64_t>(entries_.size());
    }

    // Is a batch at `position` far enough behind the last listed one to be listed?
    bool is_due(std::int64_t position) const noexcept {
        std::lock_guard guard(mutex_);
        return is_due_now(position);
    }

    // List the batch at `position` if that is due, and if its entry ascends and fits into Kafka's two int32. False if
    // memory ran out; nothing has changed then.
    bool add(std::int64_t base_offset, std::int32_t last_offset_delta, std::int64_t position) noexcept {
        std::int64_t relative;
        if (__builtin_sub_overflow(base_offset, base_offset_, &relative) ||
            __builtin_add_overflow(relative, last_offset_delta, &relative))
            return true;
        std::lock_guard guard(mutex_);
        const std::int64_t before = entries_.empty() ? -1 : entries_.back().relative_offset;
        if (!is_due_now(position) || relative <= before || relative > INT32_MAX || position > INT32_MAX) return true;
        try {
            entries_.push_back({static_cast<std::int32_t>(relative), static_cast<std::int32_t>(position)});
        } catch (const std::bad_alloc &) {
            return false;
        }
        return true;
    }

    // The same of a batch whose header the caller has; it is read only if an entry is due.
    bool add_batch(const std::uint8_t *batch, std::int64_t base_offset, std::int64_t position) noexcept {
        if (!is_due(position)) return true;
        return add(base_offset, load_big_endian<std::int32_t>(batch + offsetof(WireHeader, last_offset_delta)), position);
    }

    // Position of a batch that holds `offset` or begins before it; the nearest one listed, else 0.
    std::int64_t lookup(std::int64_t offset) const noexcept {
        if (offset < base_offset_) return 0;
        const std::uint64_t relative = static_cast<std::uint64_t>(offset) - static_cast<std::uint64_t>(base_offset_);
        std::lock_guard guard(mutex_);
        const auto above = std::upper_bound(
            entries_.begin(), entries_.end(), relative,
            [](std::uint64_t wanted, const Entry &entry) { return wanted < static_cast<std::uint64_t>(entry.relative_offset); });
        return above == entries_.begin() ? 0 : (above - 1)->position;
    }

    // Drop entries for batches at or beyond `position`.
    void truncate_to(std::int64_t position) noexcept {
        std::lock_guard guard(mutex_);
        while (!entries_.empty() && entries_.back().position >= position) entries_.pop_back();
    }

    // Kafka's file: both columns of every entry, big-endian. False if memory ran out.
    bool encode(std::vector<std::uint8_t> *out) const noexcept {
        try {
            std::lock_guard guard(mutex_);
            out->resize(entries_.size() * sizeof(Entry));
            std::uint8_t *at = out->data();
            for (const Entry &entry : entries_) {
                store_big_endian(at, entry.relative_offset);
                store_big_endian(at + sizeof entry.relative_offset, entry.position);
                at += sizeof entry;
            }
        } catch (const std::bad_alloc &) {
            return false;
        }
        return true;
    }

   private:
    struct Entry {
        std::int32_t relative_offset;  // the batch's last, from base_offset_; never negative
        std::int32_t position;
    };
    static_assert(sizeof(Entry) == 8, "an entry of Kafka's index has 8 bytes");

    bool is_due_now(std::int64_t position) const noexcept {
        return position >= index_interval_bytes + (entries_.empty() ? 0 : entries_.back().position);
    }

    const std::int64_t base_offset_;
    mutable std::mutex mutex_;
    std::vector<Entry> entries_;
};

using IndexRef = std::shared_ptr<OffsetIndex>;

// Null if memory ran out.
inline IndexRef make_index(std::int64_t base_offset) noexcept {
    try {
        return std::make_shared<OffsetIndex>(base_offset);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

}  // namespace fastquorum
