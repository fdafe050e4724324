"""A node's start on a large log, from the call that opens it until it could vote, over reading the log from the page
cache.

Opening checks every byte: framing, checksums, offsets, epochs. Started after a crash it also writes again, and syncs,
what the durable mark does not vouch for. `log.open(...).verify()` is what recovery looks at, without starting anything.
"""

import mmap
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np

import fastquorum
from bench import floors
from bench.figures.figure import Goal, Measured, Setting, alone, over
from bench.figures.trio import SOON, Node

BYTES, QUICK_BYTES = 1 << 30, 16 << 20
BATCH: Final = 1000
BATCH_BYTES: Final = 61 + BATCH * 107
BUFFER_BYTES: Final = 2 << 20
"""Size of a read: large, and still within a core's cache."""
IN_FLIGHT: Final = 8
GOAL: Final = Goal(at_least=0.5)
READ, MAPPED = "reading the files (readinto)", "reading memory, mapped (C)"
CLOSED, CRASHED, VERIFY = "start, closed before", "start, killed before", "log.open and verify"


def measure(setting: Setting, directory: Path) -> Measured:
    size = setting.pick(BYTES, QUICK_BYTES)
    rounds = setting.pick(7, 1)
    path = directory / "node"
    node = Node("recovery", "blocking", {"path": str(path), "node_id": 1, **SOON}, directory / "node.stderr")
    try:
        setting.say(f"recovery: writing {size >> 20} MiB ...")
        node.ask("window", in_flight=IN_FLIGHT, appends=size // BATCH_BYTES, batch=BATCH)
    finally:
        node.stop()
    mapped = [np.memmap(file, np.uint8, "r") for file in _files(path)] if setting.has_compiler else []
    _memory(mapped)  # the first look maps the pages
    rates: dict[str, list[float]] = {READ: [], VERIFY: [], CLOSED: [], CRASHED: []}
    if mapped:
        rates[MAPPED] = []
    opened_s: list[float] = []
    log_bytes = _bytes(path)
    for turn in range(rounds):
        setting.say(f"recovery: round {turn + 1} of {rounds} ...")
        for what in rates if turn % 2 == 0 else reversed(rates):
            total, seconds = _once(what, path, mapped, node)
            rates[what].append(total / seconds / 1e9)
            if what == CLOSED:
                opened_s.append(seconds)
    rows = [over(what, "GB/s", rates[what], READ, rates[READ], GOAL) for what in (CLOSED, CRASHED, VERIFY)]
    rows.append(alone(f"{CLOSED}: until it is open", "s", opened_s))
    if mapped:
        rows += [over(what, "GB/s", rates[what], MAPPED, rates[MAPPED]) for what in (CLOSED, VERIFY)]
    how = {"log_bytes": log_bytes, "records_a_batch": BATCH, "rounds": rounds, "read_buffer_bytes": BUFFER_BYTES}
    return Measured(rows, how, {"gb_per_s": rates})


def _files(path: Path) -> list[Path]:
    return sorted((path / "__cluster_metadata-0").glob("*.log"))


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path))


def _once(what: str, path: Path, mapped: "list[np.memmap]", node: Node) -> tuple[int, float]:
    """Bytes looked at, and seconds."""
    if what in (CLOSED, CRASHED):
        return _start(node, path, killed=what == CRASHED)
    total = sum(each.nbytes for each in mapped) if what == MAPPED else _bytes(path)
    began = perf_counter()
    if what == READ:
        _read(_files(path))
    elif what == MAPPED:
        _memory(mapped)
    else:
        found = fastquorum.log.open(path).verify()
        assert found.is_sound, found.findings
    return total, perf_counter() - began


def _start(node: Node, path: Path, *, killed: bool) -> tuple[int, float]:
    """Start the node, as it was closed or killed before, and leave it closed."""
    if killed:
        node.start_again()
        node.ask("window", in_flight=IN_FLIGHT, appends=IN_FLIGHT, batch=BATCH)
        node.kill()
    total = _bytes(path)  # a killed one leaves prepared zeros, which are looked at, too
    node.start_again()
    try:
        return total, float(node.ask("who")["opened_s"])
    finally:
        node.stop()


def _read(files: list[Path]) -> None:
    buffer = mmap.mmap(-1, BUFFER_BYTES)  # begins with a page: copying to some other places is several times slower
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def _memory(mapped: "list[np.memmap]") -> None:
    for each in mapped:
        floors.library().floor_read(each.ctypes.data, each.nbytes)
