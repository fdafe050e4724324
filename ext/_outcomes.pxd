"""What becomes of what one event loop asked for: shared with the mailbox that tells it."""


cdef class Outcome:
    cdef object _loop
    cdef object _result
    cdef object _error
    cdef bint _is_known
    cdef object _first  # who waits, as nearly always one does
    cdef list _others

    cdef bint settle(self, object result, object error, bint at_once) except -1
    cdef bint _tell(self, object who, bint at_once) except -1
    cdef int _add(self, object who) except -1
    cdef int _forget(self, object waiting) except -1
