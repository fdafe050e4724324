// A node's connections: what is sent on them, which of them are read from, and what Python hears of their ends.
//
// All under the lane lock, but for the two epoll sets, which the sockets' thread waits on without it. In the first are the
// connections that voters fetch on and those that this node made; all others, strangers', are in the second, inside of it.
#pragma once

#include <sys/epoll.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel.h"
#include "clock.h"
#include "crowd.h"
#include "epoll_set.h"
#include "events.h"
#include "hooks.h"
#include "limits.h"
#include "news.h"
#include "produce_deadlines.h"
#include "sockets_wakeup.h"
#include "system.h"

namespace fastquorum::node {

using ChannelRef = std::shared_ptr<Channel>;

inline constexpr std::uint64_t control_source = 0;  // in an epoll set, where connections have their numbers
inline constexpr std::uint64_t strangers_source = ~std::uint64_t{0};

class ConnectionTable {
   public:
    ConnectionTable(std::int64_t frame_bytes_max, NewsQueue &news, SocketsWakeup &sockets) noexcept
        : frame_bytes_max_(frame_bytes_max), news_(news), sockets_(sockets) {}
    ConnectionTable(const ConnectionTable &) = delete;
    ConnectionTable &operator=(const ConnectionTable &) = delete;
    ~ConnectionTable() { close_descriptors(); }  // of what came, or was closed, after the threads had ended

    // False: see errno.
    bool open() noexcept {
        return first_.open() && strangers_.open() && first_.change(EPOLL_CTL_ADD, sockets_.descriptor(), EPOLLIN, control_source) == 0 &&
               first_.change(EPOLL_CTL_ADD, strangers_.descriptor(), EPOLLIN, strangers_source) == 0;
    }

    // What the quorum lives by, the strangers' set and the wakeup.
    const EpollSet &first() const noexcept { return first_; }
    const EpollSet &strangers() const noexcept { return strangers_; }

    // In a forked child: only descriptors are let go of.
    void abandon_in_child() noexcept {
        close_descriptors();  // of those being closed too: the parent's thread closes its own
        first_.close();
        strangers_.close();
    }

    std::size_t size() const noexcept { return channels_.size(); }

    Channel *find(Connection connection) const noexcept {
        const auto found = channels_.find(connection);
        return found == channels_.end() ? nullptr : found->second.get();
    }

    // For what goes on when the lock is free, as it may be closed then; null: there is none.
    ChannelRef share(Connection connection) const noexcept {
        const auto found = channels_.find(connection);
        return found == channels_.end() ? nullptr : found->second;
    }

    // Of those whose first waiting Produce is due some time: whatever changes the Produces of a channel notes it here.
    ProduceDeadlines &produce_deadlines() noexcept { return produce_deadlines_; }

    // --- its coming and going ----------------------------------------------------------------------------------------

    // Take over a socket, non-blocking; 0 or an errno, and the socket is still the caller's then.
    int add(Connection number, int descriptor, bool is_accepted, Micros at_us) {
        Channel *channel;
        try {
            allocate_at(Point::memory_for_connection);
            channel = channels_.emplace(number, std::make_shared<Channel>(number, descriptor, is_accepted, frame_bytes_max_, at_us, crowd_))
                          .first->second.get();
        } catch (const std::bad_alloc &) {
            return ENOMEM;
        }
        channel->interest = is_accepted ? EPOLLIN : EPOLLOUT;
        if (watch(*channel, EPOLL_CTL_ADD) == 0) return 0;
        const int error = errno;
        channels_.erase(number);
        return error;
    }

    // TCP has connected it.
    void connected(Channel &channel) {
        channel.state = ChannelState::open;
        channel.contact_us.store(now_us(), std::memory_order_relaxed);
        set_interest(channel);
        report(EventKind::connected, channel);
    }

    // A voter's: it is read from and sent to whatever is kept for others, and before them.
    void favour(Connection connection) {
        Channel *channel = find(connection);
        if (channel == nullptr || !channel->yields()) return;
        if (channel->is_watched()) watch(*channel, EPOLL_CTL_DEL);
        channel->is_favoured = true;
        news_.favour(connection);
        if (channel->is_watched() && watch(*channel, EPOLL_CTL_ADD) != 0) break_off(*channel);
    }

    // Nothing more comes. Python is told, behind what came before, and closes it.
    void end(Channel &channel) {
        if (!channel.is_watched()) return;
        channel.state = ChannelState::ended;
        lose(channel);
    }

    // Nothing is sent on it any more, and its end is reported.
    void break_off(Channel &channel) {
        if (!channel.takes_frames()) return;
        const bool was_watched = channel.is_watched();
        channel.state = channel.state == ChannelState::connecting ? ChannelState::refused : ChannelState::broken;
        channel.let_go();
        if (was_watched) lose(channel);
        regard_crowd();
    }
    void break_off(Connection connection) {
        if (Channel *channel = find(connection)) break_off(*channel);
    }

    // What a lane that ends has sent and a socket has not taken yet must not leave later (rule 3): such a connection is given up.
    void break_off_half_sent() {
        for (auto &[number, channel] : channels_)
            if (channel->is_lanes_half_sent) break_off(*channel);
    }

    // Close; no report follows.
    void close(Connection connection) {
        const auto found = channels_.find(connection);
        if (found == channels_.end()) return;
        // At once, as the descriptor lives on in a forked child: nothing of it is to be reported any more.
        if (found->second->is_watched()) watch(*found->second, EPOLL_CTL_DEL);
        found->second->state = ChannelState::closed;
        found->second->let_go();
        produce_deadlines_.forget(*found->second);
        for (const Event &event : news_.take_strangers(connection))
            if (event.kind == EventKind::frame) crowd_.waiting_bytes -= waiting_size(static_cast<std::int64_t>(event.frame.size()));
        closing_.push_back(std::move(found->second));
        channels_.erase(found);
        regard_crowd();
        sockets_.want();
    }

    // The last words of those that have some go out as far as their sockets take them; then all are closed.
    void close_all(Micros at_us) {
        while (!channels_.empty()) {
            Channel &channel = *channels_.begin()->second;
            if (channel.takes_frames() && channel.state != ChannelState::connecting) channel.flush(at_us);
            close(channel.number);
        }
    }

    // The sockets' thread's: nobody reads from those any more that were closed.
    void close_descriptors_of_closed() {
        for (const ChannelRef &channel : std::exchange(closing_, {})) {
            channel->set_partial(0);
            System::close(channel->fd);
        }
        regard_crowd();
    }

    // The threads end: all are closed, and nobody is told.
    void abandon() noexcept {
        for (auto &[number, channel] : channels_) System::close(channel->fd);
        channels_.clear();
    }

    // --- what is sent ------------------------------------------------------------------------------------------------

    void transmit(Channel &channel, const Frame &frame) {
        if (!channel.takes_frames()) return;
        sent(channel, channel.transmit(frame, now_us()));
    }
    void transmit(Connection connection, const Frame &frame) {
        if (Channel *channel = find(connection)) transmit(*channel, frame);
    }

    // What became of something that was to be sent.
    void sent(Channel &channel, Channel::Sent outcome) {
        if (outcome == Channel::Sent::broken) {
            break_off(channel);
        } else {
            set_interest(channel);
            regard_crowd();
        }
    }

    // Is the connection owed so much that no more answers are to be made for it? Then it is reported as drained when that has
    // changed.
    bool needs_drain(Connection connection) noexcept {
        Channel *channel = find(connection);
        if (channel != nullptr) channel->is_drain_wanted = channel->is_owed_enough();
        return channel != nullptr && channel->is_drain_wanted;
    }

    bool is_crowded() const noexcept { return crowd_.owed_bytes > crowd_bytes; }

    // --- what comes --------------------------------------------------------------------------------------------------

    // Python is told, of strangers' behind what the quorum lives by.
    void tell_python(const Channel &channel, Event event) {
        allocate_at(Point::memory_for_event);
        if (channel.yields()) {
            news_.push_strangers(std::move(event));
        } else {
            news_.push(std::move(event));
        }
    }

    // One more frame of it waits for Python.
    void count_waiting(Connection connection, std::int64_t size) {
        crowd_.waiting_bytes += waiting_size(size);
        if (Channel *channel = find(connection)) {
            ++channel->waiting;
            channel->waiting_bytes += waiting_size(size);
            set_interest(*channel);
        }
        regard_crowd();
    }

    // Frames that were taken are dealt with: their connections' next ones need not wait behind them.
    void frames_done(const std::vector<DoneFrame> &frames) {
        for (const auto &[connection, size] : frames) {
            crowd_.waiting_bytes -= waiting_size(size);
            Channel *channel = find(connection);
            if (channel == nullptr) continue;
            --channel->waiting;
            channel->waiting_bytes -= waiting_size(size);
            set_interest(*channel);
        }
        regard_crowd();
    }

    // So much of a frame of it has come.
    void partial_changed(Channel &channel) {
        set_interest(channel);
        regard_crowd();
    }

    // How much may be read of it at once. Strangers' frames may be small, and many: of these a slice.
    std::int64_t receivable_bytes(const Channel &channel) const noexcept {
        const std::int64_t most = crowd_.is_full() ? crowded_receive_bytes : receive_bytes;
        const std::int64_t slice = crowd_.is_full() ? crowded_slice_bytes : slice_bytes;
        return channel.yields() ? std::min(most, std::max(slice, channel.splitter.missing_size())) : most;
    }

    // Have it watched for what it is wanted for: to be read from, unless too much is kept of it, and to take what it is owed.
    void set_interest(Channel &channel) {
        if (!channel.is_watched()) return;
        if (channel.is_drain_wanted && !channel.is_owed_enough()) {
            channel.is_drain_wanted = false;
            report(EventKind::drained, channel);
        }
        unsigned wanted = EPOLLOUT;
        if (channel.state == ChannelState::open) {
            const std::int64_t most = crowd_.waiting_bytes < crowd_bytes ? waiting_max : 1;
            channel.is_paused = channel.owed_bytes() > pause_bytes || channel.waiting >= most || channel.waiting_bytes >= waiting_bytes_max ||
                                channel.waits_in_crowd();
            wanted = (channel.is_paused ? 0u : static_cast<unsigned>(EPOLLIN)) | (channel.is_owed() ? static_cast<unsigned>(EPOLLOUT) : 0u);
        }
        if (wanted == channel.interest) return;
        channel.interest = wanted;
        watch(channel, EPOLL_CTL_MOD);
    }

    // --- those that are late -----------------------------------------------------------------------------------------

    std::vector<Connection> overdue(Micros at_us, Micros partial_us_max, Micros idle_us_max, Micros connect_us_max) const {
        std::vector<Connection> found;
        for (const auto &[number, channel] : channels_)
            if (channel->is_overdue(at_us, partial_us_max, idle_us_max, connect_us_max)) found.push_back(number);
        return found;
    }

    // The accepted connection that has been silent longest, if for so long at least, but for voters'; no_connection if none has.
    Connection oldest_silent(Micros at_us, Micros silent_us_min) const noexcept {
        const Channel *oldest = nullptr;
        for (const auto &[number, channel] : channels_) {
            const Micros contact_us = channel->contact_us.load(std::memory_order_relaxed);
            if (channel->yields() && at_us - contact_us >= silent_us_min &&
                (oldest == nullptr || contact_us < oldest->contact_us.load(std::memory_order_relaxed)))
                oldest = channel.get();
        }
        return oldest == nullptr ? lane::no_connection : oldest->number;
    }

   private:
    // Of one that nothing comes of any more, whose state says so already.
    void lose(Channel &channel) {
        // It must not be reported again and again.
        watch(channel, EPOLL_CTL_DEL);
        report(EventKind::lost, channel);
    }

    // What is kept of all connections has changed.
    void regard_crowd() {
        if (!crowd_.regard()) return;
        for (auto &[number, channel] : channels_) set_interest(*channel);
    }

    // In the set that it belongs to, with the interest that it has. 0, or not; see errno.
    int watch(const Channel &channel, int operation) const noexcept {
        const EpollSet &set = channel.yields() ? strangers_ : first_;
        return set.change(operation, channel.fd, channel.interest, static_cast<std::uint64_t>(channel.number));
    }

    void report(EventKind kind, const Channel &channel) {
        Event event{kind};
        event.connection = channel.number;
        event.error = channel.connect_error;
        tell_python(channel, std::move(event));
    }

    void close_descriptors() noexcept {
        for (const ChannelRef &channel : closing_) System::close(channel->fd);
        for (const auto &[number, channel] : channels_) System::close(channel->fd);
    }

    const std::int64_t frame_bytes_max_;                   // of one frame, in bytes without its length
    NewsQueue &news_;                                      // told what came, and of ends
    SocketsWakeup &sockets_;                               // its thread closes descriptors
    EpollSet first_;                                       // what the quorum lives by, and the next
    EpollSet strangers_;                                   // all others
    Crowd crowd_;                                          // channels count in it, and go before it
    std::unordered_map<Connection, ChannelRef> channels_;  // all that are not closed, by their numbers
    std::vector<ChannelRef> closing_;                      // closed, but for their descriptors, which the sockets' thread may be reading
    ProduceDeadlines produce_deadlines_;                   // see produce_deadlines()
};

}  // namespace fastquorum::node
