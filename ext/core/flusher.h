// A thread that syncs files in the order submitted and reports through an eventfd. It never touches Python.
//
// Who owns what: everything below the mutex is read and written under it, except failed_ (atomic: set under it, read by
// anybody) and process_ (never changes). Fail-stop: after a failed sync nothing is synced any more.
#pragma once

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "file.h"

namespace fastquorum {

using FileRef = std::shared_ptr<File>;

inline FileRef make_file(int descriptor) noexcept {
    try {
        return std::make_shared<File>(descriptor);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

struct Completion {
    std::int64_t token;
    int error;
};

class FlushThread {
   public:
    // Null and *error set if the system refuses an eventfd or a thread.
    static FlushThread *start(int *error) noexcept {
        auto *flusher = new (std::nothrow) FlushThread;
        *error = ENOMEM;
        if (flusher == nullptr) return nullptr;
        flusher->eventfd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (flusher->eventfd_ < 0) {
            *error = errno;
        } else {
            // Signals are for the threads of Python: none may land here.
            sigset_t all, before;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
            try {
                flusher->thread_ = std::thread(&FlushThread::run, flusher);
                *error = 0;
            } catch (const std::system_error &failure) {
                *error = failure.code().value();
            }
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
        }
        if (*error == 0) return flusher;
        delete flusher;
        return nullptr;
    }

    ~FlushThread() {
        if (eventfd_ >= 0) ::close(eventfd_);
    }

    // False in a forked child: its thread does not exist there, and the mutex may be held for ever.
    bool is_in_own_process() const noexcept { return process_ == ::getpid(); }
    bool failed() const noexcept { return failed_.load(std::memory_order_acquire) != 0; }
    int descriptor() const noexcept { return eventfd_; }

    // 0, EPIPE once closed, ENOMEM.
    int submit(std::int64_t token, const FileRef *files, std::size_t count) noexcept {
        try {
            std::lock_guard guard(mutex_);
            if (closing_) return EPIPE;
            // The report's place is made here: the thread has nobody to tell that there is no memory for it.
            submitted_.push_back({std::vector<FileRef>(files, files + count), {{token, 0}}});
        } catch (const std::bad_alloc &) {
            return ENOMEM;
        }
        changed_.notify_one();
        return 0;
    }

    // The oldest completion not yet taken; false if there is none. Drains the eventfd with the last one.
    bool take(Completion *completion) noexcept {
        std::lock_guard guard(mutex_);
        if (completed_.empty()) {
            std::uint64_t count;
            if (eventfd_ >= 0) (void)!::read(eventfd_, &count, sizeof count);
            return false;
        }
        *completion = completed_.front();
        completed_.pop_front();
        return true;
    }

    // Finish what was submitted, end the thread. Idempotent; completions can still be taken.
    void close() noexcept {
        {
            std::lock_guard guard(mutex_);
            if (closing_) return;
            closing_ = true;
        }
        changed_.notify_one();
        thread_.join();
        std::lock_guard guard(mutex_);
        ::close(eventfd_);
        eventfd_ = -1;
    }

   private:
    struct Submission {
        std::vector<FileRef> files;
        std::list<Completion> completion;
    };

    FlushThread() noexcept = default;

    void run() noexcept {
        for (;;) {
            Submission submission;
            {
                std::unique_lock guard(mutex_);
                changed_.wait(guard, [this] { return closing_ || !submitted_.empty(); });
                if (submitted_.empty()) return;
                submission = std::move(submitted_.front());
                submitted_.pop_front();
            }
            int error = failed_.load(std::memory_order_relaxed);
            for (std::size_t i = 0; i < submission.files.size() && error == 0; ++i) error = submission.files[i]->sync();
            submission.files.clear();
            std::lock_guard guard(mutex_);
            // The latch comes first: whoever sees the completion must find it set.
            failed_.store(error, std::memory_order_release);
            submission.completion.front().error = error;
            completed_.splice(completed_.end(), submission.completion);
            const std::uint64_t one = 1;
            (void)!::write(eventfd_, &one, sizeof one);
        }
    }

    const pid_t process_ = ::getpid();
    std::atomic<int> failed_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Submission> submitted_;
    std::list<Completion> completed_;
    bool closing_ = false;
    int eventfd_ = -1;
    std::thread thread_;
};

}  // namespace fastquorum
