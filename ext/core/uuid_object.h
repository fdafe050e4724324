// fastquorum.types.Uuid, a subclass of bytes, made from bytes that are known to be as many as it has.
#pragma once

#include <Python.h>

#include <cstdint>
#include <cstring>

namespace fastquorum {

inline constexpr std::int64_t uuid_bytes = 16;

// As bytes.__new__(Uuid, raw) does it: Uuid's own check is for what callers bring. Null: memory was short.
inline PyObject *new_uuid(PyTypeObject *type, const std::uint8_t *raw) noexcept {
    PyObject *made = type->tp_alloc(type, uuid_bytes);
    if (made != nullptr) {
        auto *bytes = reinterpret_cast<PyBytesObject *>(made);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        bytes->ob_shash = -1;
#pragma GCC diagnostic pop
        std::memcpy(bytes->ob_sval, raw, uuid_bytes);
        bytes->ob_sval[uuid_bytes] = 0;
        PyObject_GC_UnTrack(made);  // as of any class made in Python the collector would keep it in its lists: it holds nothing
    }
    return made;
}

}  // namespace fastquorum
