// The paths of CRC-32C and the choice between them. Each path gets and returns the raw (unfinalised) register.
#include "crc32c.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "crc32c_math.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static_assert(std::endian::native == std::endian::little, "fastquorum's kernels are written for little-endian machines");

namespace fastquorum {
namespace {

using Path = std::uint32_t (*)(std::uint32_t, const unsigned char *, std::size_t);

inline std::uint64_t load64(const unsigned char *bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    return word;
}

inline std::uint32_t load32(const unsigned char *bytes) {
    std::uint32_t word;
    std::memcpy(&word, bytes, 4);
    return word;
}

// --- portable: sixteen bytes a step through sixteen tables --------------------------------------------------------------

constexpr crc::Tables tables = crc::make_tables();

std::uint32_t portable(std::uint32_t crc, const unsigned char *bytes, std::size_t size) {
    for (; size >= 16; bytes += 16, size -= 16) {
        const std::uint32_t words[4] = {load32(bytes) ^ crc, load32(bytes + 4), load32(bytes + 8), load32(bytes + 12)};
        crc = 0;
        for (std::size_t i = 0; i < 4; ++i)
            for (std::size_t j = 0; j < 4; ++j) crc ^= tables[15 - 4 * i - j][(words[i] >> (8 * j)) & 0xFFu];
    }
    for (; size != 0; ++bytes, --size) crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 0xFFu];
    return crc;
}

#if defined(__x86_64__)

// --- SSE4.2: the CRC instruction, one stream ----------------------------------------------------------------------------

__attribute__((target("sse4.2"))) inline std::uint32_t tail(std::uint32_t crc, const unsigned char *bytes, std::size_t size) {
    std::uint64_t wide = crc;
    for (; size >= 8; bytes += 8, size -= 8) wide = _mm_crc32_u64(wide, load64(bytes));
    crc = static_cast<std::uint32_t>(wide);
    if (size & 4u) {
        crc = _mm_crc32_u32(crc, load32(bytes));
        bytes += 4;
    }
    if (size & 2u) {
        std::uint16_t half;
        std::memcpy(&half, bytes, 2);
        crc = _mm_crc32_u16(crc, half);
        bytes += 2;
    }
    if (size & 1u) crc = _mm_crc32_u8(crc, *bytes);
    return crc;
}

__attribute__((target("sse4.2"))) std::uint32_t sse42(std::uint32_t crc, const unsigned char *bytes, std::size_t size) {
    return tail(crc, bytes, size);
}

// --- SSE4.2 and PCLMUL: three streams hide the instruction's latency; a carry-less product joins them -----------------

template <std::size_t stride>
__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t three_streams(std::uint32_t crc, const unsigned char *bytes) {
    std::uint64_t a = crc, b = 0, c = 0;
    for (std::size_t i = 0; i < stride; i += 8) {
        a = _mm_crc32_u64(a, load64(bytes + i));
        b = _mm_crc32_u64(b, load64(bytes + stride + i));
        c = _mm_crc32_u64(c, load64(bytes + 2 * stride + i));
    }
    const __m128i shifts = _mm_set_epi64x(crc::shift_crc(stride), crc::shift_crc(2 * stride));
    const __m128i moved_a = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(a)), shifts, 0x00);
    const __m128i moved_b = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(b)), shifts, 0x10);
    const auto moved = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_xor_si128(moved_a, moved_b)));
    return static_cast<std::uint32_t>(_mm_crc32_u64(0, moved) ^ c);
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t sse42_pclmul(std::uint32_t crc, const unsigned char *bytes,
                                                                     std::size_t size) {
    constexpr std::size_t large = 2048, medium = 256, small = 64;
    for (; size >= 3 * large; bytes += 3 * large, size -= 3 * large) crc = three_streams<large>(crc, bytes);
    for (; size >= 3 * medium; bytes += 3 * medium, size -= 3 * medium) crc = three_streams<medium>(crc, bytes);
    for (; size >= 3 * small; bytes += 3 * small, size -= 3 * small) crc = three_streams<small>(crc, bytes);
    return tail(crc, bytes, size);
}

// --- AVX-512 and VPCLMULQDQ: the message folded 64 bytes at a time ------------------------------------------------------

#define FASTQUORUM_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,sse4.2,pclmul")))

// `distance`: how many bytes further on in the message `next` lies.
template <std::size_t distance>
FASTQUORUM_AVX512 inline __m512i fold(__m512i state, __m512i next) {
    const __m512i by = _mm512_broadcast_i32x4(_mm_set_epi64x(static_cast<long long>(crc::fold_second(distance)),
                                                             static_cast<long long>(crc::fold_first(distance))));
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(state, by, 0x00), _mm512_clmulepi64_epi128(state, by, 0x11),
                                     next, 0x96);
}

FASTQUORUM_AVX512 inline __m512i load512(const unsigned char *bytes) { return _mm512_loadu_si512(bytes); }

FASTQUORUM_AVX512 std::uint32_t avx512_vpclmul(std::uint32_t crc, const unsigned char *bytes, std::size_t size) {
    if (size < 256) return sse42_pclmul(crc, bytes, size);
    const __m512i register_bits = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc)));
    __m512i a = _mm512_xor_si512(load512(bytes), register_bits);
    __m512i b = load512(bytes + 64), c = load512(bytes + 128), d = load512(bytes + 192);
    bytes += 256;
    size -= 256;
    if (size >= 256) {
        __m512i e = load512(bytes), f = load512(bytes + 64), g = load512(bytes + 128), h = load512(bytes + 192);
        bytes += 256;
        size -= 256;
        for (; size >= 512; bytes += 512, size -= 512) {
            a = fold<512>(a, load512(bytes));
            b = fold<512>(b, load512(bytes + 64));
            c = fold<512>(c, load512(bytes + 128));
            d = fold<512>(d, load512(bytes + 192));
            e = fold<512>(e, load512(bytes + 256));
            f = fold<512>(f, load512(bytes + 320));
            g = fold<512>(g, load512(bytes + 384));
            h = fold<512>(h, load512(bytes + 448));
        }
        a = fold<256>(a, e);
        b = fold<256>(b, f);
        c = fold<256>(c, g);
        d = fold<256>(d, h);
        if (size >= 256) {
            a = fold<256>(a, load512(bytes));
            b = fold<256>(b, load512(bytes + 64));
            c = fold<256>(c, load512(bytes + 128));
            d = fold<256>(d, load512(bytes + 192));
            bytes += 256;
            size -= 256;
        }
    }
    __m512i state = fold<64>(fold<128>(a, c), fold<128>(b, d));
    for (; size >= 64; bytes += 64, size -= 64) state = fold<64>(state, load512(bytes));
    // Four lanes into the last one: lane i lies (3 - i) * 16 bytes before it.
    const __m512i by = _mm512_set_epi64(0, 0, static_cast<long long>(crc::fold_second(16)), static_cast<long long>(crc::fold_first(16)),
                                        static_cast<long long>(crc::fold_second(32)), static_cast<long long>(crc::fold_first(32)),
                                        static_cast<long long>(crc::fold_second(48)), static_cast<long long>(crc::fold_first(48)));
    const __m512i moved = _mm512_xor_si512(_mm512_clmulepi64_epi128(state, by, 0x00), _mm512_clmulepi64_epi128(state, by, 0x11));
    const __m128i last = _mm_xor_si128(
        _mm_xor_si128(_mm512_castsi512_si128(moved), _mm512_extracti64x2_epi64(moved, 1)),
        _mm_xor_si128(_mm512_extracti64x2_epi64(moved, 2), _mm512_extracti64x2_epi64(state, 3)));
    std::uint64_t wide = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(last)));
    wide = _mm_crc32_u64(wide, static_cast<std::uint64_t>(_mm_extract_epi64(last, 1)));
    return tail(static_cast<std::uint32_t>(wide), bytes, size);
}

#elif defined(__aarch64__)

// --- ARMv8: the CRC instruction, three streams joined by a product ------------------------------------------------------

#define FASTQUORUM_ARM_CRC __attribute__((target("+crc")))

FASTQUORUM_ARM_CRC std::uint32_t armv8_crc(std::uint32_t crc, const unsigned char *bytes, std::size_t size) {
    constexpr std::size_t stride = 4096;  // long enough that the two products, made in software, do not show
    constexpr std::uint32_t one = crc::power_of_x(8 * stride), two = crc::power_of_x(16 * stride);
    for (; size >= 3 * stride; bytes += 3 * stride, size -= 3 * stride) {
        std::uint32_t a = crc, b = 0, c = 0;
        for (std::size_t i = 0; i < stride; i += 8) {
            a = __crc32cd(a, load64(bytes + i));
            b = __crc32cd(b, load64(bytes + stride + i));
            c = __crc32cd(c, load64(bytes + 2 * stride + i));
        }
        crc = crc::multiply(a, two) ^ crc::multiply(b, one) ^ c;
    }
    for (; size >= 8; bytes += 8, size -= 8) crc = __crc32cd(crc, load64(bytes));
    for (; size != 0; ++bytes, --size) crc = __crc32cb(crc, *bytes);
    return crc;
}

#endif

// --- the choice ---------------------------------------------------------------------------------------------------------

struct Candidate {
    const char *name;
    Path path;
};

constexpr std::size_t candidates_max = 4;

struct Choice {
    Candidate candidates[candidates_max];
    const char *names[candidates_max + 1] = {};
    std::size_t count = 0;
    std::atomic<const Candidate *> current{nullptr};

    void offer(bool available, const char *name, Path path) {
        if (!available) return;
        names[count] = name;
        candidates[count++] = {name, path};
    }

    Choice() {
#if defined(__x86_64__)
        __builtin_cpu_init();
        const bool crc = __builtin_cpu_supports("sse4.2");
        const bool product = crc && __builtin_cpu_supports("pclmul");
        const bool wide = product && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("vpclmulqdq");
        offer(wide, "avx512-vpclmul", avx512_vpclmul);
        offer(product, "sse42-pclmul", sse42_pclmul);
        offer(crc, "sse42", sse42);
#elif defined(__aarch64__)
        offer((getauxval(AT_HWCAP) & HWCAP_CRC32) != 0, "armv8-crc", armv8_crc);
#endif
        offer(true, "portable", portable);
        current.store(candidates, std::memory_order_relaxed);
    }
};

Choice choice;

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, const void *data, std::size_t size) noexcept {
    const Path path = choice.current.load(std::memory_order_relaxed)->path;
    return ~path(~crc, static_cast<const unsigned char *>(data), size);
}

const char *const *crc32c_paths() noexcept { return choice.names; }

const char *crc32c_path() noexcept { return choice.current.load(std::memory_order_relaxed)->name; }

bool crc32c_force_path(const char *name) noexcept {
    for (std::size_t i = 0; i < choice.count; ++i)
        if (*name == 0 || std::strcmp(name, choice.candidates[i].name) == 0) {
            choice.current.store(&choice.candidates[i], std::memory_order_relaxed);
            return true;
        }
    return false;
}

}  // namespace fastquorum
