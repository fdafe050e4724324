"""What waits for an append or a barrier (ext/core/node/mailbox.h), for Cython."""

from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector


cdef extern from "node/mailbox.h" namespace "fastquorum::node" nogil:
    int64_t now_ns() noexcept

    cdef cppclass CppSlot "fastquorum::node::Slot":
        cbool is_known() noexcept
        void set(int64_t result) noexcept
        void wake() noexcept
        int64_t result() noexcept
        int wait(int64_t timeout_us) noexcept

    cdef cppclass Letter "fastquorum::node::Mailbox::Letter":
        void *object
        int64_t result

    cdef cppclass CppMailbox "fastquorum::node::Mailbox":
        int descriptor() noexcept
        cbool is_in_own_process() noexcept
        cbool post(void *object, int64_t result) except +
        void signal() noexcept
        void collect(vector[Letter] *letters) noexcept
        void put_back(vector[Letter] &letters, size_t first) except +

    cdef cppclass Waiter:
        Waiter() noexcept
        shared_ptr[CppSlot] slot
        shared_ptr[CppMailbox] box
        void *object


cdef class Slot:
    cdef shared_ptr[CppSlot] slot
    cdef object _errors
    cdef object _error
    cdef int64_t _forks

    cdef _check_process(self)


cdef class Mailbox:
    cdef shared_ptr[CppMailbox] box
