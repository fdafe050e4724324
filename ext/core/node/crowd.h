// What a node keeps for all its connections, in bytes, and when that is too much.
//
// | kept | counted by | more than | then |
// |---|---|---|---|
// | frames that Python has not dealt with | the lane's lock | crowd_bytes | no connection may have a second one |
// | answers: unsent, or behind one that waits | the lane's lock | crowd_bytes | none is made for a connection that is owed any |
// | both, and frames that are not whole yet | either | kept_bytes_max | connections with any of it are not read from, and one that would be owed more is closed; not voters', nor those that this node made |
#pragma once

#include <atomic>
#include <cstdint>

namespace fastquorum::node {

inline constexpr std::int64_t crowd_bytes = 64 * 1024 * 1024;
inline constexpr std::int64_t kept_bytes_max = 256 * 1024 * 1024;
inline constexpr std::int64_t crowded_receive_bytes = 64 * 1024;  // read at once when there is too much

class Crowd {
   public:
    std::int64_t waiting_bytes = 0;
    std::int64_t owed_bytes = 0;
    std::atomic<std::int64_t> partial_bytes{0};  // the sockets' thread's

    bool is_full() const noexcept { return is_full_.load(std::memory_order_relaxed); }

    // Would `regard` answer true?
    bool has_changed() const noexcept {
        const std::int64_t kept = waiting_bytes + owed_bytes + partial_bytes.load(std::memory_order_relaxed);
        return (kept > (is_full() ? kept_bytes_max / 4 * 3 : kept_bytes_max)) != is_full();
    }

    // Lock held. Become full, or not full any more: true if it did.
    bool regard() noexcept {
        if (!has_changed()) return false;
        is_full_.store(!is_full(), std::memory_order_relaxed);
        return true;
    }

   private:
    std::atomic<bool> is_full_{false};
};

}  // namespace fastquorum::node
