// What the lane's roles share: the twin of kernels/pure/lane/context.py. All of it under the shell's lane lock.
#pragma once

#include <cstdint>
#include <string>

#include "barriers.h"
#include "ports.h"

namespace fastquorum::lane {

// The lane numbers its requests from here on, raft/ below.
inline constexpr std::int32_t correlation_first = 0x40000000;
inline constexpr std::int32_t correlation_last = 0x7FFFFFFF;
inline constexpr Micros us_per_ms = 1000;

// The first four bytes: a response's correlation id (a request's API key and version: below correlation_first).
inline std::int32_t correlation_of(Span frame) noexcept {
    return frame.size >= 4 ? load_big_endian<std::int32_t>(frame.data) : -1;
}

struct Context {
    Context(Identity who, Log &its_log, Outputs &its_outputs, std::int64_t bytes_max)
        : identity(std::move(who)),
          log(its_log),
          out(its_outputs),
          batch_bytes_max(bytes_max),
          client_id("raft-client-" + std::to_string(identity.key.id)) {}

    // Never reused while an answer to the last one could be under way.
    std::int32_t next_correlation_id() noexcept {
        correlation_id = correlation_id == correlation_last ? correlation_first : correlation_id + 1;
        return correlation_id;
    }

    // Write whole batches at the log's end and have them synced. A failure latches before it is told (rule 5).
    bool write(Span batches, Offset base_offset, Offset next_offset, std::int32_t epoch, std::int64_t timestamp_ms) {
        if (log.append(batches, base_offset, next_offset, epoch, timestamp_ms) && log.request_flush()) return true;
        has_failed = true;
        return false;
    }

    // Have synced what somebody else wrote, or what a sync from before a truncation does not count for.
    bool flush_rest() noexcept { return log.flushed_end() >= log.end_offset() || log.request_flush(); }

    Span text(const std::string &value) const noexcept {
        return Span{reinterpret_cast<const std::uint8_t *>(value.data()), static_cast<std::int64_t>(value.size())};
    }

    const Identity identity;
    Log &log;
    Outputs &out;
    const std::int64_t batch_bytes_max;
    const std::string client_id;
    Barriers barriers;
    bool has_failed = false;
    std::int32_t correlation_id = correlation_first - 1;
};

}  // namespace fastquorum::lane
