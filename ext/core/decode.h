// Reading records into columns. Every byte is hostile until checked, and may even change while it is read (a caller's
// bytearray, with the GIL released): each length is read once, and every write is bounded by what was allocated.
#pragma once

#include <cstdint>

#include "batch.h"
#include "varint.h"

namespace fastquorum {

// Columns that records are written to; starts are relative to `origin`. Header columns may be null (they are then only
// counted) and have room for headers_max rows.
struct ColumnSink {
    std::int64_t *offsets = nullptr;
    std::int64_t *timestamps_ms = nullptr;
    std::int64_t *key_starts = nullptr;
    std::int64_t *key_lengths = nullptr;
    std::int64_t *value_starts = nullptr;
    std::int64_t *value_lengths = nullptr;
    std::int64_t *header_starts = nullptr;  // one row more than records
    std::int64_t *header_key_starts = nullptr;
    std::int64_t *header_key_lengths = nullptr;
    std::int64_t *header_value_starts = nullptr;
    std::int64_t *header_value_lengths = nullptr;
    std::int64_t headers_max = 0;
};

inline constexpr std::int64_t record_bytes_min = 7;  // length, attributes, two deltas, null key, null value, no headers
inline constexpr std::int64_t header_pair_bytes_min = 2;

// Could `count` records fit in? Asked before anything is allocated for them.
inline bool count_is_possible(const BatchHeader &header, std::int64_t section_bytes) noexcept {
    return std::int64_t{header.records_count} * record_bytes_min <= section_bytes;
}

struct Cursor {
    const std::uint8_t *at;
    const std::uint8_t *origin;

    // Length-prefixed bytes; length -1 = null.
    bool nullable(const std::uint8_t *end, std::int64_t *start, std::int64_t *length) noexcept {
        if (!read_varint<32>(&at, end, length)) return false;
        *start = at - origin;
        if (*length < -1 || *length > end - at) return false;
        if (*length > 0) at += *length;
        return true;
    }
};

inline bool decode_headers(Cursor *cursor, const std::uint8_t *end, const ColumnSink &sink, std::int64_t *total) noexcept {
    std::int64_t count;
    if (!read_varint<32>(&cursor->at, end, &count)) return false;
    if (count == 0) [[likely]]
        return true;
    if (count < 0 || count * header_pair_bytes_min > end - cursor->at) return false;
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t key_start, key_length, value_start, value_length;
        if (!cursor->nullable(end, &key_start, &key_length) || key_length < 0) return false;
        if (!cursor->nullable(end, &value_start, &value_length)) return false;
        if (sink.header_key_starts != nullptr) {
            const std::int64_t row = *total;
            if (row >= sink.headers_max) return false;
            sink.header_key_starts[row] = key_start;
            sink.header_key_lengths[row] = key_length;
            sink.header_value_starts[row] = value_start;
            sink.header_value_lengths[row] = value_length;
        }
        ++*total;
    }
    return true;
}

// Parse all records of a section; they must fill it exactly. False = Fault::record. *headers_total: how many headers.
// `writes`: into the sink; else they are only checked.
template <bool writes = true>
inline bool decode_section(const BatchHeader &header, const std::uint8_t *origin, const std::uint8_t *section,
                           const std::uint8_t *section_end, const ColumnSink &sink, std::int64_t *headers_total) noexcept {
    Cursor cursor{section, origin};
    std::int64_t previous = -1, total = 0;
    const bool stamped_by_log = (header.attributes & log_append_time) != 0;
    for (std::int64_t i = 0; i < header.records_count; ++i) {
        std::int64_t size, timestamp_delta, offset_delta;
        if (!read_varint<32>(&cursor.at, section_end, &size)) return false;
        if (size < 1 || size > section_end - cursor.at) return false;
        const std::uint8_t *end = cursor.at + size;
        ++cursor.at;  // attributes: unused in v2, and not looked at by Kafka either
        if (!read_varint<64>(&cursor.at, end, &timestamp_delta) || !read_varint<32>(&cursor.at, end, &offset_delta)) return false;
        std::int64_t key_start, key_length, value_start, value_length;
        if (!cursor.nullable(end, &key_start, &key_length) || !cursor.nullable(end, &value_start, &value_length)) return false;
        if constexpr (writes) {
            sink.offsets[i] = header.base_offset + offset_delta;
            // Wraps as Java's long does: the timestamp is the client's business, not a reason to lose the record.
            sink.timestamps_ms[i] =
                stamped_by_log ? header.max_timestamp_ms
                               : static_cast<std::int64_t>(static_cast<std::uint64_t>(header.base_timestamp_ms) +
                                                           static_cast<std::uint64_t>(timestamp_delta));
            sink.key_starts[i] = key_start;
            sink.key_lengths[i] = key_length;
            sink.value_starts[i] = value_start;
            sink.value_lengths[i] = value_length;
            sink.header_starts[i] = total;
        }
        if (!decode_headers(&cursor, end, sink, &total)) return false;
        if (cursor.at != end || offset_delta <= previous || offset_delta > header.last_offset_delta) return false;
        previous = offset_delta;
    }
    if constexpr (writes) sink.header_starts[header.records_count] = total;
    *headers_total = total;
    return cursor.at == section_end;
}

// Would decode_section take it? Without anything written.
inline bool check_section(const BatchHeader &header, const std::uint8_t *section, const std::uint8_t *section_end) noexcept {
    std::int64_t headers_total;
    return count_is_possible(header, section_end - section) &&
           decode_section<false>(header, section, section, section_end, ColumnSink{}, &headers_total);
}

}  // namespace fastquorum
