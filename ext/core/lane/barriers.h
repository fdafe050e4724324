// Read barriers (rule 7): the twin of kernels/pure/lane/barriers.py. Raft section 6.4 (ReadIndex), over KIP-595's pull.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ports.h"

namespace fastquorum::lane {

class Barriers {
   public:
    std::int64_t begun() const noexcept { return begun_; }
    bool is_pending() const noexcept { return done_ < begun_; }

    // A lead begins. The leader confirms its own barriers if it is a voter (own_index >= 0).
    void open(std::size_t voter_count, int own_index) {
        confirmed_.assign(voter_count, 0);
        sorted_.reserve(voter_count);
        if (own_index >= 0) confirmed_[static_cast<std::size_t>(own_index)] = always;
    }

    std::int64_t begin() noexcept { return ++begun_; }

    // A voter's Fetch came that answers a response sent when barrier `answered` was the latest.
    void confirm(int voter_index, std::int64_t answered) noexcept {
        std::int64_t &confirmed = confirmed_[static_cast<std::size_t>(voter_index)];
        confirmed = std::max(confirmed, answered);
    }

    // Report what a majority has confirmed; the caller has checked the high watermark against the epoch's start.
    void complete(Offset high_watermark, Outputs &out) {
        sorted_ = confirmed_;
        std::sort(sorted_.begin(), sorted_.end());
        const std::int64_t reached = std::min(sorted_[(sorted_.size() - 1) / 2], begun_);
        while (done_ < reached) out.barrier_done(++done_, high_watermark);
    }

    // The lead ends: whatever is pending fails.
    void fail(Outputs &out) {
        while (done_ < begun_) out.barrier_done(++done_, -1);
    }

   private:
    static constexpr std::int64_t always = std::int64_t{1} << 62;

    std::int64_t begun_ = 0;
    std::int64_t done_ = 0;
    std::vector<std::int64_t> confirmed_;
    std::vector<std::int64_t> sorted_;
};

}  // namespace fastquorum::lane
