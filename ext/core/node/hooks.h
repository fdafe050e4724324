// Named places of the native shell where a test can have the process die, fail or dawdle. Off, a look at one flag.
//
// The first names are those of node/io/failpoints.py, whose actions they carry out here. Source: FreeBSD's fail(9). The others
// are schedule hooks, outside every lock: places where a thread is overtaken if it dawdles. With `yield` threads do so by
// chance, drawn from a seed, and so tests see schedules that a machine of few cores hardly ever shows.
#pragma once

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <new>

#include "../codes.h"

namespace fastquorum::node {

enum class Point : int {
    before_segment_write,
    after_segment_write,
    before_flush_submit,
    after_flush_submit,
    before_flush_count,
    after_flush_count,
    before_send_fetch_request,
    after_send_fetch_request,
    before_send_fetch_response,
    after_send_fetch_response,
    before_send_produce_response,
    after_send_produce_response,
    before_segment_zero_fill,
    after_segment_zero_fill,
    before_lock,      // the lane lock is about to be taken
    before_wake,      // it is free again; nobody has been told yet
    before_receive,   // bytes have come; nothing is read yet
    after_sync,       // the disk has answered; the lane does not know yet
    before_wait,      // a thread is about to wait in a slot
    memory_for_record,   // here and below: with `eio` there is no memory
    memory_for_waiter,
    memory_for_event,
    memory_for_sync,
    memory_for_connection,
    count,
};

inline constexpr const char *point_names[] = {
    "before-segment-write",      "after-segment-write",      "before-flush-submit",        "after-flush-submit",
    "before-flush-count",        "after-flush-count",        "before-send-fetch-request",  "after-send-fetch-request",
    "before-send-fetch-response", "after-send-fetch-response", "before-send-produce-response", "after-send-produce-response",
    "before-segment-zero-fill",  "after-segment-zero-fill", "before-lock",                "before-wake",
    "before-receive",            "after-sync",              "before-wait",                "memory-for-record",
    "memory-for-waiter",         "memory-for-event",        "memory-for-sync",            "memory-for-connection",
};
static_assert(sizeof point_names / sizeof *point_names == static_cast<std::size_t>(Point::count));

// What is armed. It may change while threads pass: those see the old action or the new one.
struct Armed {
    std::atomic<Action> action{Action::off};
    std::atomic<int> amount{0};             // sleep: milliseconds; yield: the seed
    std::atomic<std::int64_t> only_hit{0};  // 0: every time
    std::atomic<std::int64_t> hits{0};
};

inline Armed armed_points[static_cast<std::size_t>(Point::count)];
inline std::atomic<bool> any_armed{false};

// False: there is no point of that name here.
inline bool arm(const char *name, int action, int amount, std::int64_t only_hit) noexcept {
    for (std::size_t i = 0; i < static_cast<std::size_t>(Point::count); ++i) {
        if (std::strcmp(name, point_names[i]) != 0) continue;
        armed_points[i].amount.store(amount);
        armed_points[i].only_hit.store(only_hit);
        armed_points[i].hits.store(0);
        armed_points[i].action.store(static_cast<Action>(action));
        any_armed.store(true);
        return true;
    }
    return false;
}

inline void pause(long nanoseconds) noexcept {
    timespec left{nanoseconds / 1000000000L, nanoseconds % 1000000000L};
    while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

// Mostly nothing; now and then give the processor away, or sleep for up to a fifth of a millisecond.
inline void dawdle(Point point, int seed, std::int64_t pass) noexcept {
    // splitmix64: which pass of which place dawdles is the seed's choice, whichever thread passes.
    std::uint64_t chance = static_cast<std::uint64_t>(seed) * static_cast<std::uint64_t>(Point::count) + static_cast<std::uint64_t>(point);
    chance = chance * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(pass) * 0xD1B54A32D192ED03u;
    chance = (chance ^ (chance >> 30)) * 0xBF58476D1CE4E5B9u;
    chance = (chance ^ (chance >> 27)) * 0x94D049BB133111EBu;
    chance ^= chance >> 31;
    if (chance % 8 == 0) pause(static_cast<long>(chance >> 40) % 200000);
    if (chance % 8 == 1) ::sched_yield();
}

inline int fire(Point point) noexcept {
    Armed &armed = armed_points[static_cast<std::size_t>(point)];
    const Action action = armed.action.load();
    if (action == Action::off) return 0;
    const std::int64_t hit = armed.hits.fetch_add(1) + 1;
    const std::int64_t only_hit = armed.only_hit.load();
    if (only_hit != 0 && only_hit != hit) return 0;
    if (action == Action::crash) ::kill(::getpid(), SIGKILL);
    if (action == Action::sleep) pause(armed.amount.load() * 1000000L);
    if (action == Action::yield) dawdle(point, armed.amount.load(), hit);
    return action == Action::eio ? EIO : 0;
}

// 0, or the errno that is to be taken for this place's.
inline int hit(Point point) noexcept { return any_armed.load(std::memory_order_relaxed) ? fire(point) : 0; }

// Of a place that allocates, in front of it.
inline void allocate_at(Point point) {
    if (hit(point) != 0) throw std::bad_alloc();
}

}  // namespace fastquorum::node
