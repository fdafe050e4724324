// Bytes to Python objects, by a layout. Every length and count is checked against the bytes that are left, and against
// the elements that the caller takes at most, before anything is allocated for it.
//
// A function that returns null without a Python exception has refused the bytes: the caller asks the pure twin why. Every
// object returned is owned by the caller. Source: the Kafka protocol guide; KIP-482.
#pragma once

#include <array>

#include "message_layout.h"
#include "uuid_object.h"

namespace fastquorum {

class MessageReader : private LayoutReader {
public:
    MessageReader(const std::uint8_t *at, const std::uint8_t *end, std::int64_t elements_max, PyTypeObject *uuid,
                  PyObject *no_tags) noexcept
        : LayoutReader(at, end), room_(elements_max), uuid_(uuid), no_tags_(no_tags) {}

    using LayoutReader::at;

    PyObject *read(const StructLayout &layout) noexcept {
        PyObject *made = layout.type->tp_alloc(layout.type, 0);
        if (made != nullptr && !fill(made, layout)) {
            Py_CLEAR(made);
        }
        return made;
    }

private:
    // All arrays and tag sections of a message share the room that the caller gives it.
    bool take_room(std::int64_t count) noexcept {
        room_ -= count;
        return room_ >= 0;
    }

    static void set(PyObject *object, Py_ssize_t slot, PyObject *owned) noexcept { *slot_at(object, slot) = owned; }

    bool set_default(PyObject *object, const FieldLayout &field) noexcept {
        PyObject *value = field.initial;
        if (value != nullptr) {
            Py_INCREF(value);
        } else if (field.value.kind == ValueKind::array) {
            value = PyList_New(0);
        } else {
            value = defaults(*field.value.structure);
        }
        set(object, field.slot, value);
        return value != nullptr;
    }

    void set_no_tags(PyObject *object, const StructLayout &layout) noexcept {
        Py_INCREF(no_tags_);
        set(object, layout.tags_slot, no_tags_);
    }

    PyObject *defaults(const StructLayout &layout) noexcept {
        PyObject *made = layout.type->tp_alloc(layout.type, 0);
        if (made == nullptr) return nullptr;
        for (const auto *fields : {&layout.plain, &layout.tagged, &layout.absent}) {
            for (const FieldLayout &field : *fields) {
                if (!set_default(made, field)) {
                    Py_DECREF(made);
                    return nullptr;
                }
            }
        }
        set_no_tags(made, layout);
        return made;
    }

    bool fill(PyObject *made, const StructLayout &layout) noexcept {
        for (const FieldLayout &field : layout.absent) {
            if (!set_default(made, field)) return false;
        }
        for (const FieldLayout &field : layout.plain) {
            PyObject *value = read_value(field.value);
            if (value == nullptr) return false;
            set(made, field.slot, value);
        }
        std::int64_t tags = 0;
        if (layout.flexible && !take_uvarint(&tags)) return false;
        if (tags == 0) {
            set_no_tags(made, layout);
        } else if (tags > left() / 2 || !take_room(tags) || !read_tags(made, layout, tags)) {
            return false;
        }
        for (const FieldLayout &field : layout.tagged) {
            if (*slot_at(made, field.slot) == nullptr && !set_default(made, field)) return false;
        }
        return true;
    }

    bool read_tags(PyObject *made, const StructLayout &layout, std::int64_t count) noexcept {
        PyObject *unknown = nullptr;
        std::int64_t tag = -1;
        bool good = true;
        for (std::int64_t i = 0; i < count && good; ++i) {
            std::int64_t size;
            good = take_tag(&tag, &size);
            if (good) {
                const FieldLayout *field = find(layout, tag);
                good = field != nullptr ? read_tag(made, *field, size)
                                        : !is_foreign(layout, tag) && keep_tag(&unknown, tag, size);
            }
        }
        if (good && unknown == nullptr) {
            set_no_tags(made, layout);
        } else if (good) {
            PyObject *kept = PyList_AsTuple(unknown);
            set(made, layout.tags_slot, kept);
            good = kept != nullptr;
        }
        Py_XDECREF(unknown);
        return good;
    }

    // A declared field, which must take exactly the size that its tag announces.
    bool read_tag(PyObject *made, const FieldLayout &field, std::int64_t size) noexcept {
        const std::uint8_t *end = end_;
        end_ = at_ + size;
        PyObject *value = read_value(field.value);
        const bool whole = at_ == end_;
        end_ = end;
        set(made, field.slot, value);
        return value != nullptr && whole;
    }

    bool keep_tag(PyObject **unknown, std::int64_t tag, std::int64_t size) noexcept {
        if (*unknown == nullptr && (*unknown = PyList_New(0)) == nullptr) return false;
        PyObject *entry = Py_BuildValue("(Ly#)", static_cast<long long>(tag), reinterpret_cast<const char *>(at_),
                                        static_cast<Py_ssize_t>(size));
        const bool kept = entry != nullptr && PyList_Append(*unknown, entry) == 0;
        Py_XDECREF(entry);
        at_ += size;
        return kept;
    }

    PyObject *read_value(const ValueLayout &value) noexcept {
        switch (value.kind) {
            case ValueKind::boolean: return at_ == end_ ? nullptr : PyBool_FromLong(*at_++);
            case ValueKind::int8: return integer<std::int8_t>();
            case ValueKind::int16: return integer<std::int16_t>();
            case ValueKind::uint16: return integer<std::uint16_t>();
            case ValueKind::int32: return integer<std::int32_t>();
            case ValueKind::int64: return integer<std::int64_t>();
            case ValueKind::float64: return real();
            case ValueKind::uuid: return uuid();
            case ValueKind::structure: return value.nullable ? read_nullable(*value.structure) : read(*value.structure);
            default: return read_sized(value);
        }
    }

    template <class Integer>
    PyObject *integer() noexcept {
        Integer value;
        return take(&value) ? PyLong_FromLongLong(value) : nullptr;
    }

    PyObject *real() noexcept {
        double value;
        return take_real(&value) ? PyFloat_FromDouble(value) : nullptr;
    }

    PyObject *uuid() noexcept {
        std::array<std::uint8_t, uuid_bytes> raw;
        return take_bytes(raw.data(), uuid_bytes) ? new_uuid(uuid_, raw.data()) : nullptr;
    }

    PyObject *read_nullable(const StructLayout &layout) noexcept {
        std::int8_t mark;
        if (!take(&mark)) return nullptr;
        if (mark == -1) {
            Py_RETURN_NONE;
        }
        return mark == 1 ? read(layout) : nullptr;
    }

    PyObject *read_sized(const ValueLayout &value) noexcept {
        std::int64_t size;
        if (!take_size(value, &size)) return nullptr;
        if (size < 0) {
            if (size == -1 && value.nullable) {
                Py_RETURN_NONE;
            }
            return nullptr;
        }
        if (value.kind == ValueKind::array) return read_array(*value.element, size);
        if (size > left() || (value.kind == ValueKind::string && size > string_bytes_max)) return nullptr;
        const auto *bytes = reinterpret_cast<const char *>(at_);
        at_ += size;
        if (value.kind == ValueKind::bytes) return PyBytes_FromStringAndSize(bytes, size);
        PyObject *text = PyUnicode_DecodeUTF8(bytes, size, nullptr);
        if (text == nullptr && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear();
        }
        return text;
    }

    PyObject *read_array(const ValueLayout &element, std::int64_t count) noexcept {
        if (count > left() / element.bytes_min || !take_room(count)) return nullptr;
        PyObject *items = PyList_New(count);
        for (std::int64_t i = 0; items != nullptr && i < count; ++i) {
            PyObject *item = read_value(element);
            if (item == nullptr) {
                Py_CLEAR(items);
            } else {
                PyList_SET_ITEM(items, i, item);
            }
        }
        return items;
    }

    std::int64_t room_;
    PyTypeObject *uuid_;
    PyObject *no_tags_;
};

// Reads a message at `*position`, and moves that behind it. `uuid` is fastquorum.types.Uuid, `no_tags` the empty tuple.
inline PyObject *read_message(const StructLayout &layout, const void *data, std::int64_t size, std::int64_t *position,
                              std::int64_t elements_max, PyTypeObject *uuid, PyObject *no_tags) noexcept {
    if (*position < 0 || *position > size) return nullptr;
    const auto *start = static_cast<const std::uint8_t *>(data);
    MessageReader reader(start + *position, start + size, elements_max, uuid, no_tags);
    PyObject *message = reader.read(layout);
    *position = reader.at() - start;
    return message;
}

}  // namespace fastquorum
