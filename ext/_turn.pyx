"""Appends of one turn of an event loop, gathered: what is done for each of them before the node sees any."""

cimport cython
from cpython.bytes cimport PyBytes_CheckExact
from cpython.list cimport PyList_CheckExact

from fastquorum.kernels.native._outcomes cimport Outcome


@cython.final
cdef class Turn:
    """See `kernels.outcomes.Turn`."""

    cdef object _loop
    cdef object _end_soon
    cdef object _submit
    cdef list _values
    cdef list _outcomes

    def __cinit__(self, loop, end_soon, submit):
        self._loop = loop
        self._end_soon = end_soon
        self._submit = submit
        self._values = []
        self._outcomes = []

    def __len__(self):
        return len(self._values)

    def gather(self, value):
        cdef Outcome outcome
        if PyList_CheckExact(value) and len(<list>value) == 1 and PyBytes_CheckExact((<list>value)[0]):
            value = (<list>value)[0]
        if not PyBytes_CheckExact(value):
            return self._submit(value)
        if not self._values:
            self._end_soon()
        outcome = Outcome.__new__(Outcome, self._loop)
        self._values.append(value)
        self._outcomes.append(outcome)
        return outcome

    def take(self):
        values, self._values = self._values, []
        outcomes, self._outcomes = self._outcomes, []
        return values, outcomes
