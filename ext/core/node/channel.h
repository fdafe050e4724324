// One TCP connection: its frames in, its bytes out, and since when it owes us something.
//
// Reading (`splitter`) belongs to the shell's own thread. Everything else is guarded by the lane lock (one writer a socket).
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "../lane/ports.h"

namespace fastquorum::node {

using lane::Connection;
using lane::Frame;
using lane::Micros;

inline constexpr Micros never = -1;
inline constexpr std::int64_t outbox_bytes_max = 8 * 1024 * 1024;  // what it may be owed beyond one frame; more, and it is closed
inline constexpr std::int64_t pause_bytes = 256 * 1024;  // owed more than this it is not read from: it would only be owed more
inline constexpr std::int64_t length_bytes = 4;

// Cuts a byte stream into frames: an int32 length in front of every message.
class Splitter {
   public:
    explicit Splitter(std::int64_t frame_bytes_max) noexcept : frame_bytes_max_(frame_bytes_max) {}

    bool is_empty() const noexcept { return pending_.empty(); }

    // Calls `take` with every frame completed by `data`, until it answers false. False: the length is one that no frame has.
    template <typename Take>
    bool feed(const std::uint8_t *data, std::int64_t size, Take take) {
        while (size > 0) {
            if (pending_.empty() && size >= length_bytes) {
                const std::int64_t length = load_big_endian<std::int32_t>(data);
                if (length < 0 || length > frame_bytes_max_) return false;
                if (size >= length_bytes + length) {
                    if (!take(Span{data + length_bytes, length})) return true;
                    data += length_bytes + length;
                    size -= length_bytes + length;
                    continue;
                }
                pending_.reserve(static_cast<std::size_t>(length_bytes + length));
            }
            std::int64_t wanted = length_bytes;
            if (pending_size() >= length_bytes) wanted += load_big_endian<std::int32_t>(pending_.data());
            const std::int64_t taken = std::min(size, wanted - pending_size());
            pending_.insert(pending_.end(), data, data + taken);
            data += taken;
            size -= taken;
            if (pending_size() < length_bytes) return true;
            const std::int64_t length = load_big_endian<std::int32_t>(pending_.data());
            if (length < 0 || length > frame_bytes_max_) return false;
            if (pending_size() < length_bytes + length) continue;
            const bool goes_on = take(Span{pending_.data() + length_bytes, length});
            pending_.clear();
            if (pending_.capacity() > keep_bytes) pending_.shrink_to_fit();
            if (!goes_on) return true;
        }
        return true;
    }

   private:
    static constexpr std::size_t keep_bytes = 1024 * 1024;

    std::int64_t pending_size() const noexcept { return static_cast<std::int64_t>(pending_.size()); }

    const std::int64_t frame_bytes_max_;
    std::vector<std::uint8_t> pending_;  // a frame that is not whole yet, its length included
};

struct Channel {
    Channel(Connection its_number, int descriptor, bool is_accepted, std::int64_t frame_bytes_max, Micros now_us)
        : number(its_number), fd(descriptor), accepted(is_accepted), connected(is_accepted), opened_us(now_us), heard_us(now_us), splitter(frame_bytes_max) {}

    bool is_owed() const noexcept { return !outbox.empty(); }

    // Has it not done in time what it began: connecting, its first frame, a frame, or reading our answers?
    bool is_overdue(Micros now_us, Micros partial_us_max, Micros idle_us_max, Micros connect_us_max) const noexcept {
        if (!connected) return now_us - opened_us > connect_us_max;
        const Micros partial = partial_since_us.load(std::memory_order_relaxed);
        if (partial != never && now_us - partial > partial_us_max) return true;
        if (unsent_since_us != never && now_us - unsent_since_us > partial_us_max) return true;
        if (accepted && !seen_frame.load(std::memory_order_relaxed) && now_us - opened_us > partial_us_max) return true;
        return accepted && now_us - heard_us.load(std::memory_order_relaxed) > idle_us_max;
    }

    bool is_pythons() const noexcept { return passed_up != settled || !held.empty(); }

    enum class Sent { all, later, broken };

    // Send one frame, or what the socket takes of it now; the rest is kept.
    Sent transmit(const Frame &frame, Micros now_us) {
        std::uint8_t length[length_bytes];
        store_big_endian(length, static_cast<std::int32_t>(frame.size()));
        if (is_owed() || !connected) return keep(length, frame, 0, now_us);
        iovec parts[4] = {{length, sizeof length}, vector_of(frame.parts[0]), vector_of(frame.parts[1]), vector_of(frame.parts[2])};
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = 4;
        const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return Sent::broken;
        if (sent == length_bytes + frame.size()) return Sent::all;
        return keep(length, frame, sent < 0 ? 0 : sent, now_us);
    }

    // The socket takes more: give it what waits.
    Sent flush(Micros now_us) {
        while (is_owed()) {
            const std::vector<std::uint8_t> &first = outbox.front();
            const ssize_t sent = ::send(fd, first.data() + sent_of_first, first.size() - sent_of_first, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0) {
                if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Sent::later;
                return Sent::broken;
            }
            outbox_bytes -= sent;
            unsent_since_us = now_us;
            sent_of_first += static_cast<std::size_t>(sent);
            if (sent_of_first < first.size()) return Sent::later;
            outbox.pop_front();
            sent_of_first = 0;
        }
        unsent_since_us = never;
        is_lanes_half_sent = false;
        return Sent::all;
    }

    const Connection number;
    int fd;
    const bool accepted;
    bool connected;
    bool broken = false;   // no more is sent; its end is reported, or was
    bool has_ended = false;  // the other side sends no more; it may still read what it asked for
    bool is_closed = false;  // the shell's thread closes the descriptor
    bool is_paused = false;  // not read from until it has taken what it is owed, or Python what it sent
    std::atomic<bool> seen_frame{false};
    // Produces are answered without Python only while Python owes this connection nothing: answers go in the order of requests.
    std::int64_t passed_up = 0;   // frames that Python was given
    std::int64_t settled = 0;     // so many of them it has dealt with for good
    std::int64_t unanswered = 0;  // Produces that wait for their commit here
    std::vector<std::vector<std::uint8_t>> held;  // answers of Python's that wait for theirs
    std::int64_t waiting = 0;  // frames of it that Python has not dealt with: whatever follows them must wait behind
    std::int64_t waiting_bytes = 0;
    unsigned interest = 0;
    const Micros opened_us;
    // Written by the shell's thread without the lock.
    std::atomic<Micros> heard_us;
    std::atomic<Micros> partial_since_us{never};
    std::deque<std::vector<std::uint8_t>> outbox;
    std::size_t sent_of_first = 0;
    std::int64_t outbox_bytes = 0;
    bool is_lanes_half_sent = false;  // a frame of the open lane is in there, whole or in part
    Micros unsent_since_us = never;
    Splitter splitter;

   private:
    static iovec vector_of(Span part) noexcept {
        return {const_cast<std::uint8_t *>(part.data), static_cast<std::size_t>(part.size)};
    }

    // Keep a frame but for its first `sent` bytes.
    Sent keep(const std::uint8_t *length, const Frame &frame, std::int64_t sent, Micros now_us) {
        const std::int64_t size = length_bytes + frame.size() - sent;
        if (is_owed() && outbox_bytes + size > outbox_bytes_max) return Sent::broken;
        std::vector<std::uint8_t> rest;
        rest.reserve(static_cast<std::size_t>(size));
        const Span parts[4] = {{length, length_bytes}, frame.parts[0], frame.parts[1], frame.parts[2]};
        for (const Span &part : parts) {
            const std::int64_t skipped = std::min(sent, part.size);
            sent -= skipped;
            if (part.size > skipped) rest.insert(rest.end(), part.data + skipped, part.data + part.size);
        }
        if (!is_owed()) unsent_since_us = connected ? now_us : never;
        outbox.push_back(std::move(rest));
        outbox_bytes += size;
        return Sent::later;
    }
};

}  // namespace fastquorum::node
