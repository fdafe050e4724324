"""What becomes of what one event loop asked for: shared with the mailbox that tells it."""


cdef class Outcome:
    cdef object _loop
    cdef object _result
    cdef object _error
    cdef bint _is_known
    cdef object _first  # who waits, as nearly always one does
    cdef list _others

    cdef int settle(self, object result, object error, bint in_callback) except -1
    cdef int _tell(self, object who, bint in_callback) except -1
    cdef int _add(self, object who) except -1
    cdef int _forget(self, object waiting) except -1


cdef Outcome new_outcome(object loop)
