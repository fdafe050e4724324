"""The native twin of `kernels/pure/outcomes.py`: what becomes of an append or a read barrier, awaited in one event loop.

asyncio wakes who awaits a future through the loop: a handle for each, put into its queue and run in its next turn. Where
many are told in one callback of the loop, that is most of what they cost. An outcome told in such a callback goes on with
the task that waits there and then, in the task's own context, as the loop would a moment later. Nobody overtakes: from the
first in such a callback who must go through the loop's queue, all that follow do.
"""

import asyncio
from contextvars import copy_context

cimport cython
from cpython.exc cimport PyErr_Clear


cdef extern from "Python.h":
    int PyContext_Enter(object context)
    int PyContext_Exit(object context) except -1
    object PyObject_CallOneArg(object function, object argument)


cdef bint _enter(context) noexcept:
    """False: it is entered already, by whoever runs the loop."""
    if PyContext_Enter(context) == 0:
        return True
    PyErr_Clear()
    return False


cdef enum _State:
    _WAITS
    _RESUMED
    _CANCELLED


@cython.final
@cython.freelist(256)
cdef class _Waiting:
    """One await. To its task it is a future, as asyncio knows one by `_asyncio_future_blocking`; cancelling the task
    cancels this, and not what others wait for."""

    cdef public bint _asyncio_future_blocking
    cdef Outcome _outcome
    cdef object _wake
    cdef object _context
    cdef object _message
    cdef _State _state

    def __iter__(self):
        return self

    def __next__(self):
        if self._outcome._is_known:
            raise StopIteration(self._outcome.result())
        if self._wake is not None:
            raise RuntimeError("an append or a barrier is awaited in an asyncio task, and went on before it was told")
        self._asyncio_future_blocking = True
        return self

    # --- to the task --------------------------------------------------------------------------------------------------

    def send(self, value):
        return self.__next__()

    def throw(self, kind, value=None, traceback=None):
        raise kind if value is None else value

    def close(self):
        pass

    def get_loop(self):
        return self._outcome._loop

    def add_done_callback(self, wake, *, context=None):
        """The task's, once."""
        if self._wake is not None:
            raise RuntimeError("an await belongs to one task")
        self._wake = wake
        self._context = context
        if self._outcome._is_known:
            self.tell(False)
        else:
            self._outcome._add(self)

    def cancel(self, msg=None):
        if self._state != _WAITS or self._wake is None:
            return False
        self._message = msg
        self._outcome._forget(self)
        self.tell(False)
        self._state = _CANCELLED
        return True

    def result(self):
        if self._state == _CANCELLED:
            if self._message is None:
                raise asyncio.CancelledError
            raise asyncio.CancelledError(self._message)
        return self._outcome.result()

    # --- to the outcome -----------------------------------------------------------------------------------------------

    cdef bint tell(self, bint at_once) except -1:
        """Go on with the task, now or in the loop's next turn; True: now."""
        wake, context = self._wake, self._context
        self._wake = self._context = None
        self._state = _RESUMED
        if at_once and context is not None and _enter(context):
            try:
                PyObject_CallOneArg(wake, self)
            finally:
                PyContext_Exit(context)
            return True
        self._outcome._loop.call_soon(wake, self, context=context)
        return False


@cython.final
cdef class _Callback:
    """Called in the context that it was given in, as asyncio's are."""

    cdef object _callback
    cdef object _context

    cdef int call_soon(self, Outcome outcome) except -1:
        outcome._loop.call_soon(self._callback, outcome, context=self._context)
        return 0


@cython.final
@cython.freelist(256)
cdef class Outcome:
    def __cinit__(self, loop):
        self._loop = loop

    def __await__(self):
        cdef _Waiting waiting = _Waiting.__new__(_Waiting)
        waiting._outcome = self
        return waiting

    def done(self):
        return self._is_known

    def is_awaited(self):
        return self._first is not None or bool(self._others)

    def result(self):
        if not self._is_known:
            raise asyncio.InvalidStateError("its fate is not known yet")
        if self._error is not None:
            raise self._error.with_traceback(None)
        return self._result

    def set_result(self, result, /):
        self.settle(result, None, False)

    def set_exception(self, error, /):
        self.settle(None, error, False)

    def add_done_callback(self, callback):
        cdef _Callback called
        if self._is_known:
            self._loop.call_soon(callback, self)
            return
        called = _Callback.__new__(_Callback)
        called._callback = callback
        called._context = copy_context()
        self._add(called)

    cdef bint settle(self, object result, object error, bint at_once) except -1:
        """True: nobody was put into the loop's queue."""
        if self._is_known:
            raise asyncio.InvalidStateError("its fate is known already")
        self._result = result
        self._error = error
        self._is_known = True
        first, self._first = self._first, None
        others, self._others = self._others, None
        if first is not None:
            at_once = self._tell(first, at_once and not others)
        if others is not None:
            for each in others:
                at_once = self._tell(each, False)
        return at_once

    cdef bint _tell(self, who, bint at_once) except -1:
        if type(who) is _Waiting:
            return (<_Waiting>who).tell(at_once)
        (<_Callback>who).call_soon(self)
        return False

    cdef int _add(self, who) except -1:
        if self._first is None and self._others is None:
            self._first = who
        elif self._others is None:
            self._others = [who]
        else:
            self._others.append(who)
        return 0

    cdef int _forget(self, waiting) except -1:
        if self._first is waiting:
            self._first = None
        else:
            self._others.remove(waiting)
        return 0


def settle_all(outcomes, result, bint at_once=True):
    """Tell those that are not known yet one result. In a callback of the loop, not in a task: tasks go on at once, but where
    `at_once` says that somebody was put into the loop's queue before them. False: now somebody was."""
    cdef Outcome outcome
    untold = list(outcomes)
    untold.reverse()
    try:
        while untold:
            outcome = untold.pop()
            if not outcome._is_known:
                at_once = outcome.settle(result, None, at_once)
    finally:
        # A task that went on has raised what ends a loop: the others go on when it runs again.
        for each in reversed(untold):
            if not each.done():
                each.set_result(result)
    return at_once
