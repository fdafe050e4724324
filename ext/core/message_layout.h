// How a struct of Kafka's protocol lies on the wire in one version, and where its fields lie in the Python object: the
// table that message_decode.h and message_encode.h walk. Filled by _messages.pyx; the Python objects that it points to
// are kept alive by the layout it was filled from.
#pragma once

#include <Python.h>
#include <structmember.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

}  // namespace fastquorum
