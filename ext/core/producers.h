// What producers have in a log: for each its epoch and its last batches. See kernels/producers.py for the rules.
//
// Thread-safe: a lane that appends takes batches in while Python looks. Its lock is held for moments only, and nothing is
// waited for in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batch.h"

namespace fastquorum {

struct Stamp {
    std::int64_t producer_id = -1;
    std::int32_t epoch = -1;
    std::int64_t first_sequence = 0;
    std::int64_t record_count = 0;
    std::uint32_t crc = 0;

    // Without a sequence: it takes the next epoch.
    bool is_fence() const noexcept { return first_sequence < 0; }
};

struct ProducedBatch {
    std::int64_t first_sequence = 0, last_sequence = 0;
    std::int64_t base_offset = 0, end_offset = 0;
    std::uint32_t crc = 0;
};

inline Stamp stamp_of(const BatchHeader &header) noexcept {
    return {header.producer_id, header.producer_epoch, header.base_sequence, std::int64_t{header.last_offset_delta} + 1, header.crc};
}

inline constexpr std::int64_t sequences = std::int64_t{1} << 31;  // they run from 0 up to this, and begin anew
inline constexpr std::int32_t producer_epochs = 1 << 15;         // so do epochs that fences take
inline constexpr std::int64_t no_sequence = -1;
inline std::int64_t sequence_after(std::int64_t sequence, std::int64_t count) noexcept { return (sequence + count) % sequences; }

class Producers {
   public:
    static constexpr int batches_kept = 5;

    struct Producer {
        std::int32_t epoch = 0;
        int count = 0;
        bool has_fence = false;               // `epoch` was taken by `fence`
        ProducedBatch batches[batches_kept];  // oldest first
        ProducedBatch fence;

        std::int64_t next_sequence() const noexcept { return count > 0 ? sequence_after(batches[count - 1].last_sequence, 1) : 0; }
        std::int64_t end_offset() const noexcept {
            return std::max(count > 0 ? batches[count - 1].end_offset : 0, has_fence ? fence.end_offset : 0);
        }
    };

    // `unknown`: nothing is known of its producer, and it may begin anywhere. `same_sequences`: they are in the log, with a batch
    // of another checksum.
    enum class Verdict { next, unknown, duplicate, same_sequences, fenced, out_of_order };

    Producers(std::int64_t start_offset, std::int64_t producers_max, std::int64_t undo_max) noexcept
        : producers_max_(producers_max), undo_max_(undo_max), end_offset_(start_offset), start_offset_(start_offset), floor_(start_offset) {}

    std::int64_t end_offset() const {
        std::lock_guard guard(mutex_);
        return end_offset_;
    }

    std::int64_t size() const {
        std::lock_guard guard(mutex_);
        return static_cast<std::int64_t>(known_.size());
    }

    bool get(std::int64_t producer_id, Producer *found) const {
        std::lock_guard guard(mutex_);
        const auto at = known_.find(producer_id);
        if (at == known_.end()) return false;
        *found = at->second;
        return true;
    }

    // Where the last batch ends of the producer that one more would displace; -1 while there is room.
    std::int64_t displaced_end() const {
        std::lock_guard guard(mutex_);
        return static_cast<std::int64_t>(known_.size()) < producers_max_ ? -1 : by_end_.begin()->first;
    }

    // `found`: the batch that has its sequences. `expected`: the epoch, or the sequence, that would have been right.
    Verdict check(const Stamp &stamp, ProducedBatch *found, std::int64_t *expected) const {
        std::lock_guard guard(mutex_);
        const auto at = known_.find(stamp.producer_id);
        if (at == known_.end()) return Verdict::unknown;
        const Producer &known = at->second;
        *expected = known.epoch;
        if (stamp.is_fence()) {
            *found = known.fence;
            if (known.has_fence && stamp.epoch == known.epoch && stamp.crc == known.fence.crc) return Verdict::duplicate;
            return stamp.epoch == (known.epoch + 1) % producer_epochs ? Verdict::next : Verdict::fenced;
        }
        if (stamp.epoch < known.epoch || (known.has_fence && stamp.epoch != known.epoch)) return Verdict::fenced;
        *expected = 0;
        if (stamp.epoch == known.epoch) {
            const std::int64_t last = sequence_after(stamp.first_sequence, stamp.record_count - 1);
            for (int i = 0; i < known.count; ++i)
                if (known.batches[i].first_sequence == stamp.first_sequence && known.batches[i].last_sequence == last) {
                    *found = known.batches[i];
                    return found->crc == stamp.crc ? Verdict::duplicate : Verdict::same_sequences;
                }
            *expected = known.count > 0 ? known.next_sequence() : stamp.first_sequence;
        }
        return stamp.first_sequence == *expected ? Verdict::next : Verdict::out_of_order;
    }

    // A batch was appended; without a producer's stamp if producer_id < 0. What does not continue what is known is read later.
    void appended(const Stamp &stamp, std::int64_t base_offset, std::int64_t end_offset) {
        std::lock_guard guard(mutex_);
        if (base_offset != end_offset_) return;
        if (stamp.producer_id >= 0) take(stamp, base_offset);
        end_offset_ = end_offset;
    }

    // Whole, good batches, from base_offset to end_offset. Nothing happens if they do not continue what is known.
    void read(const std::uint8_t *data, std::int64_t size, std::int64_t base_offset, std::int64_t end_offset) {
        std::lock_guard guard(mutex_);
        if (base_offset != end_offset_) return;
        for (std::int64_t at = 0; framing_fault(data, size, at) == Fault::none;) {
            const BatchHeader header = read_header(data + at);
            if (header.size_bytes < header_bytes || header.size_bytes > size - at) break;
            if (header.producer_id >= 0) take(stamp_of(header), header.base_offset);
            at += header.size_bytes;
        }
        end_offset_ = end_offset;
    }

    void truncated(std::int64_t end_offset) {
        std::lock_guard guard(mutex_);
        if (end_offset < floor_) return clear(start_offset_);
        while (!undo_.empty() && undo_.back().base_offset >= end_offset) {
            Undo &last = undo_.back();
            const auto at = known_.find(last.producer_id);
            by_end_.erase(at->second.end_offset());
            if (last.before) {
                at->second = *last.before;
                by_end_.emplace(last.before->end_offset(), last.producer_id);
            } else {
                known_.erase(at);
            }
            undo_.pop_back();
        }
        end_offset_ = std::min(end_offset_, end_offset);
    }

    void begin_anew(std::int64_t start_offset) {
        std::lock_guard guard(mutex_);
        start_offset_ = start_offset;
        clear(start_offset);
    }

   private:
    struct Undo {
        std::int64_t base_offset;
        std::int64_t producer_id;
        std::optional<Producer> before;
    };

    void clear(std::int64_t start_offset) noexcept {
        known_.clear();
        by_end_.clear();
        undo_.clear();
        end_offset_ = floor_ = start_offset;
    }

    void take(const Stamp &stamp, std::int64_t base_offset) {
        const std::int64_t last = stamp.is_fence() ? no_sequence : sequence_after(stamp.first_sequence, stamp.record_count - 1);
        const ProducedBatch batch{stamp.is_fence() ? no_sequence : stamp.first_sequence, last, base_offset, base_offset + stamp.record_count,
                                  stamp.crc};
        const auto [at, is_new] = known_.try_emplace(stamp.producer_id);
        Producer &producer = at->second;
        if (!is_new) by_end_.erase(producer.end_offset());
        undo_.push_back({base_offset, stamp.producer_id, is_new ? std::nullopt : std::optional(producer)});
        if (stamp.is_fence()) {
            producer.has_fence = true;
            producer.fence = batch;
        } else {
            if (is_new || producer.epoch != stamp.epoch) {
                producer.has_fence = false;
                producer.count = 0;
            } else if (producer.count == batches_kept) {
                std::move(producer.batches + 1, producer.batches + batches_kept, producer.batches);
                --producer.count;
            }
            producer.batches[producer.count++] = batch;
        }
        producer.epoch = stamp.epoch;
        by_end_.emplace(batch.end_offset, stamp.producer_id);
        if (static_cast<std::int64_t>(undo_.size()) > undo_max_) {
            floor_ = undo_.front().base_offset + 1;
            undo_.pop_front();
        }
        forget_oldest();
    }

    // But none that may have to be restored to what it was before.
    void forget_oldest() {
        while (static_cast<std::int64_t>(known_.size()) > producers_max_ && by_end_.begin()->first <= undo_.front().base_offset) {
            known_.erase(by_end_.begin()->second);
            by_end_.erase(by_end_.begin());
        }
    }

    const std::int64_t producers_max_;
    const std::int64_t undo_max_;
    mutable std::mutex mutex_;
    std::int64_t end_offset_;  // all batches below it are taken in
    std::int64_t start_offset_;
    std::int64_t floor_;  // a truncation to below it cannot be undone: everything is read anew
    std::unordered_map<std::int64_t, Producer> known_;
    std::map<std::int64_t, std::int64_t> by_end_;  // their ids, by where their last batches end
    std::deque<Undo> undo_;
};

using ProducersRef = std::shared_ptr<Producers>;

}  // namespace fastquorum
