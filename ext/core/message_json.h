// Bytes to JSON text, by a layout: no Python object is made, and the GIL is not held. What message_decode.h refuses is
// refused here as well, and what it reads comes out as kernels/json_text.py prints it.
//
// Fields stand in wire order, then those that are tagged and not at their default. Every length and count is checked
// against the bytes that are left before anything is written for it. Source: the Kafka protocol guide; KIP-482.
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "message_layout.h"

namespace fastquorum {

// The size of the UTF-8 sequence at `at`, 0 if there is none: no overlong form, no surrogate, nothing above U+10FFFF.
inline std::int64_t utf8_sequence(const std::uint8_t *at, std::int64_t left) noexcept {
    const std::uint8_t first = at[0];
    const auto follows = [&](std::int64_t i) { return (at[i] & 0xC0) == 0x80; };
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return left >= 2 && follows(1) ? 2 : 0;
    if (first < 0xF0) {
        if (left < 3 || !follows(1) || !follows(2)) return 0;
        const bool is_overlong = first == 0xE0 && at[1] < 0xA0, is_surrogate = first == 0xED && at[1] >= 0xA0;
        return is_overlong || is_surrogate ? 0 : 3;
    }
    if (first > 0xF4 || left < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    return (first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] >= 0x90) ? 0 : 4;
}

// A text in quotes; false if it is no UTF-8. Escapes what JSON must have escaped and nothing else, as json.dumps with
// ensure_ascii=False.
inline bool append_json_string(std::string *out, const std::uint8_t *at, std::int64_t size) {
    static constexpr char digits[] = "0123456789abcdef";
    const std::uint8_t *end = at + size, *kept = at;
    out->push_back('"');
    while (at != end) {
        const std::uint8_t byte = *at;
        if (byte >= 0x80) {
            const std::int64_t length = utf8_sequence(at, end - at);
            if (length == 0) return false;
            at += length;
            continue;
        }
        if (byte >= 0x20 && byte != '"' && byte != '\\') [[likely]] {
            ++at;
            continue;
        }
        out->append(reinterpret_cast<const char *>(kept), static_cast<std::size_t>(at - kept));
        kept = ++at;
        switch (byte) {
            case '"': out->append("\\\""); break;
            case '\\': out->append("\\\\"); break;
            case '\b': out->append("\\b"); break;
            case '\f': out->append("\\f"); break;
            case '\n': out->append("\\n"); break;
            case '\r': out->append("\\r"); break;
            case '\t': out->append("\\t"); break;
            default:
                out->append("\\u00");
                out->push_back(digits[byte >> 4]);
                out->push_back(digits[byte & 15]);
        }
    }
    out->append(reinterpret_cast<const char *>(kept), static_cast<std::size_t>(end - kept));
    out->push_back('"');
    return true;
}

inline constexpr char base64_standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
inline constexpr char base64_url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Padded to whole quadruples unless `alphabet` is the one for URLs, as Kafka prints Uuids.
inline void append_base64(std::string *out, const std::uint8_t *at, std::int64_t size, const char *alphabet) {
    std::int64_t i = 0;
    for (; i + 3 <= size; i += 3) {
        const unsigned group = static_cast<unsigned>(at[i] << 16 | at[i + 1] << 8 | at[i + 2]);
        const char quadruple[] = {alphabet[group >> 18], alphabet[group >> 12 & 63], alphabet[group >> 6 & 63], alphabet[group & 63]};
        out->append(quadruple, 4);
    }
    if (i == size) return;
    const unsigned group = static_cast<unsigned>(at[i] << 16 | (i + 1 < size ? at[i + 1] << 8 : 0));
    out->push_back(alphabet[group >> 18]);
    out->push_back(alphabet[group >> 12 & 63]);
    if (i + 1 < size) out->push_back(alphabet[group >> 6 & 63]);
    if (alphabet == base64_standard) out->append(i + 1 < size ? "=" : "==");
}

inline void append_integer(std::string *out, std::int64_t value) {
    char digits[20];
    char *at = digits + sizeof digits;
    std::uint64_t rest = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do {
        *--at = static_cast<char>('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0) *--at = '-';
    out->append(at, static_cast<std::size_t>(digits + sizeof digits - at));
}

// As Python prints it, which alone knows how: few messages have such a field, so the GIL is taken for it. False if memory
// is short.
inline bool append_real(std::string *out, double value) {
    if (!std::isfinite(value)) {
        out->append(std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return true;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    char *text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (text != nullptr) {
        out->append(text);
        PyMem_Free(text);
    } else {
        PyErr_Clear();
    }
    PyGILState_Release(state);
    return text != nullptr;
}

class JsonWriter : private LayoutReader {
public:
    JsonWriter(const std::uint8_t *at, const std::uint8_t *end, std::string *out) noexcept : LayoutReader(at, end), out_(out) {}

    // The message that fills the bytes. False: it is malformed, and part of it may stand in the text.
    bool write_whole(const StructLayout &layout) { return write(layout) && at_ == end_; }

private:
    bool write(const StructLayout &layout) {
        bool is_first = true;
        out_->push_back('{');
        for (const FieldLayout &field : layout.plain) {
            put_name(field, &is_first);
            if (!write_value(field.value)) return false;
        }
        std::int64_t tags = 0;
        if (layout.flexible && !take_uvarint(&tags)) return false;
        if (tags > left() / 2 || !write_tags(layout, tags, is_first)) return false;
        out_->push_back('}');
        return true;
    }

    void put_name(const FieldLayout &field, bool *is_first) {
        if (!std::exchange(*is_first, false)) out_->push_back(',');
        out_->append(field.json_name);
    }

    bool write_tags(const StructLayout &layout, std::int64_t count, bool is_first) {
        std::int64_t tag = -1, size;
        for (std::int64_t i = 0; i < count; ++i) {
            if (!take_tag(&tag, &size)) return false;
            if (const FieldLayout *field = find(layout, tag)) {
                if (!write_tagged(*field, size, &is_first)) return false;
            } else if (is_foreign(layout, tag)) {
                return false;
            } else {
                at_ += size;  // an unknown one has no JSON form
            }
        }
        return true;
    }

    // A declared field, which must take exactly the size that its tag announces. At its default it is not shown.
    bool write_tagged(const FieldLayout &field, std::int64_t size, bool *is_first) {
        const std::uint8_t *end = std::exchange(end_, at_ + size);
        const std::size_t before = out_->size();
        const bool was_first = *is_first;
        put_name(field, is_first);
        const std::size_t begin = out_->size();
        const bool whole = write_value(field.value) && at_ == end_;
        end_ = end;
        if (whole && out_->compare(begin, std::string::npos, field.default_json) == 0) {
            out_->resize(before);
            *is_first = was_first;
        }
        return whole;
    }

    bool write_value(const ValueLayout &value) {
        switch (value.kind) {
            case ValueKind::boolean:
                if (at_ == end_) return false;
                out_->append(*at_++ != 0 ? "true" : "false");
                return true;
            case ValueKind::int8: return write_integer<std::int8_t>();
            case ValueKind::int16: return write_integer<std::int16_t>();
            case ValueKind::uint16: return write_integer<std::uint16_t>();
            case ValueKind::int32: return write_integer<std::int32_t>();
            case ValueKind::int64: return write_integer<std::int64_t>();
            case ValueKind::float64: return write_real();
            case ValueKind::uuid: return write_uuid();
            case ValueKind::structure: return value.nullable ? write_nullable(*value.structure) : write(*value.structure);
            default: return write_sized(value);
        }
    }

    template <class Integer>
    bool write_integer() {
        Integer value;
        if (!take(&value)) return false;
        append_integer(out_, value);
        return true;
    }

    bool write_real() {
        double value;
        return take_real(&value) && append_real(out_, value);
    }

    bool write_uuid() {
        constexpr std::int64_t size = 16;
        if (left() < size) return false;
        out_->push_back('"');
        append_base64(out_, at_, size, base64_url);
        out_->push_back('"');
        at_ += size;
        return true;
    }

    bool write_nullable(const StructLayout &layout) {
        std::int8_t mark;
        if (!take(&mark)) return false;
        if (mark != -1) return mark == 1 && write(layout);
        out_->append("null");
        return true;
    }

    bool write_sized(const ValueLayout &value) {
        std::int64_t size;
        if (!take_size(value, &size)) return false;
        if (size < 0) {
            if (size != -1 || !value.nullable) return false;
            out_->append("null");
            return true;
        }
        if (value.kind == ValueKind::array) return write_array(*value.element, size);
        if (size > left() || (value.kind == ValueKind::string && size > string_bytes_max)) return false;
        const std::uint8_t *bytes = at_;
        at_ += size;
        if (value.kind == ValueKind::string) return append_json_string(out_, bytes, size);
        out_->push_back('"');
        append_base64(out_, bytes, size, base64_standard);
        out_->push_back('"');
        return true;
    }

    bool write_array(const ValueLayout &element, std::int64_t count) {
        if (count > left() / element.bytes_min) return false;
        out_->push_back('[');
        for (std::int64_t i = 0; i < count; ++i) {
            if (i > 0) out_->push_back(',');
            if (!write_value(element)) return false;
        }
        out_->push_back(']');
        return true;
    }

    std::string *out_;
};

}  // namespace fastquorum
