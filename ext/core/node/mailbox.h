// What waits for an append or a barrier, and how it is told: a thread in a futex, Python by one eventfd a group, or a producer
// by a response.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <vector>

#include "../lane/ports.h"
#include "event_fd.h"
#include "hooks.h"
#include "produce.h"
#include "system.h"
#include "trace.h"

namespace fastquorum::node {

// One thread's wait. Whoever posts it holds no lock; it is posted once.
class Slot {
   public:
    static constexpr std::uint32_t waiting = 0, known = 1;

    // Under the lane lock; `wake` follows when that is released. `announcements` measures how long it takes until the thread knows.
    void set(std::int64_t result, Stamp its_stamp = {}, const AnnouncementsRef &announcements = nullptr) noexcept {
        result_ = result;
        stamp_ = its_stamp;
        if (its_stamp.appended_us != 0) announcements_ = announcements;
        // Not `release` alone: `wake` must not look for sleepers before this is seen, or one of them sleeps on for ever.
        state_.store(known, std::memory_order_seq_cst);
    }

    void wake() noexcept {
        if (sleepers_.load(std::memory_order_seq_cst) > 0) {
            System::wake_futex(&state_);
        } else {
            tell();  // nobody has to be woken: whoever looks knows it now
        }
    }

    bool is_known() const noexcept { return state_.load(std::memory_order_seq_cst) == known; }
    std::int64_t result() const noexcept { return result_; }

    // 0: it is known; else ETIMEDOUT or EINTR. `timeout_us` < 0: for ever.
    int wait(std::int64_t timeout_us) noexcept {
        timespec until{};
        if (timeout_us >= 0) {
            until = System::now(CLOCK_MONOTONIC);
            until.tv_sec += timeout_us / 1000000;
            until.tv_nsec += (timeout_us % 1000000) * 1000;
            if (until.tv_nsec >= 1000000000) {
                ++until.tv_sec;
                until.tv_nsec -= 1000000000;
            }
        }
        int error = 0;
        hit(Point::before_wait);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        while (!is_known() && error != ETIMEDOUT && error != EINTR)
            error = System::wait_futex(&state_, waiting, timeout_us >= 0 ? &until : nullptr) == 0 ? 0 : errno;
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        if (!is_known()) return error;
        tell();
        return 0;
    }

   private:
    // It is known to whom it is for. Counts once, whoever comes first.
    void tell() noexcept {
        if (announcements_ != nullptr && !is_counted_.exchange(true, std::memory_order_relaxed)) announcements_->note_one(result_, stamp_, now_ns());
    }

    std::atomic<std::uint32_t> state_{waiting};
    std::atomic<std::int32_t> sleepers_{0};
    std::int64_t result_ = 0;
    Stamp stamp_;
    AnnouncementsRef announcements_;
    std::atomic<bool> is_counted_{false};
};

// Results for objects of Python's, which some thread of Python's collects. The objects are references that whoever appends
// hands over; nothing here touches them. Its own lock is held for moments only, and nothing is waited for in it: it may be
// taken with the GIL held.
class Mailbox {
   public:
    struct Letter {
        void *object;
        std::int64_t result;
        Stamp stamp;
    };

    Mailbox() noexcept { readable_.open(); }
    Mailbox(const Mailbox &) = delete;
    Mailbox &operator=(const Mailbox &) = delete;

    int descriptor() const noexcept { return readable_.descriptor(); }

    // False in a forked child, with which the eventfd is shared: to read it there would take the parent's signal away.
    bool is_in_own_process() const noexcept { return process_ == System::process(); }

    // True: `signal` is to follow when the lock is released. `announcements` is the same each time: one shell posts here.
    bool post(void *object, std::int64_t result, Stamp stamp = {}, const AnnouncementsRef &announcements = nullptr) {
        std::lock_guard guard(mutex_);
        letters_.push_back({object, result, stamp});
        if (stamp.appended_us != 0 && announcements_ != announcements) announcements_ = announcements;
        const bool is_first = !is_signalled_;
        is_signalled_ = true;
        return is_first;
    }

    void signal() const noexcept { readable_.signal(); }

    // All that came. Whatever comes from here on signals again.
    void collect(std::vector<Letter> *letters) noexcept {
        AnnouncementsRef announcements;
        {
            std::lock_guard guard(mutex_);
            if (is_signalled_) readable_.drain();
            is_signalled_ = false;
            letters->swap(letters_);
            announcements = announcements_;
        }
        if (announcements != nullptr && !letters->empty()) announcements->note(*letters, now_ns());
    }

    // Those from `first` on were collected and not told: they are the next to come, before all that came meanwhile.
    void put_back(std::vector<Letter> &letters, std::size_t first) {
        const auto from = letters.begin() + static_cast<std::ptrdiff_t>(first);
        for (auto each = from; each != letters.end(); ++each) each->stamp = {};  // what is measured of them is noted
        bool is_first;
        {
            std::lock_guard guard(mutex_);
            letters_.insert(letters_.begin(), from, letters.end());
            is_first = !is_signalled_;
            is_signalled_ = true;
        }
        if (is_first) signal();
    }

   private:
    const pid_t process_ = System::process();
    EventFd readable_;
    std::mutex mutex_;
    bool is_signalled_ = false;
    std::vector<Letter> letters_;
    AnnouncementsRef announcements_;
};

using MailboxRef = std::shared_ptr<Mailbox>;
using SlotRef = std::shared_ptr<Slot>;

// Somebody who waits: in a slot, by an object in a mailbox, or a producer on its connection.
struct Waiter {
    SlotRef slot;
    MailboxRef box;
    void *object = nullptr;
    ProduceRef produce;
    Micros appended_us = 0;  // of an append: how long it waits is measured
};

}  // namespace fastquorum::node
