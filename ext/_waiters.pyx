"""The waiters of the native shell: a thread in a slot, or an event loop's objects, which a mailbox hands their results.

Nothing here takes the lane lock; a slot's wait lets go of the GIL.
"""

import copy
import os

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.errno cimport ETIMEDOUT
from libc.stdint cimport int64_t
from libcpp.memory cimport make_shared
from libcpp.vector cimport vector

cimport cython

from fastquorum.kernels.native._outcomes cimport Outcome

from fastquorum.errors import AppendTimeout, ClosedError
from fastquorum.timeouts import wait_s

cdef int64_t _forks = 0


def _forked():
    """In a child: whatever waits was made by its parent."""
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


cdef extern from "Python.h":
    void PyObject_GC_Track(object it)
    void PyObject_GC_UnTrack(object it)


@cython.final
cdef class Slot:
    """What becomes of one append or barrier, for the threads that wait: a `fastquorum.sync.Pending`.

    Whoever has many in flight makes one for each append. So Python's garbage collector does not look at them: it would
    stop the thread that appends for tens of milliseconds now and then. What they refer to refers back to them only
    while they wait for raft/'s decision, and when one is failed with an error; then the collector does look.
    """

    def __cinit__(self, errors=None):
        """`errors.error_of(outcome)` is the error that a negative number stands for."""
        self.slot = make_shared[CppSlot]()
        self._errors = errors
        self._forks = _forks
        PyObject_GC_UnTrack(self)

    def done(self):
        if self.slot.get().is_known():
            return True
        self._check_process()
        return False

    cdef _check_process(self):
        """Raise ClosedError in a forked child: it never learns what was not known at the fork."""
        if self._forks != _forks:
            raise ClosedError(
                "this append was made before fork, and only the parent hears of its fate", "ask for it in the parent"
            )

    @property
    def outcome(self):
        """The offset, or a negative number. Meaningless before it is known."""
        return self.slot.get().result()

    def result(self, timeout=None):
        cdef int64_t outcome
        if not self.slot.get().is_known() and not self.wait(timeout):
            raise AppendTimeout(timeout, True)
        outcome = self.slot.get().result()
        if outcome >= 0:
            return outcome
        # A copy for whoever asks: one that is raised again and again, in many threads, gathers tracebacks.
        raise self._errors.error_of(outcome) if self._error is None else copy.copy(self._error)

    def fail(self, error):
        """It was refused, and no lane knows of it."""
        if self._error is None:
            PyObject_GC_Track(self)  # the error's traceback may lead back here
        self._error = error
        self.set(-1)

    def set(self, int64_t result):
        """For results that no lane tells."""
        self.slot.get().set(result)
        self.slot.get().wake()

    def wait(self, timeout=None):
        """True once it is known; False after `timeout` seconds (None: never). Interrupted by signals, as Python's locks
        are: it goes on for the rest of its time, unless their handlers raise."""
        cdef int error
        cdef int64_t timeout_us = -1 if timeout is None else round(wait_s(timeout) * 1000000)
        cdef int64_t left = timeout_us
        cdef int64_t until = now_ns() // 1000 + timeout_us if timeout_us >= 0 else 0
        if not self.slot.get().is_known():
            self._check_process()
        while True:
            with nogil:
                error = self.slot.get().wait(left)
            if error == 0:
                return True
            if error == ETIMEDOUT:
                return False
            PyErr_CheckSignals()
            if timeout_us >= 0:
                left = max(until - now_ns() // 1000, 0)


@cython.final
cdef class Mailbox:
    """Results for objects, collected by whoever polls `fileno`: one signal for many."""

    def __cinit__(self):
        self.box = make_shared[CppMailbox]()
        if self.box.get().descriptor() < 0:
            raise OSError("no descriptor is left for an eventfd")

    def __dealloc__(self):
        cdef vector[Letter] letters
        cdef size_t i
        if self.box.get() != NULL and self.box.get().is_in_own_process():
            self.box.get().collect(&letters)
            for i in range(letters.size()):
                Py_DECREF(<object>letters[i].object)

    def fileno(self):
        return self.box.get().descriptor()

    def post(self, object waiter, int64_t result):
        """For results that no lane tells."""
        Py_INCREF(waiter)
        if self.box.get().post(<void *><PyObject *>waiter, result):
            self.box.get().signal()

    def collect(self):
        """(object, result) of all that came, in order."""
        cdef vector[Letter] letters
        cdef size_t i
        self.box.get().collect(&letters)
        found = []
        for i in range(letters.size()):
            found.append((<object>letters[i].object, letters[i].result))
            Py_DECREF(<object>letters[i].object)
        return found

    def resolve(self, failed):
        """In a callback of the loop: tell every outcome that came its result; `failed(it, result)` is called where that is
        negative. What is no outcome has a `settle(result, at_once)`: see `settle_all`."""
        cdef vector[Letter] letters
        cdef size_t resolved = 0
        cdef bint at_once = True
        self.box.get().collect(&letters)
        try:
            while resolved < letters.size():
                waiting = <object>letters[resolved].object
                resolved += 1
                Py_DECREF(waiting)
                if letters[resolved - 1].result < 0:
                    at_once = False
                    failed(waiting, letters[resolved - 1].result)
                elif type(waiting) is Outcome:
                    if not (<Outcome>waiting)._is_known:
                        at_once = (<Outcome>waiting).settle(letters[resolved - 1].result, None, at_once)
                else:
                    at_once = waiting.settle(letters[resolved - 1].result, at_once)
        finally:
            # A task that went on has raised what ends a loop: the rest is there when it runs again.
            if resolved < letters.size():
                self.box.get().put_back(letters, resolved)
