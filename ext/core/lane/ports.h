// What the native lane works on and what it tells: the C++ side of kernels/lane.py, whose words it keeps.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../fetch_frames.h"

namespace fastquorum::lane {

using Offset = std::int64_t;
using Micros = std::int64_t;
using Connection = std::int64_t;

inline constexpr Connection no_connection = -1;
inline constexpr Offset unknown_offset = -1;
inline constexpr Micros always_confirmed_us = std::int64_t{1} << 62;  // a sole voter is nobody's to replace

struct Uuid {
    std::uint8_t bytes[uuid_bytes] = {};

    int compare(const Uuid &other) const noexcept { return std::memcmp(bytes, other.bytes, sizeof bytes); }
    bool operator==(const Uuid &other) const noexcept { return compare(other) == 0; }
    bool is(const std::uint8_t *other) const noexcept { return std::memcmp(bytes, other, sizeof bytes) == 0; }
};

struct ReplicaKey {
    std::int32_t id = -1;
    Uuid directory_id;

    bool operator==(const ReplicaKey &other) const noexcept { return id == other.id && directory_id == other.directory_id; }
    bool operator<(const ReplicaKey &other) const noexcept {
        return id != other.id ? id < other.id : directory_id.compare(other.directory_id) < 0;
    }
};

// The log as the lane needs it. A call that fails answers false, and keeps for the shell what happened.
class Log {
   public:
    virtual ~Log() = default;
    virtual Offset start_offset() noexcept = 0;
    virtual Offset end_offset() noexcept = 0;
    virtual Offset flushed_end() noexcept = 0;
    virtual std::int64_t generation() noexcept = 0;
    virtual std::int32_t last_epoch() noexcept = 0;
    virtual bool is_flushing() noexcept = 0;
    // May so many bytes and records be appended? False: raft/ has to make room for them.
    virtual bool fits(std::int64_t size_bytes, std::int64_t record_count) noexcept = 0;
    // Whole batches at the log's end; they are written, not synced, when this returns.
    virtual bool append(Span batches, Offset base_offset, Offset next_offset, std::int32_t epoch, std::int64_t timestamp_ms) = 0;
    // Whole batches from the one that contains `offset`, at most bytes_max but at least one. Good until the next call.
    virtual bool read(Offset offset, std::int64_t bytes_max, Span *batches) = 0;
    virtual bool request_flush() noexcept = 0;
};

// One frame without its length prefix, in up to three pieces, which are the lane's: good until the call returns.
struct Frame {
    Span parts[3];

    std::int64_t size() const noexcept { return parts[0].size + parts[1].size + parts[2].size; }
};

// Carries out what a call of the lane brings about, in order, inside that call.
class Outputs {
   public:
    virtual ~Outputs() = default;
    virtual void send(Connection connection, const Frame &frame) = 0;
    virtual void hand_up(Connection connection, Span frame) = 0;
    virtual void advanced(Offset high_watermark) = 0;
    virtual void barrier_done(std::int64_t barrier, Offset high_watermark) = 0;
    virtual void unparked(Connection connection, std::int32_t correlation_id, int api_version) = 0;
    virtual void observers_informed() noexcept = 0;
};

struct Identity {
    ReplicaKey key;
    std::string cluster_id;
    Uuid topic_id;
};

struct LeaderSession {
    std::int32_t epoch = -1;
    std::vector<ReplicaKey> voters;
    Offset epoch_start = -1;
    Offset high_watermark = -1;
    Micros fetch_wait_us_max = 0;
    bool has_endpoint = false;
    std::string host;
    std::int32_t port = -1;
};

struct FollowerSession {
    std::int32_t epoch = -1;
    std::int32_t leader_id = -1;
    Offset high_watermark = -1;
    std::int64_t attempt = -1;
    std::int32_t fetch_bytes_max = 0;
    Micros fetch_wait_us_max = 0;
};

struct Admission {
    Connection connection = no_connection;
    std::int32_t correlation_id = -1;
    int api_version = 0;
    ReplicaKey peer;
    bool is_voter = false;
    Offset fetch_offset = -1;
    Offset request_high_watermark = -1;
    Micros max_wait_us = 0;
    std::int64_t bytes_max = 0;
};

struct PeerState {
    ReplicaKey key;
    bool is_voter = false;
    Connection connection = no_connection;
    Offset end_offset = -1;
    Micros last_contact_us = -1;
    Micros last_progress_us = -1;
    Micros last_caught_up_us = -1;
};

enum class Mode : int { closed, leader, follower };

struct State {
    Mode mode = Mode::closed;
    std::int32_t epoch = 0;
    Offset log_end = -1;
    Offset flushed_end = -1;
    Offset high_watermark = -1;
    std::vector<PeerState> peers;
    Micros leader_contact_us = -1;
    Micros fetch_sent_us = -1;
    std::int32_t fetch_in_flight = -1;  // its correlation id
};

}  // namespace fastquorum::lane
