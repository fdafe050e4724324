// One open file: positioned reads and writes, and a sync that latches its first failure. Errors are errno values.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace fastquorum {

class File {
   public:
    explicit File(int descriptor) noexcept : descriptor_(descriptor) {}
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    ~File() { close(); }

    int descriptor() const noexcept { return descriptor_; }

    // What a failed sync left behind, 0 if none failed. Set before anybody is told.
    int sync_error() const noexcept { return sync_error_.load(std::memory_order_acquire); }

    int write(std::int64_t position, const std::uint8_t *data, std::int64_t size) noexcept {
        while (size > 0) {
            const ssize_t written = ::pwrite(descriptor_, data, step(size), position);
            if (written < 0) {
                if (errno == EINTR) continue;
                return errno;
            }
            position += written;
            data += written;
            size -= written;
        }
        return 0;
    }

    // *done bytes were read; fewer than size only at the end of the file.
    int read(std::int64_t position, std::uint8_t *data, std::int64_t size, std::int64_t *done) noexcept {
        *done = 0;
        while (*done < size) {
            const ssize_t got = ::pread(descriptor_, data + *done, step(size - *done), position + *done);
            if (got < 0) {
                if (errno == EINTR) continue;
                return errno;
            }
            if (got == 0) break;
            *done += got;
        }
        return 0;
    }

    int truncate(std::int64_t size) noexcept {
        while (::ftruncate(descriptor_, size) != 0)
            if (errno != EINTR) return errno;
        return 0;
    }

    int zero_fill(std::int64_t start, std::int64_t end) noexcept {
        static constexpr std::int64_t chunk = 256 * 1024;
        static const std::uint8_t zeros[chunk] = {};
        for (; start < end; start += chunk)
            if (const int error = write(start, zeros, std::min(chunk, end - start))) return error;
        return 0;
    }

    // Have the file system give blocks to [start, end): they read as zeros, and the file ends no earlier. False: it would not, and
    // some of it may have happened.
    bool allocate(std::int64_t start, std::int64_t end) noexcept {
        while (::fallocate(descriptor_, 0, start, end - start) != 0)
            if (errno != EINTR) return false;
        return true;
    }

    // One fdatasync. After a failed one it is not tried again: what the page cache holds may not be on the disk.
    int sync() noexcept {
        if (const int error = sync_error()) return error;
        while (::fdatasync(descriptor_) != 0) {
            if (errno == EINTR) continue;
            sync_error_.store(errno, std::memory_order_release);
            return sync_error();
        }
        return 0;
    }

    // The file system is full, or a quota, or a limit of the process is reached: nothing is lost by what fails with this.
    static bool lacks_room(int error) noexcept { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

    int close() noexcept {
        if (descriptor_ < 0) return 0;
        const int descriptor = descriptor_;
        descriptor_ = -1;
        return ::close(descriptor) == 0 || errno == EINTR ? 0 : errno;
    }

   private:
    // Linux moves at most about 2 GiB at a time.
    static std::size_t step(std::int64_t size) noexcept { return static_cast<std::size_t>(std::min<std::int64_t>(size, 1 << 30)); }

    int descriptor_;
    std::atomic<int> sync_error_{0};
};

}  // namespace fastquorum
