// How soon a thread runs when it is woken while others compute.
#pragma once

#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

namespace fastquorum {

// A thread that works for some microseconds at a time asks for the shortest slice there is: from Linux 6.12 on it then
// takes the processor, when it is woken, from one that computes with a slice of milliseconds (EEVDF, PREEMPT_SHORT). Its
// share of the processor stays as it was, and nobody needs a privilege for it. Where the kernel is older or refuses, it
// waits as all others do: there is nothing to report. Source: sched_setattr(2), Documentation/scheduler/sched-eevdf.rst.
inline void run_promptly() noexcept {
    struct {
        std::uint32_t size;
        std::uint32_t policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime_ns;
        std::uint64_t deadline_ns;
        std::uint64_t period_ns;
    } attributes{};
    attributes.size = sizeof attributes;
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    constexpr std::uint32_t sched_other = 0;
    constexpr std::uint64_t shortest_slice_ns = 100'000;
    if (attributes.policy != sched_other) return;  // somebody chose: real time, batch, idle
    attributes.size = sizeof attributes;
    attributes.flags = 0;
    attributes.runtime_ns = shortest_slice_ns;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace fastquorum
