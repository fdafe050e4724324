"""A wall clock that jumps, and it alone: the monotonic clock goes on."""

import mmap
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.privileges import compiled

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* Adds the seconds found in a shared file to the wall clock, and to it alone. */
static volatile int64_t *jump;
static int (*real)(clockid_t, struct timespec *);
__attribute__((constructor)) static void begin(void) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("CLOCK_JUMP_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) jump = page;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && jump && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *jump;
    return result;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where) *where = exact.tv_sec;
    return exact.tv_sec;
}
"""


class WallClock:
    """The wall clock of processes started with `environment`. Made by `wall_clock`."""

    def __init__(self, environment: Mapping[str, str], page: mmap.mmap) -> None:
        self.environment = environment
        self._page = page

    def jump(self, seconds: int) -> None:
        """How far it is from the real one, from now on."""
        self._page[:] = struct.pack("=q", seconds)


@contextmanager
def wall_clock(directory: Path) -> Iterator[WallClock]:
    library = compiled(SHIM, "clock_jump", directory)
    shared = directory / "jump"
    shared.write_bytes(bytes(8))
    with shared.open("r+b") as file, mmap.mmap(file.fileno(), 8) as page:
        yield WallClock({"LD_PRELOAD": str(library), "CLOCK_JUMP_FILE": str(shared)}, page)
