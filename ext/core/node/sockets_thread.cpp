#include "sockets_thread.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "clock.h"
#include "hooks.h"
#include "system.h"

namespace fastquorum::node {

namespace {

int timeout_ms(Micros deadline_us) noexcept {
    if (deadline_us == never) return -1;
    const Micros left = deadline_us - now_us();
    return left <= 0 ? 0 : static_cast<int>(std::min<Micros>((left + 999) / 1000, 60000));
}

Micros earlier(Micros deadline_us, Micros other_us) noexcept {
    return other_us != never && (deadline_us == never || other_us < deadline_us) ? other_us : deadline_us;
}

}  // namespace

void SocketsThread::run() {
    pthread_setname_np(pthread_self(), "fq-sockets");
    const std::unique_ptr<std::uint8_t[]> buffer(new (std::nothrow) std::uint8_t[receive_bytes]);
    if (buffer == nullptr) return parts_.lock.run_out_of_memory();
    Micros deadline_us = never;
    bool goes_on = true;
    while (goes_on) {
        try {
            goes_on = serve(buffer.get(), &deadline_us);
        } catch (const std::bad_alloc &) {
            parts_.lock.run_out_of_memory();
        }
    }
}

// One turn: what the quorum lives by, and then a slice of strangers'. False: it was the last.
bool SocketsThread::serve(std::uint8_t *buffer, Micros *deadline_us) {
    epoll_event events[64];
    const int found = await(events, 64, strangers_.is_empty() ? *deadline_us : 0);
    bool are_strangers_ready = !strangers_.is_empty();
    for (int i = 0; i < found; ++i) {
        switch (events[i].data.u64) {
            case control_source: parts_.wakeup.drain(); break;
            case strangers_source: are_strangers_ready = true; break;
            default: on_ready(static_cast<Connection>(events[i].data.u64), events[i].events, buffer);
        }
    }
    if (are_strangers_ready) serve_strangers(buffer);
    return end_turn(deadline_us);
}

// Until a socket has something, or the deadline. A thread that has gone to sleep takes a while to wake up: one that is
// told to looks again and again first, and lets whoever wants the processor have it in between.
int SocketsThread::await(epoll_event *events, int count, Micros deadline_us) const noexcept {
    const EpollSet &first = parts_.connections.first();
    if (parts_.limits.busy_poll_us > 0) {
        const Micros until = now_us() + parts_.limits.busy_poll_us;
        do {
            const int found = first.wait(events, count, 0);
            if (found != 0) return found;
            System::yield();
        } while (now_us() < (deadline_us == never ? until : std::min(until, deadline_us)));
    }
    return first.wait(events, count, timeout_ms(deadline_us));
}

// A slice of what they sent. Those that were found ready and are not in it have their turn before others are looked for.
void SocketsThread::serve_strangers(std::uint8_t *buffer) {
    if (strangers_.is_empty()) {
        strangers_.served = 0;
        strangers_.count = std::max(parts_.connections.strangers().wait(strangers_.events, slice_connections, 0), 0);
    }
    std::int64_t served_bytes = 0;
    while (!strangers_.is_empty() && served_bytes < slice_bytes) {
        const epoll_event &event = strangers_.events[strangers_.served++];
        served_bytes += on_ready(static_cast<Connection>(event.data.u64), event.events, buffer);
    }
}

// What is done when all that was to be served in this turn was. False: it was the last turn.
bool SocketsThread::end_turn(Micros *deadline_us) {
    Section section(parts_.lock, Holder::sockets_thread);
    ReplicaLane &lane = parts_.lane;
    parts_.connections.close_descriptors_of_closed();
    if (parts_.wakeup.take_push()) lane.push();
    if (parts_.lock.is_ending()) {
        parts_.connections.abandon();
        return false;
    }
    *deadline_us = lane.tick();
    parts_.wakeup.set_deadline(*deadline_us);
    parts_.produces.expire(now_us());
    *deadline_us = earlier(*deadline_us, parts_.produces.deadline_us());
    parts_.python_watch.look(now_us());
    *deadline_us = earlier(*deadline_us, parts_.python_watch.deadline_us());
    return true;
}

// The bytes that came, and that left.
std::int64_t SocketsThread::on_ready(Connection number, unsigned mask, std::uint8_t *buffer) {
    ChannelRef channel;
    std::int64_t served_bytes = 0;
    std::int64_t most;
    {
        Section section(parts_.lock, Holder::sockets_thread);
        channel = parts_.connections.share(number);
        if (channel == nullptr || !channel->is_watched()) return 0;
        if (channel->state == ChannelState::connecting) {
            finish_connect(*channel);
            return 0;
        }
        if ((mask & EPOLLOUT) != 0) {
            const std::int64_t owed_bytes = channel->outbox_bytes;
            parts_.connections.sent(*channel, channel->flush(now_us()));
            served_bytes = owed_bytes - channel->outbox_bytes;
        }
        if (!channel->takes_frames() || (mask & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return served_bytes;
        // Since it was found to be ready it has come to owe, or to be owed, too much.
        if (channel->is_paused && (mask & (EPOLLHUP | EPOLLERR)) == 0) return served_bytes;
        most = parts_.connections.receivable_bytes(*channel);
    }
    served_bytes += receive(channel, buffer, most);
    parts_.flusher.sync_inline();
    return served_bytes;
}

void SocketsThread::finish_connect(Channel &channel) {
    channel.connect_error = System::connect_outcome(channel.fd);
    if (channel.connect_error == 0) {
        parts_.connections.connected(channel);
    } else {
        parts_.connections.break_off(channel);
    }
}

// At most so many bytes; those that came.
std::int64_t SocketsThread::receive(const ChannelRef &channel, std::uint8_t *buffer, std::int64_t most) {
    hit(Point::before_receive);
    const ssize_t size = System::receive(channel->fd, buffer, static_cast<std::size_t>(most));
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
    const Micros at_us = now_us();
    bool is_good = size > 0;
    if (is_good) {
        channel->contact_us.store(at_us, std::memory_order_relaxed);
        bool had_frame = false;
        is_good = channel->splitter.feed(buffer, size, [&](Span frame) {
            had_frame = true;
            return on_frame(*channel, frame, at_us);
        });
        if (channel->splitter.is_empty()) {
            channel->partial_since_us.store(never, std::memory_order_relaxed);
        } else if (had_frame || channel->partial_since_us.load(std::memory_order_relaxed) == never) {
            channel->partial_since_us.store(at_us, std::memory_order_relaxed);
        }
        count_partial(*channel, is_good ? channel->splitter.pending_size() : 0);
    }
    if (!is_good) {
        // The end of the stream, in the middle of a frame or not. What was begun is not acted upon.
        Section section(parts_.lock, Holder::sockets_thread);
        if (channel->state == ChannelState::closed) return 0;
        if (size == 0) {
            parts_.connections.end(*channel);  // perhaps of its own half only: what it has asked for is still answered
        } else {
            parts_.connections.break_off(*channel);
        }
    }
    return std::max<std::int64_t>(size, 0);
}

void SocketsThread::count_partial(Channel &channel, std::int64_t size) {
    if (size == 0 && !channel.has_partial()) return;
    channel.set_partial(size);
    Section section(parts_.lock, Holder::sockets_thread);
    parts_.connections.partial_changed(channel);
}

// False: nothing more of this connection is looked at.
bool SocketsThread::on_frame(Channel &channel, Span frame, Micros at_us) {
    Section section(parts_.lock, Holder::sockets_thread);
    if (!channel.takes_frames()) return false;
    channel.seen_frame.store(true, std::memory_order_relaxed);
    ReplicaLane &lane = parts_.lane;
    const bool is_lanes = channel.waiting == 0 && !parts_.news.has_handed_up() && !lane.is_closed() && !lane.is_frozen() &&
                          lane.lane().serves(channel.number);
    if (is_lanes && lane.make_room_for_frame(frame)) {
        lane.serve(channel.number, frame, at_us);
        return true;
    }
    if (parts_.fast_path.take(channel, frame, at_us)) return true;
    Event event{EventKind::frame};
    event.connection = channel.number;
    if (!copied(frame, &event.frame)) {
        parts_.connections.break_off(channel);
        return false;
    }
    ++channel.passed_up;
    parts_.connections.tell_python(channel, std::move(event));
    parts_.connections.count_waiting(channel.number, frame.size);
    return true;
}

}  // namespace fastquorum::node
