// The v2 record batch's header: layout, and the checks on it in the order of kernels.BatchFault. KIP-98.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "crc32c.h"

namespace fastquorum {

// As it lies in memory: big-endian, unaligned.
struct [[gnu::packed]] WireHeader {
    std::int64_t base_offset;
    std::int32_t batch_length;  // of all that follows this field
    std::int32_t leader_epoch;
    std::int8_t magic;
    std::uint32_t crc;
    std::int16_t attributes;  // the checksum begins here
    std::int32_t last_offset_delta;
    std::int64_t base_timestamp_ms;
    std::int64_t max_timestamp_ms;
    std::int64_t producer_id;
    std::int16_t producer_epoch;
    std::int32_t base_sequence;
    std::int32_t records_count;
};
static_assert(sizeof(WireHeader) == 61, "a v2 batch header has 61 bytes");
static_assert(offsetof(WireHeader, magic) == 16 && offsetof(WireHeader, crc) == 17 && offsetof(WireHeader, attributes) == 21 &&
                  offsetof(WireHeader, records_count) == 57,
              "the v2 batch header is laid out as KIP-98 says");

inline constexpr std::int64_t header_bytes = sizeof(WireHeader);
inline constexpr std::int64_t framing_bytes = 12;  // base offset and batch length
inline constexpr std::int64_t crc_start = offsetof(WireHeader, attributes);
inline constexpr std::int64_t batch_size_max = INT32_MAX;
inline constexpr std::int16_t compression_mask = 0x07;
inline constexpr std::int16_t log_append_time = 0x08;
inline constexpr std::int16_t control = 0x20;
inline constexpr std::int16_t known_attributes = 0x7F;
inline constexpr int compression_max = 4;

// The same words in the same order as kernels.BatchFault, after `none`.
enum class Fault : int { none, truncated, zeroed, length, magic, crc, attributes, count, offset, epoch, record, compression };

// What went wrong and where: the fields of a CorruptionError. -1 = not known.
struct Status {
    Fault fault = Fault::none;
    std::int64_t position = -1;
    std::int64_t offset = -1;
    std::int64_t stored_crc = -1;
    std::int64_t computed_crc = -1;
};

// A header in the machine's own byte order, with its size worked out.
struct BatchHeader {
    std::int64_t base_offset;
    std::int64_t size_bytes;
    std::int32_t leader_epoch;
    std::int8_t magic;
    std::uint32_t crc;
    std::int16_t attributes;
    std::int32_t last_offset_delta;
    std::int64_t base_timestamp_ms;
    std::int64_t max_timestamp_ms;
    std::int64_t producer_id;
    std::int16_t producer_epoch;
    std::int32_t base_sequence;
    std::int32_t records_count;

    // False if base_offset + last_offset_delta does not fit.
    bool last_offset(std::int64_t *last) const noexcept { return !__builtin_add_overflow(base_offset, last_offset_delta, last); }
};

// A number between the machine's byte order and the wire's.
template <typename Integer>
inline Integer big_endian(Integer value) noexcept {
    if constexpr (sizeof(Integer) == 8) return static_cast<Integer>(__builtin_bswap64(static_cast<std::uint64_t>(value)));
    if constexpr (sizeof(Integer) == 4) return static_cast<Integer>(__builtin_bswap32(static_cast<std::uint32_t>(value)));
    if constexpr (sizeof(Integer) == 2) return static_cast<Integer>(__builtin_bswap16(static_cast<std::uint16_t>(value)));
    return value;
}

template <typename Integer>
inline Integer load_big_endian(const std::uint8_t *bytes) noexcept {
    Integer value;
    std::memcpy(&value, bytes, sizeof value);
    return big_endian(value);
}

template <typename Integer>
inline void store_big_endian(std::uint8_t *bytes, Integer value) noexcept {
    value = big_endian(value);
    std::memcpy(bytes, &value, sizeof value);
}

// The caller has 61 bytes and a batch length >= 49.
inline BatchHeader read_header(const std::uint8_t *batch) noexcept {
    WireHeader wire;
    std::memcpy(&wire, batch, sizeof wire);
    BatchHeader header;
    header.base_offset = big_endian(std::int64_t{wire.base_offset});
    header.size_bytes = framing_bytes + big_endian(std::int32_t{wire.batch_length});
    header.leader_epoch = big_endian(std::int32_t{wire.leader_epoch});
    header.magic = wire.magic;
    header.crc = big_endian(std::uint32_t{wire.crc});
    header.attributes = big_endian(std::int16_t{wire.attributes});
    header.last_offset_delta = big_endian(std::int32_t{wire.last_offset_delta});
    header.base_timestamp_ms = big_endian(std::int64_t{wire.base_timestamp_ms});
    header.max_timestamp_ms = big_endian(std::int64_t{wire.max_timestamp_ms});
    header.producer_id = big_endian(std::int64_t{wire.producer_id});
    header.producer_epoch = big_endian(std::int16_t{wire.producer_epoch});
    header.base_sequence = big_endian(std::int32_t{wire.base_sequence});
    header.records_count = big_endian(std::int32_t{wire.records_count});
    return header;
}

inline std::uint32_t batch_crc(const std::uint8_t *batch, const BatchHeader &header) noexcept {
    return crc32c(0, batch + crc_start, static_cast<std::size_t>(header.size_bytes - crc_start));
}

// Write the header in front of the records that are there already, checksum included. `crc` and `magic` are not read.
inline void seal(std::uint8_t *batch, const BatchHeader &header) noexcept {
    WireHeader wire;
    wire.base_offset = big_endian(header.base_offset);
    wire.batch_length = big_endian(static_cast<std::int32_t>(header.size_bytes - framing_bytes));
    wire.leader_epoch = big_endian(header.leader_epoch);
    wire.magic = 2;
    wire.crc = 0;
    wire.attributes = big_endian(header.attributes);
    wire.last_offset_delta = big_endian(header.last_offset_delta);
    wire.base_timestamp_ms = big_endian(header.base_timestamp_ms);
    wire.max_timestamp_ms = big_endian(header.max_timestamp_ms);
    wire.producer_id = big_endian(header.producer_id);
    wire.producer_epoch = big_endian(header.producer_epoch);
    wire.base_sequence = big_endian(header.base_sequence);
    wire.records_count = big_endian(header.records_count);
    std::memcpy(batch, &wire, sizeof wire);
    store_big_endian(batch + offsetof(WireHeader, crc), batch_crc(batch, header));
}

// Is there a whole v2 batch at `position`? The checks that need no more than its framing: truncated, zeroed, length, magic.
inline Fault framing_fault(const std::uint8_t *data, std::int64_t size, std::int64_t position,
                           std::int64_t batch_bytes_max = batch_size_max) noexcept {
    const std::int64_t remaining = size - position;
    if (remaining < framing_bytes) return Fault::truncated;
    const std::uint8_t *batch = data + position;
    const std::int64_t length = load_big_endian<std::int32_t>(batch + 8);
    if (length > remaining - framing_bytes) return Fault::truncated;
    constexpr std::size_t up_to_magic = offsetof(WireHeader, magic) + 1;
    static constexpr std::uint8_t zeros[up_to_magic] = {};
    if (remaining >= static_cast<std::int64_t>(up_to_magic) && std::memcmp(batch, zeros, up_to_magic) == 0) return Fault::zeroed;
    if (length < header_bytes - framing_bytes || framing_bytes + length > batch_bytes_max) return Fault::length;
    return batch[offsetof(WireHeader, magic)] == 2 ? Fault::none : Fault::magic;
}

// What a whole batch must satisfy beyond its framing and its checksum: attributes, count, offset, epoch.
struct Expectation {
    std::int64_t offset = -1;  // -1 = any
    std::int64_t epoch_min = 0;
    std::int64_t epoch_max = INT32_MAX;
};

inline Fault header_fault(const BatchHeader &header, const Expectation &expected) noexcept {
    if ((header.attributes & ~known_attributes) != 0 || (header.attributes & compression_mask) > compression_max) return Fault::attributes;
    if (header.records_count < 1 || header.last_offset_delta < 0 || std::int64_t{header.last_offset_delta} + 1 < header.records_count)
        return Fault::count;
    std::int64_t last;
    if (header.base_offset < 0 || !header.last_offset(&last) || last == INT64_MAX ||
        (expected.offset != -1 && expected.offset != header.base_offset))
        return Fault::offset;
    if (header.leader_epoch < 0 || header.leader_epoch < expected.epoch_min || header.leader_epoch > expected.epoch_max)
        return Fault::epoch;
    return Fault::none;
}

// The fault at `position`, with what little can be read there.
inline Status status_at(Fault fault, const std::uint8_t *data, std::int64_t size, std::int64_t position) noexcept {
    Status status;
    status.fault = fault;
    status.position = position;
    if (size - position >= framing_bytes) status.offset = load_big_endian<std::int64_t>(data + position);
    return status;
}

// All checks on the batch at `position`, up to epoch; its header, if the framing is good.
inline Status check_batch(const std::uint8_t *data, std::int64_t size, std::int64_t position, bool verify_crc,
                          std::int64_t batch_bytes_max, const Expectation &expected, BatchHeader *header) noexcept {
    Fault fault = framing_fault(data, size, position, batch_bytes_max);
    if (fault != Fault::none) return status_at(fault, data, size, position);
    *header = read_header(data + position);
    // Read once: a buffer that another thread writes to may change under us, and must not lead us out of its bounds.
    if (header->size_bytes < header_bytes || header->size_bytes > size - position)
        return status_at(Fault::length, data, size, position);
    if (verify_crc) {
        const std::uint32_t computed = batch_crc(data + position, *header);
        if (computed != header->crc) {
            Status status = status_at(Fault::crc, data, size, position);
            status.stored_crc = header->crc;
            status.computed_crc = computed;
            return status;
        }
    }
    fault = header_fault(*header, expected);
    if (fault != Fault::none) return status_at(fault, data, size, position);
    return Status{};
}

}  // namespace fastquorum
