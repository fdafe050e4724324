"""Heartbeats that are answered without Python (ext/core/node/beats.h), for Cython."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from fastquorum.kernels.native._lane cimport Span


cdef extern from "node/beats.h" namespace "fastquorum::node" nogil:
    const int64_t beat_answer_bytes_min
    const int64_t beat_answer_bytes_max

    cdef cppclass CppSteadyBeat "fastquorum::node::SteadyBeat":
        CppSteadyBeat() noexcept
        int32_t broker_id
        int64_t broker_epoch
        int16_t version
        int64_t metadata_offset_min
        string wishes
        string answer

    cdef cppclass CppAnsweredBeat "fastquorum::node::AnsweredBeat":
        int32_t broker_id
        int64_t broker_epoch
        int64_t contact_us
        int64_t metadata_offset

    cdef cppclass BeatAnswer:
        BeatAnswer() noexcept
        uint8_t *bytes
        int64_t size

    cdef cppclass CppSteadyBeats "fastquorum::node::SteadyBeats":
        CppSteadyBeats() except +
        void begin(int32_t leader_epoch) noexcept
        void keep(CppSteadyBeat beat) except +
        void forget(int32_t broker_id) noexcept
        void forget_all() noexcept
        cbool answer(Span frame, int32_t leader_epoch, int64_t now_us, BeatAnswer *answer) except +
        vector[CppAnsweredBeat] take_answered() except +


ctypedef shared_ptr[CppSteadyBeats] SteadyBeatsRef


cdef class SteadyBeats:
    cdef SteadyBeatsRef beats  # never null; shared with the native shell, which answers without the GIL
