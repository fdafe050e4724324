// Writing records: sizes first, then bytes, into memory of exactly that size. Nothing here allocates or fails.
#pragma once

#include <cstdint>
#include <cstring>

#include "varint.h"

namespace fastquorum {

// Bytes of the caller's; size -1 = null.
struct Slice {
    const std::uint8_t *data;
    std::int64_t size;
};

struct HeaderSlices {
    Slice key;
    Slice value;
};

struct RecordSlices {
    std::int64_t timestamp_delta;
    std::int64_t offset_delta;
    Slice key;
    Slice value;
    std::int64_t headers_begin;  // rows of the batch's header array
    std::int64_t headers_end;
};

// --- records of KRaft's shape: null key, no headers, timestamp delta 0 ---------------------------------------------------

inline std::int64_t value_body_size(std::int64_t offset_delta, std::int64_t size) noexcept {
    return 4 + varint_size(offset_delta) + varint_size(size) + size;
}

inline std::int64_t value_size(std::int64_t offset_delta, std::int64_t size) noexcept {
    const std::int64_t body = value_body_size(offset_delta, size);
    return varint_size(body) + body;
}

inline std::uint8_t *write_value(std::uint8_t *out, std::int64_t offset_delta, Slice value) noexcept {
    out = write_varint(out, value_body_size(offset_delta, value.size));
    *out++ = 0;  // attributes
    *out++ = 0;  // timestamp delta
    out = write_varint(out, offset_delta);
    *out++ = 1;  // null key
    out = write_varint(out, value.size);
    if (value.size != 0) std::memcpy(out, value.data, static_cast<std::size_t>(value.size));
    out += value.size;
    *out++ = 0;  // no headers
    return out;
}

inline std::int64_t values_size(const Slice *values, std::int64_t count, std::int64_t first_delta) noexcept {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < count; ++i) total += value_size(first_delta + i, values[i].size);
    return total;
}

inline std::uint8_t *write_values(std::uint8_t *out, const Slice *values, std::int64_t count, std::int64_t first_delta) noexcept {
    for (std::int64_t i = 0; i < count; ++i) out = write_value(out, first_delta + i, values[i]);
    return out;
}

// --- Arrow's layout: value i is data[bounds[i] .. bounds[i + 1]) ---------------------------------------------------------

template <typename Bound>
inline bool columns_ascend(const Bound *bounds, std::int64_t count, std::int64_t data_size) noexcept {
    if (bounds[0] < 0 || bounds[count] > data_size) return false;
    bool good = true;
    for (std::int64_t i = 0; i < count; ++i) good &= bounds[i] <= bounds[i + 1];
    return good;
}

template <typename Bound>
inline std::int64_t columns_size(const Bound *bounds, std::int64_t count) noexcept {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < count; ++i) total += value_size(i, std::int64_t{bounds[i + 1]} - bounds[i]);
    return total;
}

template <typename Bound>
inline std::uint8_t *write_columns(std::uint8_t *out, const std::uint8_t *data, const Bound *bounds, std::int64_t count) noexcept {
    for (std::int64_t i = 0; i < count; ++i)
        out = write_value(out, i, Slice{data + bounds[i], std::int64_t{bounds[i + 1]} - bounds[i]});
    return out;
}

// --- full records -------------------------------------------------------------------------------------------------------

inline std::int64_t nullable_size(Slice slice) noexcept { return varint_size(slice.size) + (slice.size > 0 ? slice.size : 0); }

inline std::uint8_t *write_nullable(std::uint8_t *out, Slice slice) noexcept {
    out = write_varint(out, slice.size);
    if (slice.size <= 0) return out;
    std::memcpy(out, slice.data, static_cast<std::size_t>(slice.size));
    return out + slice.size;
}

inline std::int64_t record_body_size(const RecordSlices &record, const HeaderSlices *headers) noexcept {
    std::int64_t size = 1 + varint_size(record.timestamp_delta) + varint_size(record.offset_delta) + nullable_size(record.key) +
                        nullable_size(record.value) + varint_size(record.headers_end - record.headers_begin);
    for (std::int64_t i = record.headers_begin; i < record.headers_end; ++i)
        size += nullable_size(headers[i].key) + nullable_size(headers[i].value);
    return size;
}

inline std::int64_t records_size(const RecordSlices *records, std::int64_t count, const HeaderSlices *headers) noexcept {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t body = record_body_size(records[i], headers);
        total += varint_size(body) + body;
    }
    return total;
}

inline std::uint8_t *write_records(std::uint8_t *out, const RecordSlices *records, std::int64_t count,
                                   const HeaderSlices *headers) noexcept {
    for (std::int64_t i = 0; i < count; ++i) {
        const RecordSlices &record = records[i];
        out = write_varint(out, record_body_size(record, headers));
        *out++ = 0;  // attributes
        out = write_varint(out, record.timestamp_delta);
        out = write_varint(out, record.offset_delta);
        out = write_nullable(out, record.key);
        out = write_nullable(out, record.value);
        out = write_varint(out, record.headers_end - record.headers_begin);
        for (std::int64_t j = record.headers_begin; j < record.headers_end; ++j) {
            out = write_nullable(out, headers[j].key);
            out = write_nullable(out, headers[j].value);
        }
    }
    return out;
}

}  // namespace fastquorum
