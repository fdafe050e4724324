"""The C yardsticks: compiled once a run into a temporary directory, called through ctypes or run as a program."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "floor"
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-Wall")


def has_compiler() -> bool:
    return shutil.which(_compiler()) is not None


@cache
def library() -> Any:
    """`floor/kernels.c`, loaded."""
    lib = ctypes.CDLL(str(_compile("kernels.c", "-shared", "-fPIC", result="kernels.so")))
    data, size, count, long = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_long
    prototypes: dict[str, tuple[Any, ...]] = {
        "floor_crc32c": (ctypes.c_uint32, data, size),
        "floor_crc32c_ns": (ctypes.c_double, data, size, long),
        "floor_encode": (size, data, data, count, ctypes.c_int64, data),
        "floor_encode_ns": (ctypes.c_double, data, data, count, ctypes.c_int64, data, long),
        "floor_append": (count, count, data, size, ctypes.c_int64, count, data),
        "floor_read": (ctypes.c_uint64, data, size),
    }
    for name, (result, *arguments) in prototypes.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


@cache
def commit_program() -> Path:
    """`floor/floor.c`: the three processes."""
    return _compile("floor.c", result="floor")


@cache
def callgrind_marks() -> Path:
    """`floor/callgrind.c`: needs valgrind's header, which comes with valgrind."""
    return _compile("callgrind.c", "-shared", "-fPIC", result="callgrind.so")


def _compile(source: str, *flags: str, result: str) -> Path:
    target = Path(_directory().name) / result
    try:
        subprocess.run([_compiler(), *FLAGS, *flags, str(SOURCES / source), "-o", str(target)], check=True)
    except FileNotFoundError:
        raise SystemExit("bench: no C compiler; install gcc (Debian, Ubuntu: apt install gcc) or set CC") from None
    return target


def _compiler() -> str:
    return os.environ.get("CC", "cc")


@cache
def _directory() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="fastquorum-bench-")
