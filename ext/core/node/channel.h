// One TCP connection: its frames in, its bytes out, and since when it owes us something.
//
// Reading (`splitter`) belongs to the shell's own thread. Everything else is guarded by the lane lock (one writer a socket).
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <new>
#include <vector>

#include "../lane/ports.h"
#include "crowd.h"
#include "limits.h"
#include "produce.h"
#include "system.h"

namespace fastquorum::node {

using lane::Frame;

// What it may be owed beyond one frame; more, and it is closed. Two of the largest answers leave at once where one waited for the other.
inline constexpr std::int64_t outbox_bytes_max = 24 * 1024 * 1024;
inline constexpr std::int64_t pause_bytes = 256 * 1024;  // owed more than this it is not read from: it would only be owed more
inline constexpr std::int64_t flush_bytes = 256 * 1024;  // sent at once of what it is owed, if others go first
inline constexpr std::int64_t length_bytes = 4;

// Cuts a byte stream into frames: an int32 length in front of every message.
class Splitter {
   public:
    explicit Splitter(std::int64_t frame_bytes_max) noexcept : frame_bytes_max_(frame_bytes_max) {}

    bool is_empty() const noexcept { return pending_.empty(); }
    std::int64_t pending_size() const noexcept { return static_cast<std::int64_t>(pending_.size()); }

    // Of the frame that has begun to come; 0 if there is none, or if its length has not come.
    std::int64_t missing_size() const noexcept {
        if (pending_size() < length_bytes) return 0;
        return length_bytes + load_big_endian<std::int32_t>(pending_.data()) - pending_size();
    }

    // Calls `take` with every frame completed by `data`, until it answers false. False: the length is one that no frame has, or
    // there is no memory for such a frame.
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
                if (!reserve(std::min(size, length_bytes + length), length_bytes + length)) return false;
            }
            std::int64_t wanted = length_bytes;
            if (pending_size() >= length_bytes) wanted += load_big_endian<std::int32_t>(pending_.data());
            const std::int64_t taken = std::min(size, wanted - pending_size());
            if (!reserve(pending_size() + taken, wanted)) return false;
            pending_.insert(pending_.end(), data, data + taken);
            data += taken;
            size -= taken;
            if (pending_size() < length_bytes) return true;
            const std::int64_t length = load_big_endian<std::int32_t>(pending_.data());
            if (length < 0 || length > frame_bytes_max_) return false;
            if (pending_size() < length_bytes + length) continue;
            const bool goes_on = take(Span{pending_.data() + length_bytes, length});
            pending_.clear();
            if (pending_.capacity() > static_cast<std::size_t>(keep_bytes)) pending_.shrink_to_fit();
            if (!goes_on) return true;
        }
        return true;
    }

   private:
    static constexpr std::int64_t keep_bytes = 1024 * 1024;

    // Room for so much of a frame, and for about as much again of what it is to be: announcing much takes no room.
    bool reserve(std::int64_t size, std::int64_t announced) noexcept {
        if (static_cast<std::size_t>(size) <= pending_.capacity()) return true;
        const std::int64_t ahead = std::min(announced, std::max<std::int64_t>(2 * size, crowded_receive_bytes));
        try {
            pending_.reserve(static_cast<std::size_t>(std::max(size, ahead)));
        } catch (const std::bad_alloc &) {
            return false;
        }
        return true;
    }

    const std::int64_t frame_bytes_max_;
    std::vector<std::uint8_t> pending_;  // a frame that is not whole yet, its length included
};

// How far a connection has come. Only an open one is read from; what is sent on one whose other side has ended may still arrive.
enum class ChannelState {
    connecting,  // TCP has not answered
    open,
    ended,    // the other side sends no more; it may still read what it asked for
    refused,  // it was never connected, and will not be; its end is reported
    broken,   // no more is sent, and nothing more comes; its end is reported
    closed,   // Python is rid of it; the sockets' thread closes the descriptor
};

struct Channel {
    Channel(Connection its_number, int descriptor, bool is_accepted, std::int64_t frame_bytes_max, Micros now_us, Crowd &its_crowd)
        : number(its_number), fd(descriptor), accepted(is_accepted),
          state(is_accepted ? ChannelState::open : ChannelState::connecting), opened_us(now_us), contact_us(now_us),
          splitter(frame_bytes_max), crowd(its_crowd) {}
    Channel(const Channel &) = delete;
    Channel &operator=(const Channel &) = delete;

    // May something be sent on it, or kept for it until it can be?
    bool takes_frames() const noexcept {
        switch (state) {
            case ChannelState::connecting:
            case ChannelState::open:
            case ChannelState::ended: return true;
            case ChannelState::refused:
            case ChannelState::broken:
            case ChannelState::closed: return false;
        }
        __builtin_unreachable();
    }

    // May something come of it? It is in an epoll set so long.
    bool is_watched() const noexcept {
        switch (state) {
            case ChannelState::connecting:
            case ChannelState::open: return true;
            case ChannelState::ended:
            case ChannelState::refused:
            case ChannelState::broken:
            case ChannelState::closed: return false;
        }
        __builtin_unreachable();
    }

    // Has TCP never connected it?
    bool is_unconnected() const noexcept { return state == ChannelState::connecting || state == ChannelState::refused; }

    bool is_owed() const noexcept { return !outbox.empty(); }

    // Answers kept for it: what its socket has not taken, and what waits behind others.
    std::int64_t owed_bytes() const noexcept { return outbox_bytes + held_bytes; }

    // Is it owed so much that no more answers are to be made for it?
    bool is_owed_enough() const noexcept { return owed_bytes() > (crowd.owed_bytes > crowd_bytes ? 0 : pause_bytes); }

    // Others go first, if the node keeps too much.
    bool yields() const noexcept { return accepted && !is_favoured; }

    // Must it wait until others have been dealt with?
    bool waits_in_crowd() const noexcept { return crowd.is_full() && yields() && (owed_bytes() > 0 || waiting > 0 || has_partial()); }

    bool has_partial() const noexcept { return partial_bytes.load(std::memory_order_relaxed) > 0; }

    // An answer that waits for those before it. False: it is not kept.
    bool hold(Span frame) noexcept {
        if (held_bytes > 0 && (held_bytes + frame.size > outbox_bytes_max || (crowd.is_full() && yields()))) return false;
        try {
            held.emplace_back(frame.data, frame.data + frame.size);
        } catch (const std::bad_alloc &) {
            return false;
        }
        held_bytes += frame.size;
        crowd.owed_bytes += frame.size;
        return true;
    }

    std::vector<std::vector<std::uint8_t>> take_held() noexcept {
        std::vector<std::vector<std::uint8_t>> taken;
        taken.swap(held);
        crowd.owed_bytes -= held_bytes;
        held_bytes = 0;
        return taken;
    }

    // Nothing is owed any more.
    void let_go() noexcept {
        take_held();
        produces.clear();
        crowd.owed_bytes -= outbox_bytes;
        outbox.clear();
        outbox_bytes = 0;
        unsent_since_us = never;
    }

    // The sockets' thread's: how much of a frame has come.
    void set_partial(std::int64_t size) noexcept {
        crowd.partial_bytes.fetch_add(size - partial_bytes.load(std::memory_order_relaxed), std::memory_order_relaxed);
        partial_bytes.store(size, std::memory_order_relaxed);
    }

    // Has it not done in time what it began: connecting, its first frame, a frame, or reading our answers?
    bool is_overdue(Micros now_us, Micros partial_us_max, Micros idle_us_max, Micros connect_us_max) const noexcept {
        if (is_unconnected()) return now_us - opened_us > connect_us_max;
        const Micros partial = partial_since_us.load(std::memory_order_relaxed);
        if (partial != never && now_us - partial > partial_us_max) return true;
        if (unsent_since_us != never && now_us - unsent_since_us > partial_us_max) return true;
        if (accepted && !seen_frame.load(std::memory_order_relaxed) && now_us - opened_us > partial_us_max) return true;
        return accepted && now_us - contact_us.load(std::memory_order_relaxed) > idle_us_max;
    }

    // How many Produces were answered before: the number of the first one that waits.
    std::int64_t produces_answered() const noexcept { return produces_taken - static_cast<std::int64_t>(produces.size()); }

    bool is_pythons() const noexcept { return passed_up != settled || !held.empty(); }

    enum class Sent { all, later, broken };

    // Send one frame, or what the socket takes of it now; the rest is kept.
    Sent transmit(const Frame &frame, Micros now_us) {
        std::uint8_t length[length_bytes];
        store_big_endian(length, static_cast<std::int32_t>(frame.size()));
        if (is_owed() || state == ChannelState::connecting) return keep(length, frame, 0, now_us);
        iovec parts[4] = {{length, sizeof length}, vector_of(frame.parts[0]), vector_of(frame.parts[1]), vector_of(frame.parts[2])};
        const ssize_t sent = System::send(fd, parts, 4);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return Sent::broken;
        if (sent == length_bytes + frame.size()) return Sent::all;
        return keep(length, frame, sent < 0 ? 0 : sent, now_us);
    }

    // The socket takes more: give it what waits, or some of it, if others go first.
    Sent flush(Micros now_us) {
        const std::int64_t least_bytes = yields() ? outbox_bytes - flush_bytes : 0;
        while (is_owed()) {
            if (outbox_bytes <= least_bytes) return Sent::later;
            const std::vector<std::uint8_t> &first = outbox.front();
            const ssize_t sent = System::send(fd, first.data() + sent_of_first, first.size() - sent_of_first);
            if (sent < 0) {
                if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Sent::later;
                return Sent::broken;
            }
            outbox_bytes -= sent;
            crowd.owed_bytes -= sent;
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
    ChannelState state;
    int connect_error = 0;  // an errno, of one that was refused
    bool is_paused = false;  // not read from until it has taken what it is owed, or Python what it sent
    bool is_favoured = false;  // a voter's
    bool is_drain_wanted = false;  // Python waits until it is not owed enough any more
    std::atomic<bool> seen_frame{false};
    // Produces are answered without Python only while Python owes this connection nothing: answers go in the order of requests.
    std::int64_t passed_up = 0;   // frames that Python was given
    std::int64_t settled = 0;     // so many of them it has dealt with for good
    std::deque<WaitingProduce> produces;  // that wait for their commit here, in their order
    std::int64_t produces_taken = 0;      // so many came to wait so far
    Micros produces_due_us = never;       // as ProduceDeadlines has it
    std::vector<std::vector<std::uint8_t>> held;  // answers of Python's that wait for theirs
    std::int64_t held_bytes = 0;
    std::int64_t waiting = 0;  // frames of it that Python has not dealt with: whatever follows them must wait behind
    std::int64_t waiting_bytes = 0;
    unsigned interest = 0;
    const Micros opened_us;
    // Written by the shell's thread without the lock.
    std::atomic<Micros> contact_us;
    std::atomic<Micros> partial_since_us{never};
    std::atomic<std::int64_t> partial_bytes{0};
    std::deque<std::vector<std::uint8_t>> outbox;
    std::size_t sent_of_first = 0;
    std::int64_t outbox_bytes = 0;
    bool is_lanes_half_sent = false;  // a frame of the open lane is in there, whole or in part
    Micros unsent_since_us = never;
    Splitter splitter;
    Crowd &crowd;

   private:
    static iovec vector_of(Span part) noexcept {
        return {const_cast<std::uint8_t *>(part.data), static_cast<std::size_t>(part.size)};
    }

    // Keep a frame but for its first `sent` bytes.
    Sent keep(const std::uint8_t *length, const Frame &frame, std::int64_t sent, Micros now_us) {
        const std::int64_t size = length_bytes + frame.size() - sent;
        if (is_owed() && outbox_bytes + size > outbox_bytes_max) return Sent::broken;
        if (crowd.is_full() && yields()) return Sent::broken;
        std::vector<std::uint8_t> *place;
        try {
            place = &outbox.emplace_back();
            place->reserve(static_cast<std::size_t>(size));
        } catch (const std::bad_alloc &) {
            return Sent::broken;
        }
        std::vector<std::uint8_t> &rest = *place;
        const Span parts[4] = {{length, length_bytes}, frame.parts[0], frame.parts[1], frame.parts[2]};
        for (const Span &part : parts) {
            const std::int64_t skipped = std::min(sent, part.size);
            sent -= skipped;
            if (part.size > skipped) rest.insert(rest.end(), part.data + skipped, part.data + part.size);
        }
        if (outbox.size() == 1) unsent_since_us = state == ChannelState::connecting ? never : now_us;
        outbox_bytes += size;
        crowd.owed_bytes += size;
        return Sent::later;
    }
};

}  // namespace fastquorum::node
