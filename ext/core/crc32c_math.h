// CRC-32C's arithmetic at compile time: every table and folding constant is derived from the polynomial here, none is
// copied from anywhere. Polynomials are "reflected": bit 31 of a word is x^0, as the CRC itself is stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fastquorum::crc {

inline constexpr std::uint32_t polynomial = 0x82F63B78u;

// a * x mod P
constexpr std::uint32_t times_x(std::uint32_t a) { return (a >> 1) ^ ((a & 1u) ? polynomial : 0u); }

// a * b mod P
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (int bit = 31; bit >= 0; --bit) {
        if ((b >> bit) & 1u) product ^= a;
        a = times_x(a);
    }
    return product;
}

// x^n mod P
constexpr std::uint32_t power_of_x(std::uint64_t n) {
    std::uint32_t result = 0x80000000u;  // x^0
    std::uint32_t square = 0x40000000u;  // x^1
    for (; n != 0; n >>= 1) {
        if (n & 1u) result = multiply(result, square);
        square = multiply(square, square);
    }
    return result;
}

// Multiplier that moves a 32-bit CRC over `bytes` bytes, when the carry-less product then goes through the CRC
// instruction: that instruction multiplies by x^32, and a reflected product is one bit short (x^1).
constexpr std::uint64_t shift_crc(std::size_t bytes) { return power_of_x(8 * bytes - 33); }

// Multipliers that move 16 bytes of message over `bytes` bytes: for its first half (x^64 higher) and its second.
constexpr std::uint64_t fold_first(std::size_t bytes) { return std::uint64_t{power_of_x(8 * bytes + 63)} << 32; }
constexpr std::uint64_t fold_second(std::size_t bytes) { return std::uint64_t{power_of_x(8 * bytes - 1)} << 32; }

inline constexpr std::size_t slices = 16;
using Tables = std::array<std::array<std::uint32_t, 256>, slices>;

// tables[k][b]: what byte b does to the CRC when k more bytes follow it.
constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
        tables[0][byte] = crc;
    }
    for (std::size_t k = 1; k < slices; ++k)
        for (std::size_t byte = 0; byte < 256; ++byte) {
            std::uint32_t before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFFu];
        }
    return tables;
}

}  // namespace fastquorum::crc
