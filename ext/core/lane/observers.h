// Observers that a leader's lane awaits: the twin of kernels/pure/lane/observers.py. KIP-1166.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "peer.h"
#include "ports.h"

namespace fastquorum::lane {

class AwaitedObservers {
   public:
    explicit AwaitedObservers(Outputs &out) noexcept : out_(out) {}

    // False: nobody is awaited, now or from an earlier call. `served`: of {connection, peer}; `ids`: ascending.
    template <class Served>
    bool begin(const std::vector<Served> &served, const std::vector<std::int32_t> &ids, Offset offset) noexcept {
        awaited_ = 0;
        for (const Served &each : served) {
            Peer &peer = *each.peer;
            peer.is_awaited = peer.awaited_offset < 0 && peer.voter_index < 0 && peer.request_high_watermark < offset &&
                              std::binary_search(ids.begin(), ids.end(), peer.key.id);
            if (!peer.is_awaited) continue;
            peer.awaited_offset = offset;
            ++awaited_;
        }
        return awaited_ > 0;
    }

    // It named its high watermark.
    void fetched(Peer &peer) noexcept {
        if (peer.awaited_offset >= 0 && peer.awaited_offset <= peer.request_high_watermark) leave(peer);
    }

    // It is not awaited any more.
    void leave(Peer &peer) noexcept {
        peer.awaited_offset = unknown_offset;
        if (!peer.is_awaited) return;
        peer.is_awaited = false;
        if (--awaited_ == 0) out_.observers_informed();
    }

   private:
    Outputs &out_;
    std::int64_t awaited_ = 0;
};

}  // namespace fastquorum::lane
