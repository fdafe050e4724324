// The lane lock, and one critical section under it.
//
// A `Section` is one critical section: epoch check, offset, write, claim of parked Fetches and sends (rule 3). What it brings
// about for others - a sync to be done, threads to be woken - is done when the lock is free again. Nobody who holds the
// lock ever waits for the GIL.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "hooks.h"
#include "mailbox.h"
#include "news.h"
#include "replica_lane.h"
#include "sockets_wakeup.h"
#include "sync_queue.h"

namespace fastquorum::node {

class Section;

// The mutex, and those that have something to do when it is free again.
class LaneLock {
   public:
    LaneLock(ReplicaLane &lane, NewsQueue &news, SyncQueue &syncs, SocketsWakeup &sockets) noexcept
        : lane_(lane), news_(news), syncs_(syncs), sockets_(sockets) {}
    LaneLock(const LaneLock &) = delete;
    LaneLock &operator=(const LaneLock &) = delete;

    // For what brings nothing about.
    std::mutex &mutex() noexcept { return mutex_; }

    // The one that whoever calls is in.
    Section &section() noexcept { return *section_; }

    // Under the mutex: the native threads are to end.
    void end() noexcept { is_ending_ = true; }
    bool is_ending() const noexcept { return is_ending_; }

    // Of a native thread, without the lock: as a Section that cannot be finished.
    void run_out_of_memory() noexcept;

   private:
    friend class Section;

    ReplicaLane &lane_;           // ends when a Section cannot be finished
    NewsQueue &news_;             // Python is told of these
    SyncQueue &syncs_;            // the flusher does these
    SocketsWakeup &sockets_;      // the sockets' thread looks
    std::mutex mutex_;            // the lane lock
    Section *section_ = nullptr;  // under way; null: none, though the mutex may be held
    bool is_ending_ = false;      // see end()
};

// Which thread is in a Section: the sockets' need not be woken by itself, and a follower's syncs by itself.
enum class Holder { any, sockets_thread };

// One critical section. One that is left by an exception, as there is no memory for what it was about, has ended the replica.
class Section {
   public:
    explicit Section(LaneLock &lock, Holder holder = Holder::any) : lock_(lock), is_sockets_thread_(holder == Holder::sockets_thread) {
        hit(Point::before_lock);
        lock_.mutex_.lock();
        lock_.section_ = this;
    }
    // Only if nobody else is in one: then `is_in` is true.
    Section(LaneLock &lock, std::try_to_lock_t) : lock_(lock), is_in_(lock.mutex_.try_lock()) {
        if (is_in_) lock_.section_ = this;
    }
    Section(const Section &) = delete;
    Section &operator=(const Section &) = delete;
    ~Section() {
        if (!is_in_) return;
        if (std::uncaught_exceptions() > uncaught_) lock_.lane_.lack_memory();
        const bool needs_flusher = lock_.syncs_.needs_flusher(is_sockets_thread_);
        const bool needs_sockets = !is_sockets_thread_ && lock_.sockets_.take_need();
        const bool needs_python = lock_.news_.take_wanted();
        lock_.section_ = nullptr;
        lock_.mutex_.unlock();
        hit(Point::before_wake);
        if (needs_flusher) lock_.syncs_.wake_flusher();
        for (const SlotRef &slot : slots_) slot->wake();
        for (const MailboxRef &box : boxes_) box->signal();
        if (needs_python) lock_.news_.signal();
        if (needs_sockets) lock_.sockets_.signal();
    }

    bool is_in() const noexcept { return is_in_; }

    // A thread or Python is told a result, when the lock is free. The waiter is none any more.
    void post(Waiter &waiter, std::int64_t result) {
        const Trace &trace = lock_.lane_.trace();
        if (waiter.slot) {
            slots_.push_back(waiter.slot);  // first: nothing is told that may have to be told again
            waiter.slot->set(result, trace.stamp(waiter.appended_us), trace.announcements());
            waiter.slot.reset();
        } else {
            boxes_.push_back(waiter.box);
            if (!waiter.box->post(waiter.object, result, trace.stamp(waiter.appended_us), trace.announcements())) boxes_.pop_back();
        }
    }

   private:
    LaneLock &lock_;                                     // taken, but where `is_in_` is false
    const bool is_sockets_thread_ = false;               // see Holder
    const int uncaught_ = std::uncaught_exceptions();    // when it began: one more ends it, and the replica
    const bool is_in_ = true;                            // see is_in()
    std::vector<SlotRef> slots_;                         // of threads to be woken
    std::vector<MailboxRef> boxes_;                      // whose readers are to be woken
};

inline void LaneLock::run_out_of_memory() noexcept {
    Section section(*this, Holder::sockets_thread);
    lane_.lack_memory();
}

}  // namespace fastquorum::node
