"""PartitionRecords to rows. The GIL is held: all of it is Python objects."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool

cimport cython

from gc import get_objects

from fastquorum.kernels.partitions import PARTITION_MEMBERS, PartitionRun
from fastquorum.types import Uuid


cdef extern from "partition_rows.h" namespace "fastquorum":
    cdef enum class RowRead "fastquorum::RowRead"(int):
        taken
        refused
        failed

    cdef cppclass RawUuid "fastquorum::RawUuid":
        RawUuid() noexcept
        const uint8_t *data() noexcept

    cdef cppclass CppPartitionRows "fastquorum::PartitionRows":
        CppPartitionRows() noexcept
        void set_types(PyTypeObject *row, PyTypeObject *uuid) noexcept
        RowRead read(
            const uint8_t *value, int64_t size, RawUuid *topic, cbool is_fresh, int32_t *partition_id, PyObject **row
        ) noexcept

    PyObject *new_uuid(PyTypeObject *type, const uint8_t *raw)


cdef extern from "Python.h":
    void Py_DECREF(PyObject *)
    void PyObject_GC_UnTrack(void *)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)
    PyTypeObject *Py_TYPE(object)


cdef object _new_tuple = tuple.__new__
cdef object _PartitionRun = PartitionRun
cdef PyTypeObject *_uuid = <PyTypeObject *>Uuid


cdef inline object _owned(PyObject *made):
    """`made` as a reference that Python looks after."""
    cdef object found = <object>made
    Py_DECREF(made)
    return found


cdef int _raise_pending() except -1:
    """Raise what C++ left set (memory was short)."""
    return -1


@cython.final
cdef class PartitionRows:
    """Not for two threads at once without the GIL; it keeps ids that it has seen, a bounded number."""

    cdef CppPartitionRows _rows
    cdef object _row_type  # kept alive

    def __init__(self, row_type):
        if not issubclass(row_type, tuple) or len(row_type._fields) != PARTITION_MEMBERS:
            raise TypeError(f"{row_type!r} is not a tuple of {PARTITION_MEMBERS}")
        self._row_type = row_type
        self._rows.set_types(<PyTypeObject *>row_type, _uuid)

    def read(self, list values not None, Py_ssize_t at=0):
        cdef Py_ssize_t begin = at, count = len(values)
        cdef RawUuid topic
        cdef int32_t partition_id
        cdef PyObject *row
        cdef RowRead outcome
        cdef dict rows = None
        if at < 0:
            raise IndexError(f"position {at}")
        if self._row_type is None:
            raise TypeError("made without __init__")
        while at < count:
            value = values[at]
            if type(value) is not bytes:
                break
            outcome = self._rows.read(
                <const uint8_t *>PyBytes_AS_STRING(value),
                PyBytes_GET_SIZE(value),
                &topic,
                at == begin,
                &partition_id,
                &row,
            )
            if outcome == RowRead.failed:
                _raise_pending()
            if outcome != RowRead.taken:
                break
            if rows is None:
                rows = {}
            rows[partition_id] = _owned(row)
            at += 1
        if rows is None:
            return None
        return _new_tuple(_PartitionRun, (at, _owned_uuid(topic), rows))


cdef object _owned_uuid(RawUuid topic):
    cdef PyObject *made = new_uuid(_uuid, topic.data())
    if made == NULL:
        _raise_pending()
    return _owned(made)


def untracked(list items not None):
    made = tuple(items)
    if items:  # there is but one empty tuple, and it is Python's own
        PyObject_GC_UnTrack(<void *>made)
    return made


def untrack_young(tuple kinds not None):
    cdef list young = get_objects(generation=0)
    cdef Py_ssize_t i, count = len(kinds)
    cdef PyObject *found
    cdef PyObject *type_of
    for each in young:
        found = <PyObject *>each
        type_of = <PyObject *>Py_TYPE(each)
        for i in range(count):
            if type_of == PyTuple_GET_ITEM(<PyObject *>kinds, i):
                PyObject_GC_UnTrack(<void *>found)
                break
