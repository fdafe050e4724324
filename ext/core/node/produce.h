// Produce requests of the kind that producers send all day, served without Python: one batch, one topic, one partition.
//
// Everything else - other shapes, compressed batches, transactions, acks=0 - is Python's (node/clients/produce.py), and so is
// every refusal: what this does not take has changed nothing. The responses are those of Python, but for a few numbers in them.
// Source: the Kafka protocol guide (Produce 3-13); KIP-98; KIP-516 (topic ids).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../decode.h"
#include "../fetch_frames.h"
#include "../lane/ports.h"

namespace fastquorum::node {

inline constexpr std::int16_t produce_api_key = 0;
inline constexpr int produce_version_min = 3, produce_version_max = 13;
inline constexpr int produce_flexible_min = 9, produce_topic_id_min = 13;
inline constexpr std::int16_t not_leader_or_follower = 6, request_timed_out = 7;

// The response to a batch that was taken, as the codec writes it, and where in it the numbers stand that differ; -1: nowhere.
struct ProduceAnswer {
    std::vector<std::uint8_t> frame;
    std::int64_t error_at = -1;
    std::int64_t base_offset_at = -1;
    std::int64_t log_start_offset_at = -1;
};

// A Produce that waits for its commit, among those of its connection.
struct WaitingProduce {
    std::int32_t correlation_id = 0;
    std::int32_t version = 0;
    lane::Micros deadline_us = 0;
};

// Which one: of all that its connection sent and that were taken here, from 0 on.
struct ProduceRef {
    lane::Connection connection = lane::no_connection;
    std::int64_t number = 0;
};

struct ProduceFields {
    std::int16_t version = 0;
    std::int32_t correlation_id = 0;
    std::int16_t acks = 0;
    std::int32_t timeout_ms = 0;
    Span records;
};

class ProduceService {
   public:
    // What is served: the one topic, its id, the largest batch. Without a topic nothing is.
    std::string topic;
    std::string topic_id;  // 16 bytes
    std::int64_t batch_bytes_max = 0;
    std::int64_t unanswered_max = 0;  // of one connection
    std::vector<ProduceAnswer> answers;  // by version, up to the last

    bool is_open() const noexcept { return !topic.empty(); }

    // False: not a Produce of the plain shape.
    bool parse(Span frame, ProduceFields *fields) const noexcept {
        FrameReader in(frame.data, frame.size);
        std::int16_t version;
        if (!in.expect(produce_api_key) || !in.take(&version) || version < produce_version_min || version > produce_version_max) return false;
        fields->version = version;
        const bool flexible = version >= produce_flexible_min;
        if (!in.take(&fields->correlation_id) || !in.skip_string() || (flexible && !in.expect<std::uint8_t>(0))) return false;
        if (!is_null_string(in, flexible) || !in.take(&fields->acks) || !in.take(&fields->timeout_ms)) return false;
        if (!is_one(in, flexible) || !is_topic(in, version) || !is_one(in, flexible) || !in.expect<std::int32_t>(0)) return false;
        if (flexible ? !in.take_bytes(&fields->records) : !take_plain_bytes(in, &fields->records)) return false;
        return (!flexible || (in.expect<std::uint8_t>(0) && in.expect<std::uint8_t>(0) && in.expect<std::uint8_t>(0))) && in.at_end();
    }

    // One good batch that the log takes as it is, but for its place? The checks of clients/produce.py and of check_batch, and no more:
    // a producer knows neither offset nor epoch, and may say so in its own way.
    bool takes(Span records, BatchHeader *header) const noexcept {
        if (records.size > batch_bytes_max || framing_fault(records.data, records.size, 0, batch_bytes_max) != Fault::none) return false;
        *header = read_header(records.data);
        header->base_offset = 0;
        header->leader_epoch = 0;
        if (header->size_bytes != records.size || batch_crc(records.data, *header) != header->crc) return false;
        if (header_fault(*header, Expectation{}) != Fault::none) return false;
        if ((header->attributes & (compression_mask | transactional | control)) != 0) return false;
        if (header->producer_id >= 0 && (header->producer_epoch < 0 || header->base_sequence < 0)) return false;
        if (std::int64_t{header->last_offset_delta} + 1 != header->records_count) return false;
        return check_section(*header, records.data + header_bytes, records.data + records.size);
    }

    // The response: committed at base_offset, or else an error.
    std::vector<std::uint8_t> answer(const WaitingProduce &to, std::int16_t error, std::int64_t base_offset, std::int64_t log_start_offset) const {
        const ProduceAnswer &known = answers[static_cast<std::size_t>(to.version)];
        std::vector<std::uint8_t> frame = known.frame;
        store_big_endian(frame.data(), to.correlation_id);
        store_big_endian(frame.data() + known.error_at, error);
        store_big_endian(frame.data() + known.base_offset_at, base_offset);
        if (known.log_start_offset_at >= 0) store_big_endian(frame.data() + known.log_start_offset_at, log_start_offset);
        return frame;
    }

   private:
    static constexpr std::int16_t transactional = 0x10;

    static bool is_null_string(FrameReader &in, bool flexible) noexcept {
        return flexible ? in.expect<std::uint8_t>(0) : in.expect<std::int16_t>(-1);
    }

    // An array of one element?
    static bool is_one(FrameReader &in, bool flexible) noexcept { return flexible ? in.expect<std::uint8_t>(2) : in.expect<std::int32_t>(1); }

    bool is_topic(FrameReader &in, int version) const noexcept {
        const auto size = static_cast<std::int64_t>(topic.size());
        if (version >= produce_topic_id_min) return in.expect_bytes(topic_id.data(), uuid_bytes);
        if (version < produce_flexible_min) return in.expect(static_cast<std::int16_t>(size)) && in.expect_bytes(topic.data(), size);
        return in.expect_size(size) && in.expect_bytes(topic.data(), size);
    }

    static bool take_plain_bytes(FrameReader &in, Span *bytes) noexcept {
        std::int32_t size;
        if (!in.take(&size) || size < 0) return false;
        return in.take_span(size, bytes);
    }
};

}  // namespace fastquorum::node
