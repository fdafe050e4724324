"""How structs lie on the wire (ext/core/message_layout.h), for Cython."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "message_layout.h" namespace "fastquorum" nogil:
    cdef enum ValueKind "fastquorum::ValueKind":
        pass

    cppclass CppValueLayout "fastquorum::ValueLayout":
        ValueKind kind
        cbool nullable
        cbool compact
        int64_t bytes_min
        PyObject *source
        unique_ptr[CppValueLayout] element
        unique_ptr[CppStructLayout] structure

    cppclass CppFieldLayout "fastquorum::FieldLayout":
        CppValueLayout value
        Py_ssize_t slot
        uint32_t tag
        cbool ignorable
        PyObject *initial
        string json_name
        string default_json

    cppclass CppStructLayout "fastquorum::StructLayout":
        PyTypeObject *type
        Py_ssize_t tags_slot
        cbool flexible
        vector[CppFieldLayout] plain
        vector[CppFieldLayout] tagged
        vector[CppFieldLayout] absent
        vector[uint32_t] foreign_tags

    cppclass AlikeType "fastquorum::AlikeType":
        PyTypeObject *type
        Py_ssize_t written_slot

    AlikeType alike
    const size_t tagged_max
    Py_ssize_t slot_of(PyTypeObject *type, PyObject *name)


# From a kernels.messages.StructLayout, which has to live on: `to` points to what it holds. TypeError.
cdef int fill_struct(CppStructLayout *to, object layout) except -1
