"""The chapters, in the order in which they are listed: their names, and a line about each.

Each chapter is a Markdown file beside this module. Its first line is its title, as `# Title`.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Final

from fastquorum.errors import UsageError
from fastquorum.meant import one_of


@dataclass(frozen=True)
class Chapter:
    """One chapter of the guide."""

    name: str
    """What `fastquorum guide NAME` takes, and the name of its file without the suffix."""
    summary: str

    @cached_property
    def text(self) -> str:
        """The whole chapter, in Markdown."""
        return (files("fastquorum.guide") / f"{self.name}.md").read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """What its first line says."""
        return self.text.partition("\n")[0].removeprefix("# ")


CHAPTERS: Final = (
    Chapter("start", "install it, run the demo, start three nodes, append the first record"),
    Chapter("embed", "run a node in your program: open, append, read, apply; errors, threads, fork, logs, metrics"),
    Chapter("exactly-once", "named producers: sequences, fencing, and what is remembered"),
    Chapter("elect", "leader election and locks: fencing tokens, what the store must do, what a lease is worth"),
    Chapter("member", "serve clients as a member of a cluster: serving, cluster, partitions, session times"),
    Chapter("testing", "a quorum inside your tests, with partitions and stopped nodes"),
    Chapter("operate", "format, run, watch, stop, restart; disks, settings, signals, exit codes, metrics"),
    Chapter("kafka", "Kafka's brokers, controllers, clients and tools beside it"),
    Chapter("analyze", "audits, reports, tables and Spark, over many logs at once"),
    Chapter("load", "put a quorum under load: sweeps, comparisons, traces and profiles"),
    Chapter("simulate", "seeds, faults, replays, and what the simulator does not cover"),
    Chapter("limits", "what it does not do, and how much it takes of each thing"),
    Chapter("compare", "etcd, ZooKeeper, PySyncObj and this: when to take which"),
    Chapter("contribute", "work on it: set up, the inner loop, the rooms, how to add things, campaigns"),
    Chapter("changes", "what changed, one line each"),
)


def names() -> list[str]:
    """Return the chapters' names, in order."""
    return [chapter.name for chapter in CHAPTERS]


def chapter_of(name: str) -> Chapter:
    """Return the chapter of this name. UsageError: there is none; it lists them, and says which is near."""
    for chapter in CHAPTERS:
        if chapter.name == name:
            return chapter
    raise UsageError(f"there is no chapter {name!r}", one_of("chapters", name, names()))
