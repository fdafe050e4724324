// Named places of the native shell where a test can have the process die, fail or dawdle. Off, a look at one flag.
//
// The names are those of node/io/failpoints.py, whose actions they carry out here. Source: FreeBSD's fail(9).
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

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
    count,
};

inline constexpr const char *point_names[] = {
    "before-segment-write",      "after-segment-write",      "before-flush-submit",        "after-flush-submit",
    "before-flush-count",        "after-flush-count",        "before-send-fetch-request",  "after-send-fetch-request",
    "before-send-fetch-response", "after-send-fetch-response",
};
static_assert(sizeof point_names / sizeof *point_names == static_cast<std::size_t>(Point::count));

enum class Action : int { off, crash, eio, sleep };

// What is armed. Set before a node starts, read by all threads; only `hits` changes then.
struct Armed {
    Action action = Action::off;
    int sleep_ms = 0;
    std::int64_t only_hit = 0;  // 0: every time
    std::atomic<std::int64_t> hits{0};
};

inline Armed armed_points[static_cast<std::size_t>(Point::count)];
inline std::atomic<bool> any_armed{false};

// False: there is no point of that name here.
inline bool arm(const char *name, int action, int sleep_ms, std::int64_t only_hit) noexcept {
    for (std::size_t i = 0; i < static_cast<std::size_t>(Point::count); ++i) {
        if (std::strcmp(name, point_names[i]) != 0) continue;
        armed_points[i].action = static_cast<Action>(action);
        armed_points[i].sleep_ms = sleep_ms;
        armed_points[i].only_hit = only_hit;
        armed_points[i].hits.store(0);
        any_armed.store(true);
        return true;
    }
    return false;
}

inline int fire(Point point) noexcept {
    Armed &armed = armed_points[static_cast<std::size_t>(point)];
    if (armed.action == Action::off) return 0;
    const std::int64_t hit = armed.hits.fetch_add(1) + 1;
    if (armed.only_hit != 0 && armed.only_hit != hit) return 0;
    if (armed.action == Action::crash) ::kill(::getpid(), SIGKILL);
    if (armed.action == Action::sleep) {
        timespec left{armed.sleep_ms / 1000, (armed.sleep_ms % 1000) * 1000000L};
        while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
    }
    return armed.action == Action::eio ? EIO : 0;
}

// 0, or the errno that is to be taken for this place's.
inline int hit(Point point) noexcept { return any_armed.load(std::memory_order_relaxed) ? fire(point) : 0; }

}  // namespace fastquorum::node
