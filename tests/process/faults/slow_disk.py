"""A disk that takes its time: every sync of a process waits for as long as a test says, and goes on when it says so.

The whole disk is slow, not the log alone: LMDB's commits, the durable mark and new segments wait, too.
"""

import mmap
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.privileges import compiled
from tests.process.cluster import Cluster
from tests.process.processes import WAIT_S

SHIM: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
/* In a shared file: how much longer a sync takes, in microseconds, and how many were kept waiting so far. */
static volatile int64_t *page;
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SLOW_DISK_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *shared = mmap(0, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared != MAP_FAILED) page = shared;
}
static void dawdle(void) {
    if (!page || page[0] <= 0) return;
    __sync_fetch_and_add(&page[1], 1);
    for (int64_t waited = 0; waited < page[0]; waited += 1000) usleep(1000);
}
int fdatasync(int fd) {
    dawdle();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
int fsync(int fd) {
    dawdle();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
"""
_FOR_EVER_US: Final = 1 << 50
_LOOK_S: Final = 0.001


class SlowDisk:
    """A slow disk for one process, which is started with `environment`."""

    def __init__(self, path: Path, library: Path) -> None:
        path.write_bytes(bytes(16))
        self.environment: Mapping[str, str] = {"LD_PRELOAD": str(library), "SLOW_DISK_FILE": str(path)}
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 16)

    def slow_down(self, seconds: float) -> None:
        """Every sync takes this much longer."""
        self._set(round(seconds * 1e6))

    def hang(self) -> None:
        """No sync ends before `heal`. Returns once one waits."""
        before = self._waited()
        self._set(_FOR_EVER_US)
        deadline = time.monotonic() + WAIT_S
        while self._waited() == before:
            assert time.monotonic() < deadline, "nothing is synced"
            time.sleep(_LOOK_S)

    def heal(self) -> None:
        self._set(0)

    def _set(self, microseconds: int) -> None:
        self._shared[:8] = struct.pack("=q", microseconds)

    def _waited(self) -> int:
        count: int = struct.unpack("=q", self._shared[8:])[0]
        return count


@contextmanager
def with_slow_disks(root: Path, **options: Any) -> Iterator[tuple[Cluster, dict[int, SlowDisk]]]:
    """Started and ready nodes whose disks can be slowed down. `options` are `Cluster`'s."""
    root.mkdir(parents=True, exist_ok=True)
    library = compiled(SHIM, "slow_disk", root)
    quorum = Cluster(root / "quorum", **options)
    disks = {node_id: SlowDisk(root / f"disk{node_id}", library) for node_id in quorum.ids}
    try:
        for node_id, disk in disks.items():
            quorum.start(node_id, environment=disk.environment)
        quorum.ready()
        yield quorum, disks
    finally:
        for disk in disks.values():
            disk.heal()
        quorum.close()
