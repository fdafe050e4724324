// The thread that reads from sockets, sends what they had no room for, and keeps the lane's deadlines. No GIL anywhere.
//
// What the quorum lives by goes first. The sockets' thread waits on one epoll set, in which are the connections that voters
// fetch on and those that this node made; all others, strangers', are in a second set inside of it. It serves at most a slice
// of the strangers' before it looks at the first set again, and Python is given at most a slice of theirs at once.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <thread>

#include "append_queue.h"
#include "client_fast_path.h"
#include "connection_table.h"
#include "flusher_thread.h"
#include "limits.h"
#include "news.h"
#include "produce_answers.h"
#include "python_watch.h"
#include "replica_lane.h"
#include "section.h"
#include "sockets_wakeup.h"

namespace fastquorum::node {

// The parts that the thread works on, all of them the engine's.
struct SocketsParts {
    const Limits &limits;
    LaneLock &lock;
    ReplicaLane &lane;
    NewsQueue &news;
    SocketsWakeup &wakeup;
    ConnectionTable &connections;
    ProduceAnswers &produces;
    ClientFastPath &fast_path;
    PythonWatch &python_watch;
    FlusherThread &flusher;
};

class SocketsThread {
   public:
    explicit SocketsThread(const SocketsParts &parts) noexcept : parts_(parts) {}
    SocketsThread(const SocketsThread &) = delete;
    SocketsThread &operator=(const SocketsThread &) = delete;

    // Throws std::system_error where the system has no thread for it.
    void start() { thread_ = std::thread(&SocketsThread::run, this); }

    // Once the lock says that threads are to end, and the wakeup is signalled. Idempotent.
    void join() {
        if (thread_.joinable()) thread_.join();
    }

   private:
    void run();
    bool serve(std::uint8_t *buffer, Micros *deadline_us);
    int await(epoll_event *events, int count, Micros deadline_us) const noexcept;
    void serve_strangers(std::uint8_t *buffer);
    bool end_turn(Micros *deadline_us);
    std::int64_t on_ready(Connection number, unsigned mask, std::uint8_t *buffer);
    void finish_connect(Channel &channel);
    std::int64_t receive(const ChannelRef &channel, std::uint8_t *buffer, std::int64_t most);
    void count_partial(Channel &channel, std::int64_t size);
    bool on_frame(Channel &channel, Span frame, Micros at_us);

    // Strangers' connections that were found to be ready, and how many of them were served.
    struct ReadyStrangers {
        epoll_event events[slice_connections];
        int count = 0;
        int served = 0;

        bool is_empty() const noexcept { return served == count; }
    };

    const SocketsParts parts_;  // under the lane lock
    ReadyStrangers strangers_;  // the thread's own
    std::thread thread_;        // fq-sockets
};

}  // namespace fastquorum::node
