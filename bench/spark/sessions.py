"""A Spark session for one figure, and what the processes of it hold."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastquorum.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SAMPLE_S: Final = 0.05


@contextlib.contextmanager
def spark_with(cores: int, config: Mapping[str, object] | None = None) -> Iterator["SparkSession"]:
    """`local[cores]`; Java's part of its memory as Spark has it by default (1 GiB)."""
    spark = session("bench", f"local[{cores}]", config)
    try:
        yield spark
    finally:
        spark.stop()


class Watch:
    """The most that this process's children held together, in bytes of resident memory, while it watched."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.peak_python_bytes = 0
        """Of the largest of Spark's Python workers."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            held = children()
            self.peak_bytes = max(self.peak_bytes, sum(size for _, size in held))
            self.peak_python_bytes = max([self.peak_python_bytes, *(size for name, size in held if name == "python")])
            if self._is_over.wait(_SAMPLE_S):
                return


def children() -> list[tuple[str, int]]:
    """Every process below this one: `java` or `python`, and its resident bytes."""
    parents: dict[int, tuple[int, str, int]] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                stat = (entry / "stat").read_text()
                name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
                parents[int(entry.name)] = (int(fields[1]), name, int(fields[21]) * page)
    mine, found = {os.getpid()}, True
    while found:
        more = {each for each, (parent, _, _) in parents.items() if parent in mine} - mine
        mine, found = mine | more, bool(more)
    mine.discard(os.getpid())
    return [("python" if "python" in parents[each][1] else parents[each][1], parents[each][2]) for each in sorted(mine)]
