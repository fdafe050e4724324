"""Files: an append that is synced, and the scan that recovery does, each against the same loop in C on such a file."""

import itertools
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np

from bench import floors, peers
from bench.cases.batches import some_values
from bench.cases.setting import Setting
from bench.measure import GB_PER_S, MICROSECONDS, Case, Contender, Goal, Role
from fastquorum.kernels import Kernels, SegmentFile

APPEND_BYTES = 168
APPENDS_A_SLICE = 20
FILE_BYTES = 8 << 20
SCAN_BYTES = 256 << 20
SCAN_BATCH = (1000, 60)
C_FLOOR, C_READ = "C", "C, memory read"


def cases(setting: Setting) -> Iterator[Case]:
    with tempfile.TemporaryDirectory(dir=setting.directory, prefix="fastquorum-bench-") as directory:
        yield _append(setting, directory)
        yield _scan(setting, directory)


def _append(setting: Setting, directory: str) -> Case:
    """Medians of single appends, so that one slow sync does not speak for its round."""
    contenders = []
    for kernels in setting.kernels:
        file = _zeroed(kernels, f"{directory}/append-{kernels.NAME}.log")
        contenders.append(_own_append(kernels.NAME, file))
    if setting.has_compiler:
        contenders.append(_c_append(_zeroed(setting.kernels[0], f"{directory}/append-c.log")))
    repeat = 3 if setting.is_quick else APPENDS_A_SLICE
    goal = Goal(against=(C_FLOOR,), at_least=1 / 1.05)
    return Case("segment append + fdatasync, p50", f"{APPEND_BYTES} B", MICROSECONDS, contenders, [goal], repeat=repeat)


def _zeroed(kernels: Kernels, path: str) -> SegmentFile:
    file = kernels.SegmentFile(path, "create")
    file.zero_fill(0, FILE_BYTES)
    file.sync()
    return file


def _positions() -> Iterator[int]:
    return itertools.cycle(range(0, FILE_BYTES - APPEND_BYTES, APPEND_BYTES))


def _own_append(name: str, file: SegmentFile) -> Contender:
    data, positions = b"x" * APPEND_BYTES, _positions()

    def run(repeat: int) -> float:
        took = []
        for position in itertools.islice(positions, repeat):
            began = perf_counter_ns()
            file.write(position, data)
            file.sync()
            took.append(perf_counter_ns() - began)
        return statistics.median(took)

    return Contender(name, Role(name), run, lambda: _appended(run, file))


def _c_append(file: SegmentFile) -> Contender:
    data, next_position = b"x" * APPEND_BYTES, 0
    lib = floors.library()

    def run(repeat: int) -> float:
        nonlocal next_position
        took = np.zeros(repeat, np.int64)
        errno = lib.floor_append(file.fileno(), data, len(data), next_position, repeat, took.ctypes.data)
        if errno:
            raise OSError(errno, os.strerror(errno))
        next_position = (next_position + repeat * APPEND_BYTES) % (FILE_BYTES // 2)
        return float(np.median(took))

    return Contender(C_FLOOR, Role.FLOOR, run, lambda: _appended(run, file))


def _appended(run: Callable[[int], float], file: SegmentFile) -> bytes:
    """Two appends, read back with a byte of the zeros behind them."""
    run(2)
    return file.read(0, 2 * APPEND_BYTES + 1)


def _scan(setting: Setting, directory: str) -> Case:
    """Every batch checked (framing, CRC, offsets, epochs), in the page cache; the yardstick reads each byte once."""
    size = (4 << 20) if setting.is_quick else SCAN_BYTES
    path, written = _write_log(setting.kernels[0], directory, size)
    contenders = []
    for kernels in setting.kernels:
        view = kernels.SegmentFile(path, "read").map()
        # The yardstick gives no scan; both contenders are held against what was written.
        contenders.append(_timed(kernels.NAME, Role(kernels.NAME), kernels.scan, view, written))
    if setting.has_compiler:
        lib = floors.library()
        mapped = np.frombuffer(setting.kernels[0].SegmentFile(path, "read").map(), np.uint8)
        expected = lib.floor_read(mapped.ctypes.data, size_of(mapped))

        def read(_: Any) -> Any:
            assert lib.floor_read(mapped.ctypes.data, size_of(mapped)) == expected
            return None

        contenders.append(_timed(C_READ, Role.FLOOR, read, mapped, written))
    goal = Goal(against=(C_READ,), at_least=0.5)
    name = f"{written[0] / (1 << 20):.0f} MiB"
    return Case("recovery scan", name, GB_PER_S, contenders, [goal], amount=written[0], repeat=1)


def size_of(array: Any) -> int:
    return int(array.nbytes)


def _timed(name: str, role: Role, scan: Callable[[Any], Any], view: Any, written: tuple[int, int]) -> Contender:
    def run(repeat: int) -> float:
        began = perf_counter_ns()
        for _ in range(repeat):
            scan(view)
        return (perf_counter_ns() - began) / repeat

    def result() -> tuple[int, int]:
        seen = scan(view)
        return written if seen is None else (seen.valid_bytes, seen.record_count)

    return Contender(name, role, run, result)


def _write_log(kernels: Kernels, directory: str, size: int) -> tuple[str, tuple[int, int]]:
    """A log of about `size` bytes; its path, and (bytes, records)."""
    value_bytes, count = SCAN_BATCH
    template = bytearray(
        kernels.encode_values(
            some_values(value_bytes, count), base_offset=0, leader_epoch=1, timestamp_ms=peers.TIMESTAMP_MS
        )
    )
    batches = size // len(template)
    path = f"{directory}/scan.log"
    with open(path, "wb") as file:
        for number in range(batches):
            kernels.stamp_batch(template, number * count, 1)
            file.write(template)
    return path, (batches * len(template), batches * count)
