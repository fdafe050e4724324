"""Messages of Kafka's protocol to bytes and back, by walking a layout (`fastquorum.kernels.messages`).

What does not fit is refused without a reason: the pure twin is asked, which says it, or which writes what only it can
write (an object with __index__, a sequence that is neither list nor tuple, unknown tags). The GIL is held: all of it is
Python objects.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t

cimport cython

from fastquorum.kernels.native._layouts cimport CppStructLayout, alike, fill_struct, slot_of

from fastquorum.kernels.messages import ANY_NUMBER, Alike
from fastquorum.types import Uuid


cdef extern from "message_decode.h" namespace "fastquorum":
    PyObject *read_message(
        const CppStructLayout &layout,
        const void *data,
        int64_t size,
        int64_t *position,
        int64_t elements_max,
        PyTypeObject *uuid,
        PyObject *no_tags,
    )


cdef extern from "message_encode.h" namespace "fastquorum":
    PyObject *write_message(const CppStructLayout &layout, PyObject *message)


cdef extern from "Python.h":
    void Py_DECREF(PyObject *)


cdef tuple _no_tags = ()
cdef int64_t _ANY_NUMBER = ANY_NUMBER
cdef PyTypeObject *_uuid = <PyTypeObject *>Uuid
cdef object _written = "written"
alike.type = <PyTypeObject *>Alike
alike.written_slot = slot_of(<PyTypeObject *>Alike, <PyObject *>_written)
assert alike.written_slot >= 0


cdef inline object _owned(PyObject *made):
    """`made` as a reference that Python looks after."""
    cdef object found = <object>made
    Py_DECREF(made)
    return found


cdef void _raise_pending() except *:
    """Raise what C++ left set, if anything (memory was short)."""


@cython.final
cdef class MessageCodec:
    """One message in one version."""

    cdef CppStructLayout _root
    cdef object _layout  # keeps alive what _root points to
    cdef object _twin

    def __cinit__(self, layout, twin):
        self._layout = layout
        self._twin = twin
        fill_struct(&self._root, layout)

    def encode(self, message):
        cdef PyObject *written = write_message(self._root, <PyObject *>message)
        if written != NULL:
            return _owned(written)
        _raise_pending()
        return self._twin.encode(message)

    def decode(self, buffer):
        cdef int64_t position = 0
        cdef int64_t size = 0
        message = self._read(buffer, &position, &size, _ANY_NUMBER)
        if message is None or position != size:
            return self._refuse(self._twin.decode, (buffer,))
        return message

    def decode_prefix(self, buffer, int64_t position=0, int64_t elements_max=_ANY_NUMBER):
        cdef int64_t end = position
        cdef int64_t size = 0
        message = self._read(buffer, &end, &size, elements_max)
        if message is None:
            return self._refuse(self._twin.decode_prefix, (buffer, position, elements_max))
        return message, end

    cdef object _read(self, object buffer, int64_t *position, int64_t *size, int64_t elements_max):
        """The message, or None."""
        cdef PyObject *made
        cdef Py_buffer view
        if type(buffer) is bytes:
            size[0] = PyBytes_GET_SIZE(buffer)
            made = self._read_bytes(PyBytes_AS_STRING(buffer), size[0], position, elements_max)
        else:
            PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
            size[0] = view.len
            made = self._read_bytes(view.buf, view.len, position, elements_max)
            PyBuffer_Release(&view)
        if made != NULL:
            return _owned(made)
        _raise_pending()
        return None

    cdef PyObject *_read_bytes(
        self, const void *data, int64_t size, int64_t *position, int64_t elements_max
    ) noexcept:
        return read_message(self._root, data, size, position, elements_max, _uuid, <PyObject *>_no_tags)

    cdef object _refuse(self, object ask, tuple arguments):
        """Have the twin say what is wrong. Never returns."""
        ask(*arguments)
        raise AssertionError(f"{self._layout.cls.__qualname__}: the native codec refuses what its twin reads")
