"""A Spark session for one figure, and what the processes of it hold."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

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
    """What this process's children hold and spend while it watches."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        """Most resident memory that they held together."""
        self.peak_python_bytes = 0
        """Resident memory of the largest of Spark's Python workers."""
        self._began = {each.id: each.cpu_s for each in children()}
        self._spent: dict[int, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def cpu_s(self) -> float:
        """Processor time of all of them, but for what one spent between its last sample and its end."""
        return sum(self._spent.values())

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            held = children()
            self.peak_bytes = max(self.peak_bytes, sum(each.size_bytes for each in held))
            python = (each.size_bytes for each in held if each.name == "python")
            self.peak_python_bytes = max([self.peak_python_bytes, *python])
            self._spent |= {each.id: each.cpu_s - self._began.get(each.id, 0.0) for each in held}
            if self._is_over.wait(_SAMPLE_S):
                return


class Child(NamedTuple):
    """A process below this one."""

    id: int
    name: str
    """`java`, `python`, or what else it is."""
    size_bytes: int
    """Resident."""
    cpu_s: float


def children() -> list[Child]:
    """Every process below this one."""
    parents: dict[int, tuple[int, Child]] = {}
    page, ticks = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                stat = (entry / "stat").read_text()
                name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
                kind = "python" if "python" in name else name
                spent = (int(fields[11]) + int(fields[12])) / ticks
                child = Child(int(entry.name), kind, int(fields[21]) * page, spent)
                parents[child.id] = int(fields[1]), child
    mine, found = {os.getpid()}, True
    while found:
        more = {each for each, (parent, _) in parents.items() if parent in mine} - mine
        mine, found = mine | more, bool(more)
    mine.discard(os.getpid())
    return [parents[each][1] for each in sorted(mine)]
