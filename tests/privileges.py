"""What a test needs from the machine: root, mounts, strace, a compiler.

A test that cannot have it is skipped with the reason; with CI=true nothing may be left out, and it fails.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


def missing(reason: str) -> NoReturn:
    """This machine does not have what the running test needs."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"with CI=true no test may be left out: {reason}", pytrace=False)
    pytest.skip(reason)


@contextmanager
def mounted(place: Path, kind: str, options: str) -> Iterator[Path]:
    """A file system of its own at `place`."""
    if os.geteuid() != 0:
        missing("mounting a file system needs root")
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", kind, "-o", options, kind, str(place)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        missing(f"mount is not allowed here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path, left_bytes: int = 0) -> Path:
    """The file that takes all room of the file system but so much."""
    filling = place / "filling"
    with filling.open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(4096)):
                pass
        file.truncate(file.tell() - left_bytes)
    return filling


@cache
def strace_missing() -> str:
    """Why strace cannot be used; empty if it can."""
    path = shutil.which("strace")
    if path is None:
        return "strace is not installed"
    tried = subprocess.run(
        [path, "-f", "-qq", "-e", "inject=fdatasync:error=EIO", "true"], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"strace cannot trace here: {tried.stderr.strip()}"


def strace(log: Path, *injections: str, of: Path | None = None) -> list[str]:
    """A command prefix that injects faults into system calls, or into those on one file, which exists. The command
    stays our direct child (-D)."""
    reason = strace_missing()
    if reason:
        missing(reason)
    calls = ",".join(each.partition(":")[0] for each in injections)
    injected = [word for each in injections for word in ("-e", f"inject={each}")]
    only = ["-P", str(of)] if of is not None else []
    return ["strace", "-D", "-f", "-qq", "-o", str(log), *only, "-e", f"trace={calls}", *injected]


def compiled(source: str, name: str, directory: Path) -> Path:
    """A shared library made of C source, for LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        missing("no C compiler")
    path = directory / f"{name}.c"
    path.write_text(source)
    library = directory / f"{name}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(path), "-ldl"], check=True)
    return library


@contextmanager
def unprivileged() -> Iterator[None]:
    """Owner and mode of files bind this thread meanwhile, though it may be root's (capget(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, before, without = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), *((ctypes.c_uint32 * 6)() for _ in "12")
    assert libc.capget(header, before) == 0
    without[:] = before[:]
    without[0] &= ~_CAP_DAC  # the first is the lower half of the effective set
    assert libc.capset(header, without) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0
