// Records of many batches as columns in Arrow's layout, filtered and with their JSON text: what a table of records is made
// of. No Python object is made, and the GIL is not held.
//
// A batch is taken whole or not at all: its records are parsed into scratch columns before a row is added. Source: KIP-98
// (batches); KIP-631 (the frame of a metadata record); KIP-595 (control records).
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "decode.h"
#include "message_json.h"

namespace fastquorum {

// The numbers are those of kernels.rows.RowFault.
enum class RowFault : std::uint8_t { none, unknown_type, unknown_version, malformed };

// What a row's type says where it is no metadata record's key. The numbers are those of kernels.rows.
inline constexpr std::int16_t no_type = -128;
inline constexpr std::int16_t control_type_of(std::int16_t kind) noexcept { return static_cast<std::int16_t>(-1 - kind); }

// Which columns are filled beside the numbers. The bits are those of kernels.rows.Want.
inline constexpr int want_values = 1, want_keys = 2, want_headers = 4, want_texts = 8;

struct RowFilter {
    std::int64_t offset_min = 0, offset_max = INT64_MAX;  // the latter exclusive, as the other two
    std::int64_t epoch_min = INT32_MIN, epoch_max = INT64_MAX;
    std::int64_t timestamp_min = INT64_MIN, timestamp_max = INT64_MAX;
    bool any_type = true;
    std::bitset<256> types;  // by type + 128

    bool takes_type(std::int16_t type) const noexcept { return any_type || types[static_cast<std::size_t>(type + 128)]; }
};

// Byte strings one behind the other. `ends` begins with 0.
struct Packed {
    std::string data;
    std::vector<std::int32_t> ends{0};
    std::vector<std::uint8_t> valid;

    void close(bool is_valid) {
        if (data.size() > INT32_MAX) throw std::bad_alloc();
        ends.push_back(static_cast<std::int32_t>(data.size()));
        valid.push_back(is_valid);
    }

    void add(const std::uint8_t *at, std::int64_t size) {
        if (size > 0) data.append(reinterpret_cast<const char *>(at), static_cast<std::size_t>(size));
        close(size >= 0);
    }
};

struct RowColumns {
    std::vector<std::int64_t> offsets, timestamps_ms;
    std::vector<std::int32_t> epochs;
    std::vector<std::int16_t> types, versions;
    std::vector<RowFault> faults;
    Packed values, keys, texts, header_keys, header_values;
    std::vector<std::int32_t> header_ends{0};

    std::int64_t size() const noexcept { return static_cast<std::int64_t>(offsets.size()); }
    std::int64_t bytes() const noexcept {
        return static_cast<std::int64_t>(values.data.size() + keys.data.size() + texts.data.size() + header_values.data.size());
    }
};

class RowBuilder {
public:
    RowColumns columns;
    RowFilter filter;
    int want = 0;
    bool is_metadata = true;  // else values mean what users mean by them
    std::int64_t next_offset = -1;  // what the next batch must begin with; -1: anything

    // The layout is the caller's to keep.
    void add_layout(std::int16_t type, std::int16_t version, const StructLayout *layout) {
        layouts_[{type, version}] = layout;
        known_[static_cast<std::size_t>(type + 128)] = true;
    }

    // Can no record of this batch be wanted?
    bool skips(const BatchHeader &header) const noexcept {
        const std::int64_t last = header.base_offset + header.last_offset_delta;
        return last < filter.offset_min || header.base_offset >= filter.offset_max || header.leader_epoch < filter.epoch_min ||
               header.leader_epoch >= filter.epoch_max;
    }

    // Rows of a batch whose header is good. Fault::record if its records do not parse. Throws bad_alloc.
    Fault add(const BatchHeader &header, const std::uint8_t *origin, const std::uint8_t *section, const std::uint8_t *section_end) {
        if (!count_is_possible(header, section_end - section)) return Fault::record;
        const auto count = static_cast<std::size_t>(header.records_count);
        scratch_.resize(count * record_columns + 1);
        ColumnSink sink;
        std::int64_t *at = scratch_.data();
        for (std::int64_t **column : {&sink.offsets, &sink.timestamps_ms, &sink.key_starts, &sink.key_lengths, &sink.value_starts,
                                      &sink.value_lengths, &sink.header_starts})
            *column = std::exchange(at, at + count);
        std::int64_t headers = 0;
        if (!decode_section(header, origin, section, section_end, sink, &headers)) return Fault::record;
        if ((want & want_headers) != 0 && headers > 0) {
            header_scratch_.resize(static_cast<std::size_t>(headers) * header_columns);
            at = header_scratch_.data();
            for (std::int64_t **column :
                 {&sink.header_key_starts, &sink.header_key_lengths, &sink.header_value_starts, &sink.header_value_lengths})
                *column = std::exchange(at, at + headers);
            sink.headers_max = headers;
            std::int64_t again = 0;
            if (!decode_section(header, origin, section, section_end, sink, &again) || again != headers) return Fault::record;
        }
        for (std::size_t row = 0; row < count; ++row) add_row(header, origin, sink, row);
        return Fault::none;
    }

private:
    static constexpr std::size_t record_columns = 7, header_columns = 4;

    struct Kind {
        std::int16_t type = no_type;
        std::int16_t version = -1;
        RowFault fault = RowFault::none;
        const StructLayout *layout = nullptr;
        const std::uint8_t *message = nullptr;
    };

    void add_row(const BatchHeader &header, const std::uint8_t *origin, const ColumnSink &sink, std::size_t row) {
        const std::int64_t offset = sink.offsets[row], timestamp = sink.timestamps_ms[row];
        if (offset < filter.offset_min || offset >= filter.offset_max || timestamp < filter.timestamp_min ||
            timestamp >= filter.timestamp_max)
            return;
        const std::uint8_t *key = origin + sink.key_starts[row], *value = origin + sink.value_starts[row];
        const std::int64_t key_size = sink.key_lengths[row], value_size = sink.value_lengths[row];
        Kind kind;
        if ((header.attributes & control) != 0) {
            kind = control_kind(key, key_size, value, value_size);
        } else if (is_metadata) {
            kind = metadata_kind(value, value_size);
        }
        // What is of no type that can be told is never left out: nobody would hear of it.
        if (!filter.takes_type(kind.type) && !(kind.type == no_type && kind.fault != RowFault::none)) return;
        columns.offsets.push_back(offset);
        columns.timestamps_ms.push_back(timestamp);
        columns.epochs.push_back(header.leader_epoch);
        columns.types.push_back(kind.type);
        columns.versions.push_back(kind.version);
        if ((want & want_values) != 0) columns.values.add(value, value_size);
        if ((want & want_keys) != 0) columns.keys.add(key, key_size);
        if ((want & want_headers) != 0) add_headers(origin, sink, row);
        if ((want & want_texts) != 0) add_text(&kind, value + value_size);
        columns.faults.push_back(kind.fault);
    }

    Kind control_kind(const std::uint8_t *key, std::int64_t key_size, const std::uint8_t *value, std::int64_t value_size) const {
        Kind kind;
        kind.fault = RowFault::malformed;
        ByteReader reader(key, key + std::max<std::int64_t>(key_size, 0));
        std::int16_t version, number;
        if (key_size != 4 || !reader.take(&version) || !reader.take(&number) || value_size < 0) return kind;
        if (version != 0 || number < 0 || number > 100) {
            kind.fault = RowFault::unknown_type;
            return kind;
        }
        kind.type = control_type_of(number);
        return with_layout(kind, 0, value);
    }

    Kind metadata_kind(const std::uint8_t *value, std::int64_t value_size) const {
        Kind kind;
        kind.fault = RowFault::malformed;
        ByteReader reader(value, value + std::max<std::int64_t>(value_size, 0));
        std::int64_t frame, number, version;
        if (!reader.take_uvarint(&frame) || frame != 1 || !reader.take_uvarint(&number) || !reader.take_uvarint(&version)) return kind;
        if (number > 127 || version > INT16_MAX) {
            kind.fault = RowFault::unknown_type;
            return kind;
        }
        kind.type = static_cast<std::int16_t>(number);
        return with_layout(kind, static_cast<std::int16_t>(version), reader.at());
    }

    Kind with_layout(Kind kind, std::int16_t version, const std::uint8_t *message) const {
        kind.version = version;
        kind.message = message;
        if (!known_[static_cast<std::size_t>(kind.type + 128)]) {
            kind.fault = RowFault::unknown_type;
            return kind;
        }
        const auto found = layouts_.find({kind.type, version});
        kind.layout = found == layouts_.end() ? nullptr : found->second;
        kind.fault = kind.layout == nullptr ? RowFault::unknown_version : RowFault::none;
        return kind;
    }

    void add_text(Kind *kind, const std::uint8_t *end) {
        std::string &text = columns.texts.data;
        const std::size_t begin = text.size();
        bool is_good = false;
        if (kind->layout != nullptr) {
            is_good = JsonWriter(kind->message, end, &text).write_whole(*kind->layout);
            if (!is_good) {
                text.resize(begin);
                kind->fault = RowFault::malformed;
            }
        }
        columns.texts.close(is_good);
    }

    void add_headers(const std::uint8_t *origin, const ColumnSink &sink, std::size_t row) {
        for (std::int64_t i = sink.header_starts[row]; i < sink.header_starts[row + 1]; ++i) {
            columns.header_keys.add(origin + sink.header_key_starts[i], sink.header_key_lengths[i]);
            columns.header_values.add(origin + sink.header_value_starts[i], sink.header_value_lengths[i]);
        }
        columns.header_ends.push_back(static_cast<std::int32_t>(columns.header_keys.valid.size()));
    }

    std::map<std::pair<std::int16_t, std::int16_t>, const StructLayout *> layouts_;
    std::bitset<256> known_;
    std::vector<std::int64_t> scratch_, header_scratch_;
};

// Where a run of batches ended, and why.
struct RowsRead {
    std::int64_t position = 0;
    Status status;
    BatchHeader header{};     // of the batch at position, if needs_data
    bool needs_data = false;  // it is compressed: the caller decompresses it
    bool no_memory = false;
};

// Batches from `position` on, until there are `rows_max` rows or `bytes_max` bytes of them, or a batch is not good, or is
// compressed.
inline RowsRead read_rows(RowBuilder *builder, const std::uint8_t *data, std::int64_t size, std::int64_t position, bool verify_crc,
                          std::int64_t rows_max, std::int64_t bytes_max) noexcept {
    RowsRead read;
    read.position = position;
    try {
        while (read.position < size && builder->columns.size() < rows_max && builder->columns.bytes() < bytes_max) {
            BatchHeader &header = read.header;
            const Expectation expected{.offset = builder->next_offset};
            read.status = check_batch(data, size, read.position, verify_crc, batch_size_max, expected, &header);
            if (read.status.fault != Fault::none) return read;
            if (!builder->skips(header)) {
                if ((header.attributes & compression_mask) != 0) {
                    read.needs_data = true;
                    return read;
                }
                const std::uint8_t *batch = data + read.position;
                const Fault fault = builder->add(header, data, batch + header_bytes, batch + header.size_bytes);
                if (fault != Fault::none) {
                    read.status = status_at(fault, data, size, read.position);
                    return read;
                }
            }
            read.position += header.size_bytes;
            builder->next_offset = header.base_offset + header.last_offset_delta + 1;
        }
    } catch (const std::bad_alloc &) {
        read.no_memory = true;
    }
    return read;
}

// The compressed batch that a run stopped at, now that its records are there.
inline RowsRead add_section(RowBuilder *builder, const RowsRead &at, const std::uint8_t *section, std::int64_t size) noexcept {
    RowsRead added;
    added.position = at.position;
    try {
        added.status.fault = builder->add(at.header, section, section, section + size);
        added.status.position = at.position;
        added.status.offset = at.header.base_offset;
        if (added.status.fault == Fault::none) builder->next_offset = at.header.base_offset + at.header.last_offset_delta + 1;
    } catch (const std::bad_alloc &) {
        added.no_memory = true;
    }
    return added;
}

}  // namespace fastquorum
