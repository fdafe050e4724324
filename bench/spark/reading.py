"""Table `records` of a log of 1 GiB, read by Spark on two cores, beside who reads it without Spark or without us.

The job is the same for everybody: how many records, the sum of their values' lengths, the highest offset, the earliest
time. It needs three columns, which is what is asked for; all columns, two, and a tenth of the offsets are told as well.
"""

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.figures.figure import Goal, Measured, Row, Setting, alone, over
from bench.spark.logs import user_log
from bench.spark.sessions import spark_with
from fastquorum.spark.scan import TableScan

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

BYTES, QUICK_BYTES = 1 << 30, 4 << 20
KAFKA_PYTHON_SHARE: Final = 16
"""What kafka-python reads is a sixteenth of it: it would take minutes."""
ROUNDS: Final = 5
PROCESSES: Final = 2
ROWS: Final = 10_000
"""Rows of a frame for kafka-python's records: Spark's default."""
COLUMNS: Final = "offset,timestamp,value"
OURS, ALL, TWO, TENTH = "Spark, the job's columns", "Spark, all columns", "Spark, two columns", "Spark, a tenth"
ARROW = "two processes, to Arrow"
VALUES = "two processes, to records"
KAFKA = "Spark, kafka-python in mapInPandas"


class Sums(NamedTuple):
    """What the job comes to."""

    records: int
    value_bytes: int
    offset_max: int
    timestamp_ms_min: int


def measure(setting: Setting, directory: Path) -> Measured:
    size = setting.pick(BYTES, QUICK_BYTES)
    rounds = setting.pick(ROUNDS, 1)
    setting.say(f"read: writing {size >> 20} MiB ...")
    whole, small = directory / "whole", directory / "small"
    part = max(size // KAFKA_PYTHON_SHARE, 1 << 20)
    records, few = user_log(whole, size), user_log(small, part, segment_bytes=part // (2 * PROCESSES))
    context = multiprocessing.get_context("spawn")
    with spark_with(PROCESSES) as spark, ProcessPoolExecutor(PROCESSES, context) as pool:
        contenders: dict[str, Callable[[], Sums]] = {
            OURS: lambda: by_spark(spark, whole, columns=COLUMNS),
            ALL: lambda: _all_columns(spark, whole, records),
            TWO: lambda: _two_columns(spark, whole),
            TENTH: lambda: by_spark(spark, whole, columns=COLUMNS, fromOffset=records - records // 10),
            ARROW: lambda: _apart(pool, _to_arrow, whole),
            VALUES: lambda: _apart(pool, _to_records, whole),
            KAFKA: lambda: _by_kafka_python(spark, small),
        }
        expected = contenders[ARROW]()
        assert contenders[OURS]() == contenders[VALUES]() == expected, "they read different records"
        assert contenders[KAFKA]() == by_spark(spark, small, columns=COLUMNS), "kafka-python reads other records"
        took: dict[str, list[float]] = {name: [] for name in contenders}
        for turn in range(rounds):
            setting.say(f"read: round {turn + 1} of {rounds} ...")
            for name in contenders if turn % 2 == 0 else reversed(contenders):
                began = perf_counter()
                contenders[name]()
                took[name].append(perf_counter() - began)
    return Measured(_rows(took, records, few), {"log_bytes": size, "records": records, "rounds": rounds}, {"s": took})


def _rows(took: dict[str, list[float]], records: int, few: int) -> list[Row]:
    def rates(name: str, count: int = records) -> list[float]:
        return [count / seconds / 1e6 for seconds in took[name]]

    ours = rates(OURS)
    return [
        over(OURS, "M records/s", ours, VALUES, rates(VALUES), Goal(at_least=0.6)),
        over(OURS, "M records/s", ours, ARROW, rates(ARROW), Goal(at_least=0.6)),
        over(OURS, "M records/s", ours, KAFKA, rates(KAFKA, few), Goal(at_least=20)),
        over(ALL, "M records/s", rates(ALL), OURS, ours),
        over(f"{TWO}: time", "s", took[TWO], ALL, took[ALL]),
        over(f"{TENTH}: time", "s", took[TENTH], OURS, took[OURS], Goal(at_most=0.3)),
        alone("Spark, the job's columns: time", "s", took[OURS]),
    ]


# --- the job, by each -------------------------------------------------------------------------------------------------


def by_spark(spark: "SparkSession", path: Path | str, **options: Any) -> Sums:
    """The job over table `records`, read with these options."""
    return _summed(spark.read.format("fastquorum").options(**options).load(str(path)))


def _summed(frame: "DataFrame") -> Sums:
    from pyspark.sql import functions as f

    row = frame.agg(
        f.count("*"), f.sum(f.length("value")), f.max("offset"), f.min(f.unix_millis(f.col("timestamp")))
    ).first()
    assert row is not None
    return Sums(*row)


def _all_columns(spark: "SparkSession", path: Path, records: int) -> Sums:
    """Spark asks a Python source for every column of its schema, whatever the query needs."""
    frame = spark.read.format("fastquorum").load(str(path))
    return _summed(frame)


def _two_columns(spark: "SparkSession", path: Path) -> Sums:
    from pyspark.sql import functions as f

    frame = spark.read.format("fastquorum").option("columns", "offset,epoch").load(str(path))
    row = frame.agg(f.count("*"), f.max("offset"), f.max("epoch")).first()
    assert row is not None
    return Sums(row[0], 0, row[1], 0)


def _apart(pool: ProcessPoolExecutor, read: Callable[[str, int, int], Sums], path: Path) -> Sums:
    """Each process takes every other task."""
    parts = list(pool.map(read, [str(path)] * PROCESSES, range(PROCESSES), [PROCESSES] * PROCESSES))
    return Sums(
        sum(each.records for each in parts),
        sum(each.value_bytes for each in parts),
        max(each.offset_max for each in parts),
        min(each.timestamp_ms_min for each in parts),
    )


def _to_arrow(path: str, number: int, count: int) -> Sums:
    import pyarrow.compute as pc

    scan = TableScan.of({"path": path, "columns": COLUMNS})
    records, size, last, first = 0, 0, -1, 1 << 62
    for task in scan.tasks()[number::count]:
        for batch in scan.read(task):
            records += batch.num_rows
            size += pc.sum(pc.binary_length(batch["value"])).as_py()
            last = max(last, pc.max(batch["offset"]).as_py())
            first = min(first, pc.min(batch["timestamp"]).cast("int64").as_py() // 1000)
    return Sums(records, size, last, first)


def _to_records(path: str, number: int, count: int) -> Sums:
    """Read a log without a node, half of the batches each, as a program does."""
    from fastquorum.kernels import load

    kernels = load("native")
    records, size, last, first = 0, 0, -1, 1 << 62
    for segment in _segments(Path(path))[number::count]:
        data = segment.read_bytes()
        for info in kernels.batch_headers(data):
            assert info.crc_valid
            for record in kernels.decode_records(data, info.position, verify_crc=False):
                records += 1
                size += len(record.value or b"")
                last = max(last, record.offset)
                first = min(first, record.timestamp_ms)
    return Sums(records, size, last, first)


def _by_kafka_python(spark: "SparkSession", path: Path) -> Sums:
    files = spark.createDataFrame([(str(each),) for each in _segments(path)], "path string").repartition(PROCESSES)
    return _summed(files.mapInPandas(_decode, "offset long, timestamp timestamp, value binary"))


def _decode(frames: "Iterable[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
    import pandas as pd

    for frame in frames:
        rows = _kafka_rows(frame["path"])
        while some := list(itertools.islice(rows, ROWS)):
            found = pd.DataFrame(some, columns=["offset", "timestamp", "value"])
            found["timestamp"] = pd.to_datetime(found["timestamp"], unit="ms")
            yield found


def _kafka_rows(paths: Iterable[str]) -> Iterator[tuple[int, int, bytes]]:
    from kafka.record import MemoryRecords

    for path in paths:
        records = MemoryRecords(Path(path).read_bytes())
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            for record in batch:
                yield record.offset, record.timestamp, record.value


def _segments(path: Path) -> list[Path]:
    return sorted(path.glob("*/*.log"))
