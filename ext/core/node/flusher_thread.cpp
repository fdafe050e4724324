#include "flusher_thread.h"

#include <pthread.h>

#include <cerrno>
#include <mutex>
#include <new>

#include "clock.h"
#include "hooks.h"

namespace fastquorum::node {

void FlusherThread::run() {
    pthread_setname_np(pthread_self(), "fq-flusher");
    bool goes_on = true;
    while (goes_on) {
        try {
            goes_on = serve();
        } catch (const std::bad_alloc &) {
            lock_.run_out_of_memory();
        }
    }
}

// Whatever is to be synced. False: nothing will be any more.
bool FlusherThread::serve() {
    for (;;) {
        SyncJob job;
        {
            std::unique_lock guard(lock_.mutex());
            syncs_.wait(guard, [this] { return lock_.is_ending() || syncs_.is_flusher_wanted(); });
            if (!syncs_.take(&job)) {
                if (lock_.is_ending()) return false;
                continue;
            }
        }
        sync(job, Holder::any);
    }
}

void FlusherThread::sync_inline() {
    SyncJob job;
    for (;;) {
        {
            std::lock_guard guard(lock_.mutex());
            if (!syncs_.take_of_follower(&job)) return;
        }
        sync(job, Holder::sockets_thread);
    }
}

// No lock held. After a failed sync nothing is synced any more.
void FlusherThread::sync(const SyncJob &job, Holder holder) {
    if (syncs_.is_held()) {
        std::unique_lock guard(lock_.mutex());
        syncs_.wait(guard, [this] { return lock_.is_ending() || !syncs_.is_held(); });
    }
    int error = lane_.has_failed() ? EIO : hit(Point::before_flush_submit);
    const Nanos began = now_ns();
    for (std::size_t i = 0; i < job.files.size() && error == 0; ++i) error = job.files[i]->sync();
    const Nanos ended = now_ns();
    if (error == 0) error = hit(Point::after_flush_submit);
    hit(Point::after_sync);
    Section section(lock_, holder);
    syncs_.ended();
    lane_.trace().synced(began, ended);
    lane_.synced(job.token, error, now_us());
}

}  // namespace fastquorum::node
