// How a struct of Kafka's protocol lies on the wire in one version, and where its fields lie in the Python object: the
// table that message_decode.h, message_json.h and message_encode.h walk. Filled by _messages.pyx; the Python objects that it points to
// are kept alive by the layout it was filled from.
#pragma once

#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "byte_reader.h"

namespace fastquorum {

// The numbers are those of fastquorum.kernels.messages.ValueKind.
enum class ValueKind : std::uint8_t {
    boolean,
    int8,
    int16,
    uint16,
    int32,
    int64,
    float64,
    uuid,
    string,
    bytes,
    array,
    structure,
};

struct StructLayout;

struct ValueLayout {
    ValueKind kind = ValueKind::boolean;
    bool nullable = false;
    bool compact = false;
    std::int64_t bytes_min = 1;
    PyObject *source = nullptr;  // what it was filled from; none like it while that lives
    std::unique_ptr<ValueLayout> element;
    std::unique_ptr<StructLayout> structure;
};

struct FieldLayout {
    ValueLayout value;
    Py_ssize_t slot = 0;  // where in the object its value is
    std::uint32_t tag = 0;
    bool ignorable = false;
    PyObject *initial = nullptr;  // the default; none: a fresh empty list, or a struct of defaults
    std::string json_name;     // in quotes, with the colon behind it
    std::string default_json;  // tagged: the default's JSON text
};

struct StructLayout {
    PyTypeObject *type = nullptr;
    Py_ssize_t tags_slot = 0;  // of unknown_tags
    bool flexible = false;
    std::vector<FieldLayout> plain;   // in wire order
    std::vector<FieldLayout> tagged;  // by ascending tag
    std::vector<FieldLayout> absent;  // not in this version
    std::vector<std::uint32_t> foreign_tags;  // of other versions
};

inline constexpr std::size_t tagged_max = 64;
inline constexpr std::int64_t string_bytes_max = INT16_MAX;

// Where `object.name` is kept, for a `name` of the class's __slots__; -1 if it is not one.
inline Py_ssize_t slot_of(PyTypeObject *type, PyObject *name) noexcept {
    PyObject *found = PyObject_GetAttr(reinterpret_cast<PyObject *>(type), name);
    if (found == nullptr) {
        PyErr_Clear();
        return -1;
    }
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        const PyMemberDef *member = reinterpret_cast<PyMemberDescrObject *>(found)->d_member;
        if (member->type == T_OBJECT_EX && PyType_IsSubtype(type, reinterpret_cast<PyMemberDescrObject *>(found)->d_common.d_type)) {
            offset = member->offset;
        }
    }
    Py_DECREF(found);
    return offset;
}

inline PyObject **slot_at(PyObject *object, Py_ssize_t slot) noexcept {
    return reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + slot);
}

// The class of arrays that are written once (kernels.messages.Alike), and its slot for what that came to.
struct AlikeType {
    PyTypeObject *type = nullptr;
    Py_ssize_t written_slot = 0;
};
inline AlikeType alike;

// What all readers by a layout check against the bytes that are left.
class LayoutReader : protected ByteReader {
protected:
    using ByteReader::ByteReader;

    bool take_real(double *value) noexcept {
        std::uint64_t bits;
        if (!take(&bits)) return false;
        std::memcpy(value, &bits, sizeof bits);
        return true;
    }

    // The length or count in front of a value, -1 for null.
    bool take_size(const ValueLayout &value, std::int64_t *size) noexcept {
        if (value.compact) {
            if (!take_uvarint(size)) return false;
            --*size;
            return true;
        }
        if (value.kind == ValueKind::string) {
            std::int16_t length = 0;
            const bool taken = take(&length);
            *size = length;
            return taken;
        }
        std::int32_t count = 0;
        const bool taken = take(&count);
        *size = count;
        return taken;
    }

    // A tag behind `*last`, and how many bytes it announces.
    bool take_tag(std::int64_t *last, std::int64_t *size) noexcept {
        std::int64_t tag;
        if (!take_uvarint(&tag) || !take_uvarint(size) || tag <= *last || *size > left()) return false;
        *last = tag;
        return true;
    }

    static const FieldLayout *find(const StructLayout &layout, std::int64_t tag) noexcept {
        const auto found = std::find_if(layout.tagged.begin(), layout.tagged.end(), [&](const FieldLayout &each) { return each.tag == tag; });
        return found == layout.tagged.end() ? nullptr : &*found;
    }

    static bool is_foreign(const StructLayout &layout, std::int64_t tag) noexcept {
        return std::find(layout.foreign_tags.begin(), layout.foreign_tags.end(), tag) != layout.foreign_tags.end();
    }
};

}  // namespace fastquorum
