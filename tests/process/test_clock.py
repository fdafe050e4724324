"""The wall clock jumps: nobody is deposed, and nothing else happens, because only timestamps are taken from it."""

import mmap
import struct
from pathlib import Path

import pytest

from tests.privileges import compiled
from tests.process.cluster import cluster
from tests.process.history import History
from tests.process.load import Load, fetch_committed
from tests.process.processes import WAIT_S

DAY_S = 86_400
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


@pytest.mark.parametrize("jump_s", [400 * DAY_S, -400 * DAY_S], ids=["forwards", "backwards"])
def test_a_jump_of_the_wall_clock_under_load_causes_no_election(tmp_path: Path, jump_s: int) -> None:
    library = compiled(SHIM, "clock_jump", tmp_path)
    shared = tmp_path / "jump"
    shared.write_bytes(bytes(8))
    with cluster(tmp_path / "quorum") as quorum:
        quorum.stop()
        quorum.start(*quorum.ids, environment={"LD_PRELOAD": str(library), "CLOCK_JUMP_FILE": str(shared)})
        quorum.ready()
        history = History()
        with (
            Load({node_id: quorum.endpoint(node_id) for node_id in quorum.ids}, history) as load,
            shared.open("r+b") as file,
            mmap.mmap(file.fileno(), 8) as clock,
        ):
            assert history.wait_acked(20, WAIT_S)
            leader, epoch = quorum.leader(), quorum.epoch()
            quorum.nodes[leader].append("before the jump", 10)
            quorum.nodes[leader].appended("before the jump")
            for jump in (jump_s, 0, jump_s):
                clock[:] = struct.pack("=q", jump)
                assert history.wait_acked(100, WAIT_S)
            quorum.nodes[leader].append("after the jump", 10)
            assert "offset" in quorum.nodes[leader].appended("after the jump")
            assert (quorum.leader(), quorum.epoch()) == (leader, epoch)
            load.pause()
            read = [
                (offset, value)
                for offset, value in fetch_committed(quorum.kernels, quorum.endpoint(leader), 0)
                if not value.endswith(b"the jump")
            ]
            assert history.judge(read).problems == []
        # The shim did its work: what the leader stamped itself lies that far apart.
        stamps = {value: stamp for value, stamp in quorum.timestamps(leader) if value.endswith(b"the jump")}
        moved_s = (stamps[b"after the jump"] - stamps[b"before the jump"]) / 1000
        assert abs(moved_s - jump_s) < DAY_S
        assert quorum.ballots.violations == []
