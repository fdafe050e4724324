"""How a read grows: with cores, with the number of logs, and what memory it takes with the bytes of one log."""

from pathlib import Path
from time import perf_counter
from typing import Final

from bench.figures.figure import Goal, Measured, Setting, alone, over
from bench.spark.logs import user_log
from bench.spark.reading import COLUMNS, by_spark
from bench.spark.sessions import Watch, spark_with

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_TINY: Final = _MIB
ROUNDS: Final = 5
LOGS: Final = (10, 100, 1000)
QUICK_LOGS: Final = (1, 2, 20)
LOG_BYTES: Final = _MIB


def cores(setting: Setting, directory: Path) -> Measured:
    """The job of `read` with one core and with two, each in a session of its own."""
    size, rounds = setting.pick(_GIB, 4 * _MIB), setting.pick(ROUNDS, 1)
    log = directory / "log"
    user_log(log, size)
    took = {count: _timed(count, log, rounds) for count in (1, 2)}
    rates = {count: [size / seconds / 1e6 for seconds in took[count]] for count in took}
    row = over("two cores", "MB/s", rates[2], "one core", rates[1], Goal(at_least=1.7))
    return Measured([row], {"log_bytes": size, "rounds": rounds}, {"s": took})


def many(setting: Setting, directory: Path) -> Measured:
    """Logs of a MiB each: the time for each more of them, from 100 to 1,000 over from 10 to 100. What a query costs by
    itself is in neither."""
    counts, rounds = setting.pick(LOGS, QUICK_LOGS), setting.pick(3, 1)
    setting.say(f"logs: writing {counts[-1]} ...")
    for number in range(counts[-1]):
        user_log(directory / f"{number:04}", LOG_BYTES, cluster_id=f"{number:022}")
    took: dict[int, list[float]] = {count: [] for count in counts}
    with spark_with(2) as spark:
        for turn in range(rounds + 1):
            for count in counts:
                paths = ",".join(str(directory / f"{number:04}") for number in range(count))
                began = perf_counter()
                by_spark(spark, paths, columns=COLUMNS)
                if turn:  # the first is a warm-up
                    took[count].append(perf_counter() - began)
    few, some, lots = counts
    slopes = [_each(took, few, some), _each(took, some, lots)]
    what, than = f"{some} to {lots} logs: time for each more", f"{few} to {some} logs"
    row = over(what, "s", slopes[1], than, slopes[0], Goal(at_most=1.5))
    return Measured([row], {"log_bytes": LOG_BYTES, "rounds": rounds}, {"s": took})


def _each(took: dict[int, list[float]], few: int, many: int) -> list[float]:
    return [(most - least) / (many - few) for least, most in zip(took[few], took[many], strict=True)]


def memory(setting: Setting, directory: Path) -> Measured:
    """Resident memory of Spark's processes (JVM and Python workers of `local[1]`) while one core reads a log of 2 GiB,
    and of 10, over what they hold while they read a MiB."""
    sizes = setting.pick((2 * _GIB, 10 * _GIB), (4 * _MIB,))
    tiny = directory / "tiny"
    user_log(tiny, _TINY)
    base, rows, details = _held(tiny), [], {}
    for size in sizes:
        setting.say(f"memory: a log of {size / _GIB:.3g} GiB ...")
        log = directory / str(size)
        user_log(log, size)
        found = _held(log)
        details[size] = {"peak_bytes": found.peak_bytes, "python_bytes": found.peak_python_bytes}
        more = (found.peak_bytes - base.peak_bytes) / _GIB
        rows.append(alone(f"log of {size / _GIB:.3g} GiB: more than of 1 MiB", "GiB", [more], Goal(at_most=1)))
        rows.append(alone("the largest Python worker", "GiB", [found.peak_python_bytes / _GIB]))
        for file in log.glob("*/*.log"):
            file.unlink()
    rows.append(alone("of a log of 1 MiB: JVM and workers", "GiB", [base.peak_bytes / _GIB]))
    return Measured(rows, {}, {"base_bytes": base.peak_bytes, **details})


def _held(log: Path) -> Watch:
    """All columns, in a session of its own."""
    with Watch() as watch, spark_with(1) as spark:
        spark.read.format("fastquorum").load(str(log)).write.format("noop").mode("overwrite").save()
    return watch


def _timed(count: int, log: Path, rounds: int) -> list[float]:
    """Seconds, after a warm-up, in a session with so many cores."""
    took = []
    with spark_with(count) as spark:
        for turn in range(rounds + 2):
            began = perf_counter()
            by_spark(spark, log, columns=COLUMNS)
            if turn >= 2:
                took.append(perf_counter() - began)
    return took
