// Who does syncs: a thread that does nothing else, or a follower's sockets' thread. A sync under way is done without the lock: it
// is whoever took the job's, and its files are shared.
#pragma once

#include <thread>

#include "replica_lane.h"
#include "section.h"
#include "sync_queue.h"

namespace fastquorum::node {

class FlusherThread {
   public:
    FlusherThread(LaneLock &lock, ReplicaLane &lane, SyncQueue &syncs) noexcept : lock_(lock), lane_(lane), syncs_(syncs) {}
    FlusherThread(const FlusherThread &) = delete;
    FlusherThread &operator=(const FlusherThread &) = delete;

    // Throws std::system_error where the system has no thread for it.
    void start() { thread_ = std::thread(&FlusherThread::run, this); }

    // Once the lock says that threads are to end: when the sync under way has. Idempotent.
    void join() {
        if (thread_.joinable()) thread_.join();
    }

    // Of the sockets' thread: do a follower's syncs right here.
    void sync_inline();

   private:
    void run();
    bool serve();
    void sync(const SyncJob &job, Holder holder);

    LaneLock &lock_;      // held but while there is nothing to do, and while a sync is under way
    ReplicaLane &lane_;   // it counts what is durable
    SyncQueue &syncs_;    // what is to be done
    std::thread thread_;  // fq-flusher
};

}  // namespace fastquorum::node
