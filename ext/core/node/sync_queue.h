// Syncs that are to be done, and since when one is under way. All under the lane lock, but where it says otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "../flusher.h"
#include "clock.h"
#include "limits.h"
#include "replica_lane.h"

namespace fastquorum::node {

// These files, in their order; who wants it knows it by the token.
struct SyncJob {
    std::vector<FileRef> files;
    std::int64_t token = 0;
};

class SyncQueue {
   public:
    explicit SyncQueue(ReplicaLane &lane) noexcept : lane_(lane) {}
    SyncQueue(const SyncQueue &) = delete;
    SyncQueue &operator=(const SyncQueue &) = delete;

    // Of storage.Log, while the log is its own.
    void submit(SyncJob job) {
        submitted_ = std::move(job);
        has_submitted_ = true;
    }

    // Is there something for the flusher? A follower's sockets' thread has nothing else to do: it syncs by itself, which spares two
    // changes of threads.
    bool needs_flusher(bool is_sockets_thread) noexcept {
        if (!has_submitted_ && (!lane_.log().has_job() || (is_sockets_thread && lane_.is_follower()))) return false;
        is_flusher_wanted_ = true;
        return true;
    }
    bool is_flusher_wanted() const noexcept { return is_flusher_wanted_; }

    // What the flusher does next; false: nothing.
    bool take(SyncJob *job) {
        is_flusher_wanted_ = false;
        if (std::exchange(has_submitted_, false)) {
            *job = std::move(submitted_);
            is_flusher_wanted_ = lane_.log().has_job();
        } else if (!lane_.log().take_job(&job->files, &job->token)) {
            return false;
        }
        began_us_.store(now_us(), std::memory_order_relaxed);
        return true;
    }

    // The same for the sockets' thread, of a follower only.
    bool take_of_follower(SyncJob *job) {
        if (!lane_.is_follower() || !lane_.log().take_job(&job->files, &job->token)) return false;
        began_us_.store(now_us(), std::memory_order_relaxed);
        return true;
    }

    void ended() noexcept { began_us_.store(never, std::memory_order_relaxed); }

    // --- from any thread ---------------------------------------------------------------------------------------------

    Micros began_us() const noexcept { return began_us_.load(std::memory_order_relaxed); }

    // Only of a sync that is still under way: it may have ended since its beginning was looked at.
    void watch_again(Micros from_us) noexcept {
        Micros began = began_us();
        while (began != never && !began_us_.compare_exchange_weak(began, from_us, std::memory_order_relaxed)) {
        }
    }

    // A disk that does not answer, for tests.
    void hold(bool hold) noexcept {
        is_held_.store(hold, std::memory_order_relaxed);
        changed_.notify_all();
    }
    bool is_held() const noexcept { return is_held_.load(std::memory_order_relaxed); }

    void wake_flusher() noexcept { changed_.notify_one(); }
    void wake_all() noexcept { changed_.notify_all(); }

    // `guard` holds the lane lock, but while this waits.
    template <typename Condition>
    void wait(std::unique_lock<std::mutex> &guard, Condition condition) {
        changed_.wait(guard, condition);
    }

   private:
    ReplicaLane &lane_;                    // its log wants syncs, too
    SyncJob submitted_;                    // storage.Log's, one at a time
    bool has_submitted_ = false;           // and it is still to be done
    bool is_flusher_wanted_ = false;       // it is to look, or does
    std::atomic<Micros> began_us_{never};  // when the sync under way began; never: none is
    std::atomic<bool> is_held_{false};     // see hold()
    std::condition_variable changed_;      // something is to be synced, no sync is held any more, or the threads end
};

}  // namespace fastquorum::node
