"""A layout (`fastquorum.kernels.messages`) as the C++ core walks it."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint32_t
from libcpp.memory cimport make_unique
from libcpp.vector cimport vector

from json import dumps

from fastquorum.kernels.json_text import default_text
from fastquorum.kernels.messages import Fresh


cdef object _FRESH = Fresh.FRESH


cdef Py_ssize_t _slot(object cls, str name) except -1:
    cdef Py_ssize_t offset = slot_of(<PyTypeObject *>cls, <PyObject *>name)
    if offset < 0:
        raise TypeError(f"{cls.__qualname__}.{name} is not a slot")
    return offset


cdef int fill_struct(CppStructLayout *to, object layout) except -1:
    cls = layout.cls
    if not isinstance(cls, type):
        raise TypeError(f"{cls!r} is not a class")
    to.type = <PyTypeObject *>cls
    to.tags_slot = _slot(cls, "unknown_tags")
    to.flexible = layout.flexible
    if len(layout.tagged) > tagged_max:
        raise TypeError(f"{cls.__qualname__} has more than {tagged_max} tagged fields")
    _fill_fields(&to.plain, cls, layout.plain)
    _fill_fields(&to.tagged, cls, layout.tagged)
    _fill_fields(&to.absent, cls, layout.absent)
    for tag in layout.foreign_tags:
        to.foreign_tags.push_back(<uint32_t>tag)
    return 0


cdef int _fill_fields(vector[CppFieldLayout] *to, object cls, tuple fields) except -1:
    cdef CppFieldLayout *into
    to.resize(<size_t>len(fields))
    cdef size_t number = 0
    for field in fields:
        into = &to[0][number]
        into.slot = _slot(cls, field.name)
        into.tag = <uint32_t>max(field.tag, 0)
        into.ignorable = field.ignorable
        into.json_name = (dumps(field.json_name) + ":").encode()
        if field.tag >= 0:
            into.default_json = default_text(field).encode()
        default = field.default
        if default is not _FRESH:
            into.initial = <PyObject *>default
        _fill_value(&into.value, field.value)
        number += 1
    return 0


cdef int _fill_value(CppValueLayout *to, object layout) except -1:
    cdef int kind = layout.kind
    to.kind = <ValueKind>kind
    to.nullable = layout.nullable
    to.compact = layout.compact
    to.bytes_min = layout.bytes_min
    to.source = <PyObject *>layout
    if to.bytes_min < 1:
        raise ValueError("every value takes a byte")
    if layout.element is not None:
        to.element = make_unique[CppValueLayout]()
        _fill_value(to.element.get(), layout.element)
    if layout.struct is not None:
        to.structure = make_unique[CppStructLayout]()
        fill_struct(to.structure.get(), layout.struct)
    return 0
