// What a batch's way through the shell takes, stage by stage: histograms, always kept, and a ring of time stamps on request.
//
// A `Group` is what is written at once: on a leader a batch, on a follower the records of one answer. Groups come in the
// order of the log, so a stage is reached by all groups up to some offset: each stage has a cursor, and nothing is searched.
// `Trace` is the lane lock's, as the log is. `Announcements` has a lock of its own: who is told hears of it outside of the lane lock.
// The pure twin is kernels/pure/stages.py; what the stages mean stands in kernels/stages.py.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../lane/ports.h"
#include "clock.h"

namespace fastquorum::node {

using lane::Micros;
using lane::Offset;

// Log-linear: 128 ns wide up to 4 us, then 32 buckets each time the value doubles, up to 69 s. Source: HdrHistogram.
class Histogram {
   public:
    static constexpr int unit_bits = 7;
    static constexpr int half_bits = 5;
    static constexpr Nanos value_max = (Nanos{1} << 36) - 1;
    static constexpr std::size_t bucket_count = 800;

    static std::size_t bucket_of(Nanos value) noexcept {
        const auto units = static_cast<std::uint64_t>(std::clamp(value, Nanos{0}, value_max)) >> unit_bits;
        const int shift = std::max(63 - std::countl_zero(units | 1) - half_bits, 0);
        return (static_cast<std::size_t>(shift) << half_bits) + static_cast<std::size_t>(units >> shift);
    }

    void add(Nanos value) noexcept {
        ++counts[bucket_of(value)];
        ++count;
        sum_ns += std::max(value, Nanos{0});
    }

    std::int64_t count = 0;
    Nanos sum_ns = 0;
    std::array<std::int64_t, bucket_count> counts{};
};

// The order is kernels.stages.STAGES', where the last two are committed_told and append_told, as metrics name them.
enum class Measure : int {
    append_written,
    written_sent,
    written_flushed,
    sync,
    sent_acked,
    written_committed,
    committed_announced,
    append_announced,
    count,
};
inline constexpr std::size_t measures = static_cast<std::size_t>(Measure::count);

enum class Stage : int { append, written, sent, syncing, flushed, acked, committed, count };
inline constexpr std::size_t stages = static_cast<std::size_t>(Stage::count);

// What was written at once, and when it got how far; 0: not yet, or not known.
struct Group {
    Offset base_offset = 0;
    Offset end_offset = 0;
    std::int32_t epoch = -1;
    bool is_leader = false;
    std::array<Nanos, stages> at{};

    Nanos &operator[](Stage stage) noexcept { return at[static_cast<std::size_t>(stage)]; }
};

// Of an append that is to be told; an append has an `appended_us`.
struct Stamp {
    Micros appended_us = 0;
    Micros committed_us = 0;
};

// Appends that were announced at once: base offsets from `first` to `last`.
struct AnnouncedRange {
    Offset first = 0;
    Offset last = 0;
    Nanos at = 0;
};

// How long it takes until the waiters of a commit know of it, and the latest announcements.
class Announcements {
   public:
    // `Letters` have a `result`, the base offset or a negative number, and a `stamp`.
    template <typename Letters>
    void note(const Letters &letters, Nanos at) noexcept {
        AnnouncedRange range{-1, -1, at};
        std::lock_guard guard(mutex_);
        for (const auto &each : letters) {
            if (each.result < 0 || each.stamp.appended_us == 0) continue;
            committed_announced_.add(at - each.stamp.committed_us * ns_per_us);
            append_announced_.add(at - each.stamp.appended_us * ns_per_us);
            range.first = range.first < 0 ? each.result : std::min(range.first, each.result);
            range.last = std::max(range.last, each.result);
        }
        if (!ring_.empty() && range.first >= 0) ring_[head_++ % ring_.size()] = range;
    }

    void note_one(std::int64_t result, Stamp stamp, Nanos at) noexcept {
        struct Letter {
            std::int64_t result;
            Stamp stamp;
        };
        note(std::array<Letter, 1>{{{result, stamp}}}, at);
    }

    void copy(Histogram *committed_announced, Histogram *append_announced) {
        std::lock_guard guard(mutex_);
        *committed_announced = committed_announced_;
        *append_announced = append_announced_;
    }

    // An empty ring ends it.
    std::vector<AnnouncedRange> use(std::vector<AnnouncedRange> ring) {
        std::lock_guard guard(mutex_);
        head_ = 0;
        return std::exchange(ring_, std::move(ring));
    }

    void read(std::vector<AnnouncedRange> *copy) {
        std::lock_guard guard(mutex_);
        copy->assign(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(head_, ring_.size())));
    }

   private:
    std::mutex mutex_;
    Histogram committed_announced_;
    Histogram append_announced_;
    std::vector<AnnouncedRange> ring_;
    std::uint64_t head_ = 0;
};

using AnnouncementsRef = std::shared_ptr<Announcements>;

class Trace {
   public:
    // Groups on their way that are measured; with more of them the oldest are given up. Recorded are as many as was asked for.
    static constexpr std::size_t window = 256;

    Trace() : announcements_(std::make_shared<Announcements>()), groups_(window) {}
    Trace(const Trace &) = delete;
    Trace &operator=(const Trace &) = delete;

    const AnnouncementsRef &announcements() const noexcept { return announcements_; }

    // --- what happens, in the order of the log -----------------------------------------------------------------------

    // A lane opens. What is on its way is measured no further.
    void opened(bool is_leader) noexcept {
        forget();
        is_leader_ = is_leader;
    }

    void forget() noexcept {
        passed_.fill(head_);
        first_ns_ = 0;
    }

    // An append, or records from a leader: whatever is written in consequence was begun then.
    void begin(Nanos at) noexcept { began_ns_ = at; }

    // The append was accepted, and is written with what else gathers.
    void gathers() noexcept {
        if (first_ns_ == 0) first_ns_ = began_ns_;
    }

    void written(Offset base_offset, Offset end_offset, std::int32_t epoch, Nanos at) noexcept {
        Group &group = groups_[head_++ % groups_.size()];
        const std::uint64_t oldest = overwritten();
        for (std::uint64_t &each : passed_) each = std::max(each, oldest);
        group = {base_offset, end_offset, epoch, is_leader_, {}};
        group[Stage::append] = first_ns_ != 0 ? first_ns_ : began_ns_;
        group[Stage::written] = at;
        first_ns_ = 0;
        add(Measure::append_written, at - group[Stage::append]);
    }

    bool awaits(Stage stage) const noexcept { return passed_[static_cast<std::size_t>(stage)] < head_; }

    // Everything up to `end` has been handed to a socket; on a follower: acknowledged by a Fetch that has been.
    void sent(Offset end, Nanos at) noexcept {
        pass(Stage::sent, end, at, [&](Group &group) {
            if (group.is_leader) add(Measure::written_sent, at - group[Stage::written]);
        });
    }

    // A sync has ended; `flushed` may follow.
    void synced(Nanos began, Nanos ended) noexcept {
        sync_began_ns_ = began;
        sync_ended_ns_ = ended;
        add(Measure::sync, ended - began);
    }
    Nanos sync_ended_ns() const noexcept { return sync_ended_ns_; }

    void flushed(Offset end, Nanos at) noexcept {
        pass(Stage::flushed, end, at, [&](Group &group) {
            if (sync_began_ns_ >= group[Stage::written] && sync_began_ns_ <= at) group[Stage::syncing] = sync_began_ns_;
            add(Measure::written_flushed, at - group[Stage::written]);
        });
    }

    // So many other voters have everything up to `end` on their disks that with this one they are a majority.
    void acked(Offset end, Nanos at) noexcept {
        pass(Stage::acked, end, at, [&](Group &group) {
            if (group.is_leader && group[Stage::sent] != 0) add(Measure::sent_acked, at - group[Stage::sent]);
        });
    }

    void committed(Offset end, Nanos at) noexcept {
        committed_ns_ = at;
        pass(Stage::committed, end, at, [&](Group &group) {
            if (group.is_leader) add(Measure::written_committed, at - group[Stage::written]);
        });
    }

    // For whoever is told now.
    Stamp stamp(Micros appended_us) const noexcept { return {appended_us, committed_ns_ / ns_per_us}; }

    // --- looking at it -----------------------------------------------------------------------------------------------

    // All but those of `Announcements`.
    void copy(std::vector<Histogram> *histograms) const { histograms->assign(histograms_.begin(), histograms_.end()); }

    // Record in here from now on, or, with one of `window`, no more. What was used before is given back, to be freed elsewhere.
    std::vector<Group> use(std::vector<Group> groups, bool is_recording) noexcept {
        std::swap(groups, groups_);
        is_recording_ = is_recording;
        head_ = 0;
        forget();
        return groups;
    }

    // Up to `count` groups from number `from` on are appended; the number of the next, `from` itself when there are no more.
    std::uint64_t read(std::uint64_t from, std::size_t count, std::vector<Group> *groups) const {
        if (!is_recording_) return from;
        const std::uint64_t oldest = overwritten();
        for (from = std::max(from, oldest); from < head_ && count > 0; ++from, --count) groups->push_back(groups_[from % groups_.size()]);
        return from;
    }

    // How many were recorded, and have been overwritten.
    std::uint64_t lost() const noexcept { return is_recording_ ? overwritten() : 0; }

   private:
    std::uint64_t overwritten() const noexcept { return head_ - std::min<std::uint64_t>(head_, groups_.size()); }

    void add(Measure measure, Nanos value) noexcept { histograms_[static_cast<std::size_t>(measure)].add(value); }

    template <typename Reached>
    void pass(Stage stage, Offset end, Nanos at, Reached reached) noexcept {
        std::uint64_t &cursor = passed_[static_cast<std::size_t>(stage)];
        for (; cursor < head_; ++cursor) {
            Group &group = groups_[cursor % groups_.size()];
            if (group.end_offset > end) return;
            group[stage] = at;
            reached(group);
        }
    }

    const AnnouncementsRef announcements_;
    std::array<Histogram, measures - 2> histograms_{};
    std::vector<Group> groups_;
    std::uint64_t head_ = 0;
    std::array<std::uint64_t, stages> passed_{};
    bool is_recording_ = false;
    bool is_leader_ = false;
    Nanos began_ns_ = 0;
    Nanos first_ns_ = 0;  // of the oldest append that gathers; 0: none does
    Nanos sync_began_ns_ = 0;
    Nanos sync_ended_ns_ = 0;
    Nanos committed_ns_ = 0;
};

}  // namespace fastquorum::node
