#include "crc32c.h"

#include <cstring>

namespace fastquorum {

std::uint32_t crc32c(std::uint32_t crc, const void *data, std::size_t size) noexcept {
    auto bytes = static_cast<const unsigned char *>(data);
    crc = ~crc;
    for (std::size_t i = 0; i < size; ++i) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
    }
    return ~crc;
}

static const char *const paths[] = {"portable", nullptr};
const char *const *crc32c_paths() noexcept { return paths; }
const char *crc32c_path() noexcept { return paths[0]; }
bool crc32c_force_path(const char *name) noexcept { return *name == 0 || std::strcmp(name, paths[0]) == 0; }

}  // namespace fastquorum
