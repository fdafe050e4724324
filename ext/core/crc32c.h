// CRC-32C (Castagnoli), by the fastest way this CPU has, chosen once at load time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "api.h"

namespace fastquorum {

// Continues from `crc` (0 to begin); finalised, as Kafka stores it.
FASTQUORUM_API std::uint32_t crc32c(std::uint32_t crc, const void *data, std::size_t size) noexcept;

// Names of the paths this CPU can run, best first; null-terminated.
FASTQUORUM_API const char *const *crc32c_paths() noexcept;
FASTQUORUM_API const char *crc32c_path() noexcept;
// For tests: use this path from now on. False, and nothing changed, if this CPU lacks it. "" = the best one again.
FASTQUORUM_API bool crc32c_force_path(const char *name) noexcept;

}  // namespace fastquorum
