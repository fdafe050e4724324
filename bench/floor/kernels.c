/* Plain C yardsticks for the kernels, called through ctypes: the shortest loop that does the work, with nothing around it.
 *
 * Each `*_ns` function repeats the work and answers the nanoseconds that one repetition took, measured in here, so that ctypes costs
 * nothing. Compiled by `bench/floors.py` when it is needed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_8(crc, word) ((uint32_t)_mm_crc32_u64(crc, word))
#define CRC_1(crc, byte) _mm_crc32_u8(crc, byte)
#elif defined(__aarch64__)
#include <arm_acle.h>
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_8(crc, word) __crc32cd(crc, word)
#define CRC_1(crc, byte) __crc32cb(crc, byte)
#else
#error "no CRC-32C instruction known for this CPU"
#endif

enum { HEADER = 61, CRC_AT = 17, CRC_FROM = 21 };

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One stream of the CPU's own instruction, without tables or folding. */
CRC_TARGET uint32_t floor_crc32c(const uint8_t *data, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = CRC_8(crc, word);
    }
    for (; size > 0; size--) crc = CRC_1(crc, *data++);
    return ~crc;
}

double floor_crc32c_ns(const uint8_t *data, size_t size, long repeat) {
    volatile uint32_t kept = 0;
    int64_t began = now_ns();
    for (long n = 0; n < repeat; n++) kept = floor_crc32c(data, size);
    (void)kept;
    return (double)(now_ns() - began) / (double)repeat;
}

static uint8_t *put(uint8_t *at, uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) *at++ = (uint8_t)(value >> shift);
    return at;
}

static uint8_t *put_varint(uint8_t *at, uint32_t zigzag) {
    for (; zigzag > 0x7F; zigzag >>= 7) *at++ = (uint8_t)(zigzag | 0x80);
    *at++ = (uint8_t)zigzag;
    return at;
}

static int varint_size(uint32_t zigzag) { return zigzag < 1u << 7 ? 1 : zigzag < 1u << 14 ? 2 : zigzag < 1u << 21 ? 3 : zigzag < 1u << 28 ? 4 : 5; }

/* A v2 batch of values: null keys, no headers, base offset and epoch 0. `out` must be large enough. Answers its size. */
size_t floor_encode(const uint8_t *data, const int32_t *offsets, int count, int64_t timestamp_ms, uint8_t *out) {
    uint8_t *at = out + HEADER;
    for (int i = 0; i < count; i++) {
        uint32_t size = (uint32_t)(offsets[i + 1] - offsets[i]);
        at = put_varint(at, 2 * (uint32_t)(4 + varint_size(2 * (uint32_t)i) + varint_size(2 * size) + (int)size));
        *at++ = 0; /* attributes */
        *at++ = 0; /* timestamp delta */
        at = put_varint(at, 2 * (uint32_t)i);
        *at++ = 1; /* no key */
        at = put_varint(at, 2 * size);
        memcpy(at, data + offsets[i], size);
        at += size;
        *at++ = 0; /* no headers */
    }
    uint8_t *field = out;
    field = put(field, 0, 8);
    field = put(field, (uint64_t)(at - out - 12), 4);
    field = put(field, 0, 4);
    field = put(field, 2, 1);
    field = put(field, 0, 4);
    field = put(field, 0, 2);
    field = put(field, (uint64_t)count - 1, 4);
    field = put(field, (uint64_t)timestamp_ms, 8);
    field = put(field, (uint64_t)timestamp_ms, 8);
    memset(field, 0xFF, 14); /* no producer */
    put(field + 14, (uint64_t)count, 4);
    put(out + CRC_AT, floor_crc32c(out + CRC_FROM, (size_t)(at - out) - CRC_FROM), 4);
    return (size_t)(at - out);
}

double floor_encode_ns(const uint8_t *data, const int32_t *offsets, int count, int64_t timestamp_ms, uint8_t *out, long repeat) {
    int64_t began = now_ns();
    for (long n = 0; n < repeat; n++) floor_encode(data, offsets, count, timestamp_ms, out);
    return (double)(now_ns() - began) / (double)repeat;
}

/* Write `count` times `size` bytes from `position` on, each synced; `took` gets each one's nanoseconds. Answers errno. */
int floor_append(int fd, const uint8_t *data, size_t size, int64_t position, int count, int64_t *took) {
    for (int n = 0; n < count; n++) {
        int64_t began = now_ns();
        if (pwrite(fd, data, size, position) != (ssize_t)size || fdatasync(fd) != 0) return errno ? errno : EIO;
        took[n] = now_ns() - began;
        position += (int64_t)size;
    }
    return 0;
}

/* Every byte of memory looked at once. */
uint64_t floor_read(const uint8_t *data, size_t size) {
    uint64_t lanes[8] = {0}, sum = 0;
    size_t at = 0;
    for (; at + 64 <= size; at += 64)
        for (int i = 0; i < 8; i++) {
            uint64_t word;
            memcpy(&word, data + at + 8 * (size_t)i, 8);
            lanes[i] ^= word;
        }
    for (; at < size; at++) sum += data[at];
    for (int i = 0; i < 8; i++) sum ^= lanes[i];
    return sum;
}
