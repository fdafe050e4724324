// Fetch 12-18 in the steady state's shape: parsers and writers.
//
// A parser answers false unless the frame (without its length prefix) has exactly that shape: one topic, one partition,
// no session, no error, no diverging epoch, no snapshot, no tag that Kafka 4.3 does not know. What a version lacks keeps
// the value that its field begins with. The twin of `kernels/pure/lane/fetch_requests.py` and `fetch_responses.py`;
// tests hold these to the declarations in `wire/messages/fetch.py`, and the twins to each other.
// Source: KIP-595, KIP-853, KIP-1166.
#pragma once

#include <cstdint>

#include "fetch_frames.h"

namespace fastquorum {

inline constexpr int fetch_version_min = 12;
inline constexpr int fetch_version_max = 18;
inline constexpr std::int16_t fetch_api_key = 1;
// The only topic, with its length, as Fetch 12 says it; later versions say its id.
inline constexpr char named_topic[] = "\023__cluster_metadata";
inline constexpr std::int64_t named_topic_bytes = sizeof named_topic - 1;

inline bool has_layout(int version) noexcept { return version >= fetch_version_min && version <= fetch_version_max; }

inline bool take_topic(int version, FrameReader *in, const std::uint8_t **topic_id) noexcept {
    return version < 13 ? in->expect_bytes(named_topic, named_topic_bytes) : in->take_uuid(topic_id);
}

inline void put_topic(int version, FrameWriter *out, const std::uint8_t *topic_id) noexcept {
    if (version < 13) {
        out->bytes(named_topic, named_topic_bytes);
    } else {
        out->uuid(topic_id);
    }
}

// The tag, and the size of what follows it.
inline bool begins_tag(FrameReader *in, std::uint8_t size) noexcept { return in->skip(1) && in->expect(size); }

// --- requests --------------------------------------------------------------------------------------------------------

struct RequestFields {
    std::int32_t correlation_id = -1;
    std::int32_t replica_id = -1;
    std::int32_t max_wait_ms = -1;
    std::int32_t max_bytes = -1;
    std::int32_t leader_epoch = -1;
    std::int64_t fetch_offset = -1;
    std::int32_t last_fetched_epoch = -1;
    Span cluster_id{};
    const std::uint8_t *topic_id = nullptr;
    const std::uint8_t *directory_id = nullptr;
    std::int64_t high_watermark = INT64_MAX;
};

// The same in every request of a connection.
struct RequestFixed {
    std::int16_t api_version{};
    Span client_id{};
    Span cluster_id{};
    std::int32_t replica_id{};
    std::int32_t max_wait_ms{};
    std::int32_t max_bytes{};
    const std::uint8_t *topic_id{};
    const std::uint8_t *directory_id{};
};

struct RequestVarying {
    std::int32_t correlation_id;
    std::int32_t leader_epoch;
    std::int64_t fetch_offset;
    std::int32_t last_fetched_epoch;
    std::int64_t high_watermark;
};

// Directory id and high watermark, as far as the version has them.
inline bool take_partition_tags(int version, FrameReader *in, RequestFields *fields) noexcept {
    std::uint8_t tags;
    if (!in->take(&tags)) return false;
    if (version >= 17) {
        fields->directory_id = zero_uuid;
        if (tags != 0 && in->next_is(0)) {
            if (!(begins_tag(in, uuid_bytes) && in->take_uuid(&fields->directory_id))) return false;
            --tags;
        }
    }
    if (version >= 18 && tags != 0 && in->next_is(1)) {
        if (!(begins_tag(in, sizeof fields->high_watermark) && in->take(&fields->high_watermark))) return false;
        --tags;
    }
    return tags == 0;
}

// Cluster id, and the replica's state where the version has it.
inline bool take_request_tags(int version, FrameReader *in, RequestFields *fields) noexcept {
    std::uint8_t tags;
    if (!in->take(&tags)) return false;
    if (tags != 0 && in->next_is(0)) {
        if (!(in->skip(1) && in->take_tagged_string(&fields->cluster_id))) return false;
        --tags;
    }
    if (version >= 15 && tags != 0 && in->next_is(1)) {
        if (!(begins_tag(in, 13) && in->take(&fields->replica_id) && in->skip(8) && in->expect<std::uint8_t>(0))) {
            return false;
        }
        --tags;
    }
    return tags == 0;
}

inline bool parse_request(int version, FrameReader in, RequestFields *fields) noexcept {
    return has_layout(version) && in.expect(fetch_api_key) && in.skip(2) && in.take(&fields->correlation_id) &&
           in.skip_string() && in.expect<std::uint8_t>(0) &&  // client id; no tags of the header
           (version >= 15 || in.take(&fields->replica_id)) && in.take(&fields->max_wait_ms) &&
           in.skip(4) && in.take(&fields->max_bytes) && in.skip(1) &&     // min_bytes, isolation_level
           in.expect<std::int32_t>(0) && in.expect<std::int32_t>(-1) &&  // no session
           in.expect<std::uint8_t>(2) && take_topic(version, &in, &fields->topic_id) &&
           in.expect<std::uint8_t>(2) && in.expect<std::int32_t>(0) &&  // partition 0
           in.take(&fields->leader_epoch) && in.take(&fields->fetch_offset) && in.take(&fields->last_fetched_epoch) &&
           in.skip(8) && in.skip(4) &&  // log_start_offset, partition_max_bytes
           take_partition_tags(version, &in, fields) && in.expect<std::uint8_t>(0) &&
           in.expect<std::uint8_t>(1) && in.expect<std::uint8_t>(1) &&  // no forgotten topics, no rack
           take_request_tags(version, &in, fields) && in.at_end();
}

inline void put_replica_state(FrameWriter *out, std::int32_t replica_id) noexcept {
    FrameWriter payload;
    payload.put(replica_id);
    payload.put(std::int64_t{-1});
    payload.put(std::uint8_t{0});
    out->tagged(1, payload);
}

inline void write_request(int version, FrameWriter &out, const RequestFixed &fixed,
                          const RequestVarying &varying) noexcept {
    if (!has_layout(version)) return;
    const bool has_state = version >= 15, has_watermark = version >= 18, has_cluster = fixed.cluster_id.data != nullptr;
    const bool has_directory = version >= 17 && !is_zero(fixed.directory_id);
    out.put(fetch_api_key);
    out.put(fixed.api_version);
    out.put(varying.correlation_id);
    out.text(fixed.client_id);
    out.put(std::uint8_t{0});
    if (!has_state) out.put(fixed.replica_id);
    out.put(fixed.max_wait_ms);
    out.put(std::int32_t{0});
    out.put(fixed.max_bytes);
    out.bytes("\0\0\0\0\0\377\377\377\377\2", 10);
    put_topic(version, &out, fixed.topic_id);
    out.bytes("\2\0\0\0\0", 5);
    out.put(varying.leader_epoch);
    out.put(varying.fetch_offset);
    out.put(varying.last_fetched_epoch);
    out.put(std::int64_t{-1});
    out.put(std::int32_t{0});
    out.put(static_cast<std::uint8_t>(has_directory + has_watermark));
    if (has_directory) {
        FrameWriter payload;
        payload.uuid(fixed.directory_id);
        out.tagged(0, payload);
    }
    if (has_watermark) {
        FrameWriter payload;
        payload.put(varying.high_watermark);
        out.tagged(1, payload);
    }
    out.bytes("\0\1\1", 3);
    out.put(static_cast<std::uint8_t>(has_state + has_cluster));
    if (has_cluster) {
        FrameWriter payload;
        payload.compact(fixed.cluster_id);
        out.tagged(0, payload);
    }
    if (has_state) put_replica_state(&out, fixed.replica_id);
}

// --- responses -------------------------------------------------------------------------------------------------------

struct ResponseFields {
    std::int32_t correlation_id = -1;
    std::int64_t high_watermark = INT64_MAX;
    std::int64_t log_start_offset = -1;
    Span records{};
    std::int32_t leader_id = -1;
    std::int32_t leader_epoch = -1;
    const std::uint8_t *topic_id = nullptr;
};

// The same in every response of a connection.
struct ResponseFixed {
    const std::uint8_t *topic_id{};
    std::int32_t leader_id{};
    std::int32_t leader_epoch{};
    Span host{};
    std::int32_t port{};
};

struct ResponseVarying {
    std::int32_t correlation_id;
    std::int64_t high_watermark;
    std::int64_t log_start_offset;
    std::int64_t records_size;
};

// The leader, where it is not left out.
inline bool take_leader(FrameReader *in, ResponseFields *fields) noexcept {
    std::uint8_t tags;
    if (!in->take(&tags)) return false;
    if (tags != 0 && in->next_is(1)) {
        if (!(begins_tag(in, 9) && in->take(&fields->leader_id) && in->take(&fields->leader_epoch) &&
              in->expect<std::uint8_t>(0))) {
            return false;
        }
        --tags;
    }
    return tags == 0;
}

// Endpoints of nodes, where the version has them: nobody asks for them here.
inline bool skip_response_tags(int version, FrameReader *in) noexcept {
    std::uint8_t tags;
    if (!in->take(&tags)) return false;
    if (version >= 16 && tags != 0 && in->next_is(0)) {
        if (!(in->skip(1) && in->skip_tagged())) return false;
        --tags;
    }
    return tags == 0;
}

inline bool parse_response(int version, FrameReader in, ResponseFields *fields) noexcept {
    return has_layout(version) && in.take(&fields->correlation_id) && in.expect<std::uint8_t>(0) &&
           in.expect<std::int32_t>(0) && in.expect<std::int16_t>(0) &&  // no throttling, no error
           in.expect<std::int32_t>(0) &&                                // no session
           in.expect<std::uint8_t>(2) && take_topic(version, &in, &fields->topic_id) && in.expect<std::uint8_t>(2) &&
           in.expect<std::int32_t>(0) && in.expect<std::int16_t>(0) &&  // partition 0, without an error
           in.take(&fields->high_watermark) && in.skip(8) && in.take(&fields->log_start_offset) &&
           in.expect<std::uint8_t>(1) && in.expect<std::int32_t>(-1) &&  // no aborted transactions, no other replica
           in.take_bytes(&fields->records) && take_leader(&in, fields) && in.expect<std::uint8_t>(0) &&
           skip_response_tags(version, &in) && in.at_end();
}

// Up to the records.
inline void write_response(int version, FrameWriter &out, const ResponseFixed &fixed,
                           const ResponseVarying &varying) noexcept {
    if (!has_layout(version)) return;
    out.put(varying.correlation_id);
    out.bytes("\0\0\0\0\0\0\0\0\0\0\0\2", 12);
    put_topic(version, &out, fixed.topic_id);
    out.bytes("\2\0\0\0\0\0\0", 7);
    out.put(varying.high_watermark);
    out.put(std::int64_t{-1});
    out.put(varying.log_start_offset);
    out.bytes("\1\377\377\377\377", 5);
    out.uvarint(static_cast<std::uint64_t>(varying.records_size) + 1);
}

// What follows them.
inline void write_response_tail(int version, FrameWriter &out, const ResponseFixed &fixed) noexcept {
    if (!has_layout(version)) return;
    FrameWriter leader;
    leader.put(fixed.leader_id);
    leader.put(fixed.leader_epoch);
    leader.put(std::uint8_t{0});
    out.put(std::uint8_t{1});
    out.tagged(1, leader);
    out.put(std::uint8_t{0});
    const bool has_endpoint = version >= 16 && fixed.host.data != nullptr;
    out.put(static_cast<std::uint8_t>(has_endpoint));
    if (!has_endpoint) return;
    FrameWriter endpoint;
    endpoint.put(std::uint8_t{2});
    endpoint.put(fixed.leader_id);
    endpoint.compact(fixed.host);
    endpoint.put(fixed.port);
    endpoint.bytes("\0\0", 2);
    out.tagged(0, endpoint);
}

}  // namespace fastquorum
