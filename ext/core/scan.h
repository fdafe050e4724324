// Walks over many batches that look at headers only.
#pragma once

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "batch.h"

namespace fastquorum {

inline constexpr std::int64_t index_interval_bytes = 4096;

using Pair = std::pair<std::int64_t, std::int64_t>;

// What a scan saw: the fields of kernels.Scan.
struct ScanResult {
    std::int64_t valid_bytes = 0;
    std::int64_t batch_count = 0;
    std::int64_t control_count = 0;
    std::int64_t record_count = 0;
    std::int64_t first_offset = -1;
    std::int64_t next_offset = -1;
    std::int64_t first_epoch = -1;
    std::int64_t last_epoch = -1;
    std::int64_t max_timestamp_ms = -1;
    std::vector<Pair> epoch_starts;
    std::vector<Pair> index;
    Status status;
};

// False only if memory ran out.
inline bool scan(const std::uint8_t *data, std::int64_t size, std::int64_t position, Expectation expected, bool verify_crc,
                 std::int64_t batch_bytes_max, ScanResult *result) noexcept {
    try {
        result->next_offset = expected.offset;
        std::int64_t at = position, bytes_since_entry = 0;
        while (at < size) {
            BatchHeader header;
            result->status = check_batch(data, size, at, verify_crc, batch_bytes_max, expected, &header);
            if (result->status.fault != Fault::none) break;
            if (result->batch_count == 0) {
                result->first_offset = header.base_offset;
                result->first_epoch = header.leader_epoch;
            }
            if (result->batch_count == 0 || header.leader_epoch != result->last_epoch)
                result->epoch_starts.emplace_back(header.leader_epoch, header.base_offset);
            if (bytes_since_entry >= index_interval_bytes) {
                result->index.emplace_back(header.base_offset, at);
                bytes_since_entry = 0;
            }
            ++result->batch_count;
            result->control_count += (header.attributes & control) != 0;
            result->record_count += header.records_count;
            if (header.max_timestamp_ms > result->max_timestamp_ms) result->max_timestamp_ms = header.max_timestamp_ms;
            result->last_epoch = expected.epoch_min = header.leader_epoch;
            result->next_offset = expected.offset = header.base_offset + header.last_offset_delta + 1;
            bytes_since_entry += header.size_bytes;
            at += header.size_bytes;
        }
        result->valid_bytes = at - position;
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

// The whole batches from the one that contains `offset` on, at most bytes_max long but at least one; (size, size) if none.
inline Pair slice_batches(const std::uint8_t *data, std::int64_t size, std::int64_t offset, std::int64_t bytes_max) noexcept {
    std::int64_t start = -1, end = -1;
    for (std::int64_t at = 0; framing_fault(data, size, at) == Fault::none;) {
        const BatchHeader header = read_header(data + at);
        if (header.size_bytes < header_bytes || header.size_bytes > size - at) break;
        std::int64_t last;
        if (!header.last_offset(&last)) last = header.last_offset_delta > 0 ? INT64_MAX : INT64_MIN;
        at += header.size_bytes;
        if (start < 0) {
            if (last < offset) continue;
            start = at - header.size_bytes;
        } else if (at - start > bytes_max) {
            break;
        }
        end = at;
    }
    return start < 0 ? Pair{size, size} : Pair{start, end};
}

}  // namespace fastquorum
