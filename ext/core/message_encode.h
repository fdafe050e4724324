// Python objects to bytes, by a layout.
//
// A function that returns false, or null, without a Python exception has refused the value: it does not fit, or it is of a kind that
// only the pure twin knows how to write (an object with __index__, another sequence than list or tuple, unknown tags). The
// caller then asks the twin, which writes it or says what is wrong. No Python code runs in here: what is compared and
// measured has a builtin type, so nothing can change under the walk. Source: the Kafka protocol guide; KIP-482.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "batch.h"
#include "message_layout.h"

namespace fastquorum {

// Grows from a small array on the stack to a bytes object, which becomes the result without being copied again.
class MessageBuffer {
public:
    MessageBuffer() noexcept : data_(small_), at_(small_), end_(small_ + sizeof small_) {}
    MessageBuffer(const MessageBuffer &) = delete;
    MessageBuffer &operator=(const MessageBuffer &) = delete;
    ~MessageBuffer() { Py_XDECREF(large_); }

    std::int64_t size() const noexcept { return at_ - data_; }
    std::uint8_t *from(std::int64_t position) noexcept { return data_ + position; }

    // Room for `count` more bytes, which count as written; null if memory is short.
    std::uint8_t *extend(std::int64_t count) noexcept {
        if (end_ - at_ < count && !grow(count)) return nullptr;
        std::uint8_t *room = at_;
        at_ += count;
        return room;
    }

    PyObject *finish() noexcept {
        if (large_ == nullptr) return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(data_), size());
        _PyBytes_Resize(&large_, size());  // sets an error and clears it where memory is short
        return std::exchange(large_, nullptr);
    }

private:
    bool grow(std::int64_t count) noexcept {
        const std::int64_t used = size(), wanted = std::max(2 * (end_ - data_), used + count);
        if (large_ == nullptr) {
            large_ = PyBytes_FromStringAndSize(nullptr, wanted);
            if (large_ != nullptr) {
                std::memcpy(PyBytes_AS_STRING(large_), data_, static_cast<std::size_t>(used));
            }
        } else {
            _PyBytes_Resize(&large_, wanted);
        }
        if (large_ == nullptr) return false;
        data_ = reinterpret_cast<std::uint8_t *>(PyBytes_AS_STRING(large_));
        at_ = data_ + used;
        end_ = data_ + wanted;
        return true;
    }

    PyObject *large_ = nullptr;
    std::uint8_t small_[1024];
    std::uint8_t *data_;
    std::uint8_t *at_;
    std::uint8_t *end_;
};

class MessageWriter {
public:
    bool write(PyObject *object, const StructLayout &layout) noexcept {
        if (Py_TYPE(object) != layout.type || has_unknown_tags(object, layout)) return false;
        for (const FieldLayout &field : layout.absent) {
            if (!field.ignorable && differs(object, field) != Differs::no) return false;
        }
        for (const FieldLayout &field : layout.plain) {
            PyObject *value = *slot_at(object, field.slot);
            if (value == nullptr || !write_value(value, field.value)) return false;
        }
        return !layout.flexible || write_tags(object, layout);
    }

    PyObject *finish() noexcept { return buffer_.finish(); }

private:
    enum class Differs { no, yes, unknown };

    static bool has_unknown_tags(PyObject *object, const StructLayout &layout) noexcept {
        PyObject *tags = *slot_at(object, layout.tags_slot);
        return tags == nullptr || !PyTuple_CheckExact(tags) || PyTuple_GET_SIZE(tags) != 0;
    }

    static bool is_plain(PyObject *value) noexcept {
        return PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
               PyFloat_CheckExact(value) || PyBool_Check(value);
    }

    // Is the field's value another than its default?
    static Differs differs(PyObject *object, const FieldLayout &field) noexcept {
        PyObject *value = *slot_at(object, field.slot);
        if (value == nullptr) return Differs::unknown;
        if (field.initial == nullptr) return differs_from_fresh(value, field.value);
        if (value == field.initial) return PyFloat_Check(value) ? Differs::unknown : Differs::no;  // NaN differs from itself
        if (value == Py_None || field.initial == Py_None) return Differs::yes;
        if (field.value.kind == ValueKind::uuid) {  // Uuid compares as bytes do
            if (!PyBytes_Check(value) || PyBytes_GET_SIZE(value) != 16 || !PyBytes_Check(field.initial)) return Differs::unknown;
            return std::memcmp(PyBytes_AS_STRING(value), PyBytes_AS_STRING(field.initial), 16) == 0 ? Differs::no
                                                                                                     : Differs::yes;
        }
        if (!is_plain(value) || !is_plain(field.initial)) return Differs::unknown;
        switch (PyObject_RichCompareBool(value, field.initial, Py_NE)) {
            case 0: return Differs::no;
            case 1: return Differs::yes;
            default: return Differs::unknown;  // with the exception set
        }
    }

    static Differs differs_from_fresh(PyObject *value, const ValueLayout &layout) noexcept {
        if (value == Py_None) return layout.nullable ? Differs::yes : Differs::unknown;
        if (layout.kind == ValueKind::array) {
            if (!PyList_CheckExact(value) && Py_TYPE(value) != alike.type) return Differs::unknown;
            return PyList_GET_SIZE(value) != 0 ? Differs::yes : Differs::no;
        }
        const StructLayout &structure = *layout.structure;
        if (Py_TYPE(value) != structure.type || has_unknown_tags(value, structure)) return Differs::unknown;
        for (const auto *fields : {&structure.plain, &structure.tagged, &structure.absent}) {
            for (const FieldLayout &field : *fields) {
                const Differs found = differs(value, field);
                if (found != Differs::no) return found;
            }
        }
        return Differs::no;
    }

    template <class Integer>
    bool put(Integer value) noexcept {
        std::uint8_t *room = buffer_.extend(sizeof value);
        if (room == nullptr) return false;
        store_big_endian<Integer>(room, value);
        return true;
    }

    bool put_bytes(const char *data, std::int64_t size) noexcept {
        std::uint8_t *room = buffer_.extend(size);
        if (room != nullptr) {
            std::memcpy(room, data, static_cast<std::size_t>(size));
        }
        return room != nullptr;
    }

    static std::int64_t uvarint(std::uint8_t *out, std::uint64_t value) noexcept {
        std::uint8_t *at = out;
        while (value > 0x7F) {
            *at++ = static_cast<std::uint8_t>(value | 0x80);
            value >>= 7;
        }
        *at++ = static_cast<std::uint8_t>(value);
        return at - out;
    }

    bool put_uvarint(std::uint64_t value) noexcept {
        std::uint8_t bytes[10];
        const std::int64_t size = uvarint(bytes, value);
        return put_bytes(reinterpret_cast<const char *>(bytes), size);
    }

    bool write_tags(PyObject *object, const StructLayout &layout) noexcept {
        std::uint64_t present = 0;
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < layout.tagged.size(); ++i) {
            const Differs found = differs(object, layout.tagged[i]);
            if (found == Differs::unknown) return false;
            if (found == Differs::yes) {
                present |= std::uint64_t{1} << i;
                ++count;
            }
        }
        if (!put_uvarint(count)) return false;
        for (std::size_t i = 0; present != 0 && i < layout.tagged.size(); ++i) {
            if ((present >> i & 1) != 0 && !write_tag(*slot_at(object, layout.tagged[i].slot), layout.tagged[i])) return false;
        }
        return true;
    }

    // Tag, size, value. One byte is left for the size, and the value moved where that is too little.
    bool write_tag(PyObject *value, const FieldLayout &field) noexcept {
        if (!put_uvarint(field.tag)) return false;
        const std::int64_t size_at = buffer_.size();
        if (!put<std::uint8_t>(0) || !write_value(value, field.value)) return false;
        const std::int64_t size = buffer_.size() - size_at - 1;
        std::uint8_t bytes[10];
        const std::int64_t taken = uvarint(bytes, static_cast<std::uint64_t>(size));
        if (taken > 1) {
            if (buffer_.extend(taken - 1) == nullptr) return false;
            std::memmove(buffer_.from(size_at + taken), buffer_.from(size_at + 1), static_cast<std::size_t>(size));
        }
        std::memcpy(buffer_.from(size_at), bytes, static_cast<std::size_t>(taken));
        return true;
    }

    bool write_value(PyObject *value, const ValueLayout &layout) noexcept {
        switch (layout.kind) {
            case ValueKind::boolean: return PyBool_Check(value) && put<std::uint8_t>(value == Py_True);
            case ValueKind::int8: return write_integer<std::int8_t>(value);
            case ValueKind::int16: return write_integer<std::int16_t>(value);
            case ValueKind::uint16: return write_integer<std::uint16_t>(value);
            case ValueKind::int32: return write_integer<std::int32_t>(value);
            case ValueKind::int64: return write_integer<std::int64_t>(value);
            case ValueKind::float64: return write_real(value);
            case ValueKind::uuid:
                return PyBytes_Check(value) && PyBytes_GET_SIZE(value) == 16 && put_bytes(PyBytes_AS_STRING(value), 16);
            case ValueKind::structure: return write_struct(value, layout);
            default: return write_sized(value, layout);
        }
    }

    template <class Integer>
    bool write_integer(PyObject *value) noexcept {
        if (!PyLong_Check(value)) return false;
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow != 0 || number < std::numeric_limits<Integer>::min() || number > std::numeric_limits<Integer>::max()) {
            return false;
        }
        return put<Integer>(static_cast<Integer>(number));
    }

    bool write_real(PyObject *value) noexcept {
        if (!PyFloat_CheckExact(value)) return false;
        const double number = PyFloat_AS_DOUBLE(value);
        std::uint64_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        return put(bits);
    }

    bool write_struct(PyObject *value, const ValueLayout &layout) noexcept {
        if (!layout.nullable) return write(value, *layout.structure);
        if (value == Py_None) return put<std::int8_t>(-1);
        return put<std::int8_t>(1) && write(value, *layout.structure);
    }

    // Length or count; -1 is null.
    bool put_size(const ValueLayout &layout, std::int64_t size) noexcept {
        if (layout.compact) return put_uvarint(static_cast<std::uint64_t>(size + 1));
        if (layout.kind == ValueKind::string) return put(static_cast<std::int16_t>(size));
        return size <= INT32_MAX && put(static_cast<std::int32_t>(size));
    }

    bool write_sized(PyObject *value, const ValueLayout &layout) noexcept {
        if (value == Py_None) return layout.nullable && put_size(layout, -1);
        switch (layout.kind) {
            case ValueKind::string: return write_string(value, layout);
            case ValueKind::bytes: return write_bytes(value, layout);
            default: return write_array(value, layout);
        }
    }

    bool write_string(PyObject *value, const ValueLayout &layout) noexcept {
        if (!PyUnicode_CheckExact(value)) return false;
        Py_ssize_t size;
        const char *text = PyUnicode_AsUTF8AndSize(value, &size);
        if (text == nullptr) {
            if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
                PyErr_Clear();
            }
            return false;
        }
        return size <= string_bytes_max && put_size(layout, size) && put_bytes(text, size);
    }

    bool write_bytes(PyObject *value, const ValueLayout &layout) noexcept {
        if (PyBytes_Check(value)) {
            const Py_ssize_t size = PyBytes_GET_SIZE(value);
            return put_size(layout, size) && put_bytes(PyBytes_AS_STRING(value), size);
        }
        // A view of other items than bytes has another len() than size.
        const bool is_view = PyMemoryView_Check(value) && PyMemoryView_GET_BUFFER(value)->itemsize == 1 &&
                             PyMemoryView_GET_BUFFER(value)->ndim == 1;
        if (!is_view && !PyByteArray_CheckExact(value)) return false;
        Py_buffer view;
        if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) != 0) {
            if (PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError)) {
                PyErr_Clear();  // not contiguous, or released: the twin says so
            }
            return false;
        }
        const bool written = put_size(layout, view.len) && put_bytes(static_cast<const char *>(view.buf), view.len);
        PyBuffer_Release(&view);
        return written;
    }

    bool write_array(PyObject *value, const ValueLayout &layout) noexcept {
        if (Py_TYPE(value) == alike.type) return write_alike(value, layout);
        return (PyList_CheckExact(value) || PyTuple_CheckExact(value)) && write_items(value, layout);
    }

    // As it was written last, if it was written as this; else written, and kept.
    bool write_alike(PyObject *value, const ValueLayout &layout) noexcept {
        PyObject **slot = slot_at(value, alike.written_slot);
        PyObject *known = *slot;
        if (known != nullptr && PyTuple_CheckExact(known) && PyTuple_GET_ITEM(known, 0) == layout.source) {
            PyObject *bytes = PyTuple_GET_ITEM(known, 1);
            return put_bytes(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
        }
        const std::int64_t begin = buffer_.size();
        if (!write_items(value, layout)) return false;
        PyObject *bytes = PyBytes_FromStringAndSize(reinterpret_cast<const char *>(buffer_.from(begin)), buffer_.size() - begin);
        PyObject *written = bytes == nullptr ? nullptr : PyTuple_Pack(2, layout.source, bytes);
        Py_XDECREF(bytes);
        if (written == nullptr) return false;
        *slot = written;
        Py_XDECREF(known);
        return true;
    }

    bool write_items(PyObject *value, const ValueLayout &layout) noexcept {
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
        if (!put_size(layout, count)) return false;
        for (Py_ssize_t i = 0; i < count; ++i) {
            if (!write_value(PySequence_Fast_GET_ITEM(value, i), *layout.element)) return false;
        }
        return true;
    }

    MessageBuffer buffer_;
};

inline PyObject *write_message(const StructLayout &layout, PyObject *message) noexcept {
    MessageWriter writer;
    return writer.write(message, layout) ? writer.finish() : nullptr;
}

}  // namespace fastquorum
