"""Table `records` of a log of 1 GiB as a stream in one process, `fastquorum.tables.open`, beside our own decoding.

The yardstick is what a stream is made of: the kernel that makes columns of batches, called in a loop over the bytes of
each segment, and Arrow arrays over its columns. It plans no tasks, finds no logs, and checks nothing between files. The
job and its columns are those of `reading`; who reads the log to other sums is not timed.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bench.figures.figure import Goal, Measured, Row, Setting, alone, over
from bench.spark.logs import user_log
from bench.spark.reading import BYTES, COLUMNS, QUICK_BYTES, ROUNDS, Sums
from fastquorum import tables
from fastquorum.kernels import load
from fastquorum.kernels.rows import Want
from fastquorum.spark.stored import arrow

OURS: Final = "tables.open, one thread"
TWO: Final = "tables.open, two threads"
DECODING: Final = "decoding alone, one thread"


def measure(setting: Setting, directory: Path) -> Measured:
    size = setting.pick(BYTES, QUICK_BYTES)
    rounds = setting.pick(ROUNDS, 1)
    setting.say(f"open: writing {size >> 20} MiB ...")
    path = directory / "log"
    records = user_log(path, size)
    contenders: dict[str, Callable[[], Sums]] = {
        DECODING: lambda: _decoded(path),
        OURS: lambda: _streamed(path, 1),
        TWO: lambda: _streamed(path, 2),
    }
    found = {name: run() for name, run in contenders.items()}
    assert len(set(found.values())) == 1, f"they read different records: {found}"
    assert found[OURS].records == records
    took: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        setting.say(f"open: round {turn + 1} of {rounds} ...")
        for name in contenders if turn % 2 == 0 else reversed(contenders):
            began = perf_counter()
            contenders[name]()
            took[name].append(perf_counter() - began)
    return Measured(_rows(took), {"log_bytes": size, "records": records, "rounds": rounds}, {"s": took})


def _rows(took: dict[str, list[float]]) -> list[Row]:
    return [
        over(f"{OURS}: time", "s", took[OURS], DECODING, took[DECODING], Goal(at_most=1.3)),
        over(f"{TWO}: time", "s", took[TWO], OURS, took[OURS]),
        alone(f"{DECODING}: time", "s", took[DECODING]),
    ]


def _streamed(path: Path, threads: int) -> Sums:
    with tables.open(path, threads=threads, columns=COLUMNS) as reader:
        return _summed((batch["offset"], batch["timestamp"], batch["value"]) for batch in reader)


def _decoded(path: Path) -> Sums:
    """Each segment read whole, each so many rows as the table takes at once."""
    kernels = load("native")

    def columns() -> Iterable[tuple[Any, Any, Any]]:
        reader = kernels.RowReader((), Want.VALUES, is_metadata=False)
        for segment in sorted(path.glob("*/*.log")):
            data, position = segment.read_bytes(), 0
            while position < len(data):
                position = reader.read(data, position)
                rows = reader.take()
                assert rows.values is not None
                offsets = arrow.numbers(rows.offsets, pa.int64())
                yield offsets, arrow.timestamps(rows.timestamps_ms), arrow.binaries(rows.values)

    return _summed(columns())


def _summed(columns: Iterable[tuple[Any, Any, Any]]) -> Sums:
    records, size, last, first = 0, 0, -1, 1 << 62
    for offsets, timestamps, values in columns:
        records += len(offsets)
        size += pc.sum(pc.binary_length(values)).as_py()
        last = max(last, pc.max(offsets).as_py())
        first = min(first, pc.min(timestamps).cast("int64").as_py() // 1000)
    return Sums(records, size, last, first)
