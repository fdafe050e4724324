// Heartbeats of brokers that go on as they are, answered without Python. The twin of kernels/pure/beats.py; what is kept here,
// and until when, is the controller's to say (kernels/beats.py).
//
// A heartbeat that is not answered here has changed nothing. A lock of its own: Python's thread keeps and forgets while the
// sockets' thread answers. It is taken after the lane's, never before. Source: KIP-631; the Kafka protocol guide.
#pragma once

#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../decode.h"
#include "../fetch_frames.h"

namespace fastquorum::node {

inline constexpr std::int16_t heartbeat_api_key = 63;
inline constexpr std::int64_t beat_answer_bytes_min = 4, beat_answer_bytes_max = 64;

struct SteadyBeat {
    std::int32_t broker_id = -1;
    std::int64_t broker_epoch = -1;
    std::int16_t version = -1;
    std::int64_t metadata_offset_min = 0;
    std::string wishes;
    std::string answer;
};

struct AnsweredBeat {
    std::int32_t broker_id = -1;
    std::int64_t broker_epoch = -1;
    std::int64_t contact_us = 0;
    std::int64_t metadata_offset = -1;
};

// A response frame, to be written without memory of its own.
struct BeatAnswer {
    std::uint8_t bytes[beat_answer_bytes_max];
    std::int64_t size = 0;
};

class SteadyBeats {
   public:
    void begin(std::int32_t leader_epoch) noexcept {
        std::lock_guard guard(mutex_);
        leader_epoch_ = leader_epoch;
        kept_.clear();
        answered_.clear();
    }

    void keep(SteadyBeat beat) {
        std::lock_guard guard(mutex_);
        answered_.reserve(kept_.size() + 1);
        kept_.insert_or_assign(beat.broker_id, std::move(beat));
    }

    void forget(std::int32_t broker_id) noexcept {
        std::lock_guard guard(mutex_);
        kept_.erase(broker_id);
    }

    void forget_all() noexcept {
        std::lock_guard guard(mutex_);
        kept_.clear();
    }

    // False: not a heartbeat that is answered here.
    bool answer(Span frame, std::int32_t leader_epoch, std::int64_t now_us, BeatAnswer *answer) {
        FrameReader in(frame.data, frame.size);
        std::int16_t version;
        std::int32_t correlation_id;
        AnsweredBeat beat;
        if (!in.expect(heartbeat_api_key) || !in.take(&version) || !in.take(&correlation_id) || !in.skip_string()) return false;
        if (!in.expect<std::uint8_t>(0) || !in.take(&beat.broker_id) || !in.take(&beat.broker_epoch)) return false;
        if (!in.take(&beat.metadata_offset)) return false;
        std::lock_guard guard(mutex_);
        const auto found = kept_.find(beat.broker_id);
        if (found == kept_.end() || leader_epoch != leader_epoch_) return false;
        const SteadyBeat &kept = found->second;
        if (kept.version != version || kept.broker_epoch != beat.broker_epoch || beat.metadata_offset < kept.metadata_offset_min) return false;
        if (!in.expect_bytes(kept.wishes.data(), static_cast<std::int64_t>(kept.wishes.size())) || !in.at_end()) return false;
        beat.contact_us = now_us;
        answered_.insert_or_assign(beat.broker_id, beat);
        answer->size = static_cast<std::int64_t>(kept.answer.size());
        std::memcpy(answer->bytes, kept.answer.data(), kept.answer.size());
        store_big_endian(answer->bytes, correlation_id);
        return true;
    }

    std::vector<AnsweredBeat> take_answered() {
        std::lock_guard guard(mutex_);
        std::vector<AnsweredBeat> taken;
        taken.reserve(answered_.size());
        for (const auto &[broker_id, each] : answered_) taken.push_back(each);
        answered_.clear();
        return taken;
    }

   private:
    std::mutex mutex_;
    std::int32_t leader_epoch_ = -1;
    std::unordered_map<std::int32_t, SteadyBeat> kept_;
    std::unordered_map<std::int32_t, AnsweredBeat> answered_;
};

}  // namespace fastquorum::node
