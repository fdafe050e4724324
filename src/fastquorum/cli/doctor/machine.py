"""What `doctor` looks at: clock, limits, file system, fsync. Each look gives facts and what is wrong with them. And the
facts that figures depend on.
"""

import contextlib
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import time
from typing import Any, Final, Literal, NamedTuple

from fastquorum import build_info
from fastquorum.errors import FastQuorumError, StorageFailed
from fastquorum.kernels import Kernels, load
from fastquorum.storage.identity import is_formatted, read_identity
from fastquorum.storage.io.disk import RealDisk

SYNCS: Final = 100
APPEND_BYTES: Final = 512
PROBE_BYTES: Final = 1024 * 1024
FREE_BYTES_MIN: Final = 256 * 1024 * 1024
FILES_MIN: Final = 1024
SYNC_P50_US_MAX: Final = 50_000
"""Beyond it, followers' fetch timeouts come within reach of a few slow syncs in a row."""
SLOW_CLOCKS: Final = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
VOLATILE: Final = ("tmpfs", "ramfs", "devtmpfs")
REMOTE: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "fuse.sshfs", "fuse.glusterfs")
_CLOCK_SOURCE: Final = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


class Problem(NamedTuple):
    """A fault of the installation or machine, and what to do about it."""

    text: str
    hint: str


Look = tuple[dict[str, Any], list[Problem]]


def clock() -> Look:
    """The monotonic clock that every timeout is measured by."""
    source = ""
    with contextlib.suppress(OSError), open(_CLOCK_SOURCE, encoding="ascii") as file:
        source = file.read().strip()
    steps = []
    for _ in range(1000):
        began = time.monotonic_ns()
        while (now := time.monotonic_ns()) == began:
            pass
        steps.append(now - began)
    info = time.get_clock_info("monotonic")
    facts = {"clock": info.implementation, "clock_source": source, "clock_step_ns": sorted(steps)[len(steps) // 2]}
    problems = []
    if source in SLOW_CLOCKS:
        problems.append(Problem(f"the kernel's clock source is {source}: slow to read", "boot with a working TSC"))
    if not info.monotonic:
        problems.append(Problem("the monotonic clock can jump", "use another kernel"))
    return facts, problems


def limits() -> Look:
    """Check the limits of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    problems = []
    if soft < FILES_MIN:
        problems.append(Problem(f"only {soft} files may be open at once", f"ulimit -n {FILES_MIN}, or more"))
    return {"open_files_max": soft}, problems


def data_directory(path: str, kernels_name: Literal["native", "pure"]) -> Look:
    """Check the directory, its file system, and how fast that syncs."""
    kernels = load(kernels_name)
    root = os.path.abspath(path)
    if not os.path.isdir(root):
        return {"data": root}, [Problem(f"{root} is not a directory", "name one that exists with --data")]
    kind, device = file_system(root)
    free = shutil.disk_usage(root).free
    facts: dict[str, Any] = {"data": root, "file_system": kind, "device": device, "free_bytes": free}
    problems = []
    if kind in VOLATILE:
        problems.append(Problem(f"{root} is on {kind}: a reboot forgets votes and records", "keep data on a disk"))
    if kind in REMOTE:
        problems.append(
            Problem(f"{root} is on {kind}: fsync and locks depend on a server", "keep data on a local disk")
        )
    if free < FREE_BYTES_MIN:
        problems.append(Problem(f"{free} bytes are free on it", "make room"))
    try:
        disk = RealDisk.open_directory(root, kernels)
        if is_formatted(disk):
            identity = read_identity(disk)
            facts["formatted"] = f"node {identity.node_id} of cluster {identity.cluster_id}, {identity.log_kind} log"
        p50, p99 = _sync_us(root, kernels)
    except StorageFailed as error:
        problems.append(
            Problem(f"{error.operation} of {error.path} failed: {error.detail}", "choose a directory for files")
        )
        return facts, problems
    except FastQuorumError as error:
        problems.append(Problem(str(error), "nothing more was checked"))
        return facts, problems
    facts |= {"fsync_p50_us": p50, "fsync_p99_us": p99}
    if p50 > SYNC_P50_US_MAX:
        problems.append(Problem(f"a sync takes {p50} us here", "choose a faster disk, or raise the fetch timeout"))
    return facts, problems


def measured_on(path: str) -> dict[str, Any]:
    """What figures depend on that were measured here, with data in `path`: machine, build, and what else runs."""
    build = build_info()
    kind, device = file_system(path)
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": build.python,
        "version": build.version,
        "commit": _commit(),
        "build_kind": build.build_kind,
        "cpu_path": build.cpu_path,
        "data": os.path.abspath(path),
        "file_system": f"{kind} on {device}",
        "load_average": os.getloadavg()[0],
    }


def _field(path: str, name: str) -> str:
    """Return a value from a file of `name: value` lines in /proc; empty if it is not there."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")
    return ""


def _commit() -> str:
    """Return the commit of the checkout that this runs from; empty if it was installed from elsewhere."""
    root = pathlib.Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return ""
    command = ("git", "describe", "--always", "--dirty", "--abbrev=12")
    with contextlib.suppress(OSError):
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def file_system(path: str) -> tuple[str, str]:
    """Type and device of the file system that `path` is on; empty where /proc does not tell."""
    best = ("", "", "")
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        real = os.path.realpath(path)
        for line in mounts:
            before, _, after = line.partition(" - ")
            mount = before.split()[4].replace("\\040", " ")
            if real == mount or real.startswith(mount.rstrip("/") + "/"):
                kind, device = after.split()[:2]
                if len(mount) >= len(best[0]):
                    best = (mount, kind, device)
    return best[1], best[2]


def _sync_us(root: str, kernels: Kernels) -> tuple[int, int]:
    """Median and 99th percentile of a small append and its fdatasync, into zeros written before: as a node does it."""
    path = os.path.join(root, f".fastquorum-doctor-{os.getpid()}")
    file = kernels.SegmentFile(path, "create")
    try:
        file.zero_fill(0, PROBE_BYTES)
        file.sync()
        times = []
        for number in range(SYNCS):
            began = time.monotonic_ns()
            file.write(number * APPEND_BYTES, b"\1" * APPEND_BYTES)
            file.sync()
            times.append((time.monotonic_ns() - began) // 1000)
    finally:
        file.close()
        os.unlink(path)
    times.sort()
    return times[SYNCS // 2 - 1], times[SYNCS * 99 // 100 - 1]
