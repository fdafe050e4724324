// The system calls of the native shell, all but those on files (../file.h): sockets, epoll, eventfd, futex, clocks.
//
// A build for tests replaces them as a whole: it defines FASTQUORUM_SYSTEM_HEADER, a header that declares a `System` with the
// same functions. A function of `System` is inlined like the call itself, so that the hot path pays nothing. A virtual
// interface would cost an indirect call for each of them; a template parameter would make every part of the engine a
// template, and move the threads' code into headers, for a choice that a build makes once.
//
// They answer as Linux does: a negative number and errno, where nothing else is said. Threads, mutexes and what a test has a
// process do (hooks.h) are not in here.
#pragma once

#ifdef FASTQUORUM_SYSTEM_HEADER
#include FASTQUORUM_SYSTEM_HEADER
#else

#include <linux/futex.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace fastquorum::node {

struct System {
    // --- clocks, and the processor -----------------------------------------------------------------------------------

    // CLOCK_BOOTTIME, CLOCK_MONOTONIC or CLOCK_REALTIME.
    static timespec now(clockid_t clock) noexcept {
        timespec time{};
        ::clock_gettime(clock, &time);
        return time;
    }

    static void yield() noexcept { ::sched_yield(); }
    static pid_t process() noexcept { return ::getpid(); }

    // --- descriptors -------------------------------------------------------------------------------------------------

    static int close(int descriptor) noexcept { return ::close(descriptor); }

    static int open_eventfd() noexcept { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
    static void signal(int eventfd) noexcept {
        const std::uint64_t one = 1;
        (void)!::write(eventfd, &one, sizeof one);
    }
    static void drain(int eventfd) noexcept {
        std::uint64_t count;
        (void)!::read(eventfd, &count, sizeof count);
    }

    static int open_epoll() noexcept { return ::epoll_create1(EPOLL_CLOEXEC); }
    static int change_epoll(int epoll, int operation, int descriptor, epoll_event *event) noexcept {
        return ::epoll_ctl(epoll, operation, descriptor, event);
    }
    static int wait_epoll(int epoll, epoll_event *events, int count, int timeout_ms) noexcept {
        return ::epoll_wait(epoll, events, count, timeout_ms);
    }

    // --- sockets: none of these waits --------------------------------------------------------------------------------

    static ssize_t receive(int socket, std::uint8_t *buffer, std::size_t size) noexcept { return ::recv(socket, buffer, size, MSG_DONTWAIT); }
    static ssize_t send(int socket, const std::uint8_t *data, std::size_t size) noexcept {
        return ::send(socket, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    static ssize_t send(int socket, iovec *parts, std::size_t count) noexcept {
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = count;
        return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }

    // What became of connecting: 0, or an errno.
    static int connect_outcome(int socket) noexcept {
        int error = 0;
        socklen_t size = sizeof error;
        sockaddr_storage own{}, peer{};
        socklen_t own_size = sizeof own, peer_size = sizeof peer;
        // The same name at both ends: TCP connected the socket to itself, as it may on a free ephemeral port.
        if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0 ||
            ::getsockname(socket, reinterpret_cast<sockaddr *>(&own), &own_size) != 0 ||
            ::getpeername(socket, reinterpret_cast<sockaddr *>(&peer), &peer_size) != 0 ||
            (own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0))
            return error != 0 ? error : ECONNREFUSED;
        return 0;
    }

    // --- futexes of this process -------------------------------------------------------------------------------------

    // Until somebody wakes it, while `word` is `value`. `until`: by CLOCK_MONOTONIC; null: for ever.
    static long wait_futex(std::atomic<std::uint32_t> *word, std::uint32_t value, const timespec *until) noexcept {
        return futex(word, FUTEX_WAIT_BITSET_PRIVATE, value, until);
    }
    static void wake_futex(std::atomic<std::uint32_t> *word) noexcept { futex(word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr); }

   private:
    static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

    static long futex(std::atomic<std::uint32_t> *word, int operation, std::uint32_t value, const timespec *until) noexcept {
        return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(word), operation, value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
    }
};

}  // namespace fastquorum::node

#endif
