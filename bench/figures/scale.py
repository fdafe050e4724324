"""What an appended record costs while the log grows, while its epochs do, and while observers join.

Records, and then epochs: a quorum that has so many already, against one that is (nearly) new, turn by turn; the cost of
a record is wall time in batches, 4 of 1,000 in flight, and one by one, 64 in flight; processor time of all three nodes
beside it. The slope is that of the ratios over the size, both as logarithms: 0 is flat, 1 would be proportional.

What is not the log's doing is taken out: the new log has used up the zeros it was made with, so that both lay zeros as
they go; and the memory that the logs will fill is touched first, since a host may give a virtual machine its memory at
the first touch, at many times the price of a page that it has.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from math import log
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from bench.figures import observed
from bench.figures.figure import Goal, Measured, Row, Setting, alone, folder, over
from bench.figures.trio import Node, Trio
from bench.measure import Spread

FLAT: Final = Goal(at_most=1.2)
"""Goal of the cost relative to a new log's: more than that is not noise."""
FILL: Final = {"in_flight": 8, "batch": 1000}
RECORDS_A_FILL: Final = 1_000_000
NEW_RECORDS: Final = (200_000, 600_000)
"""Records with which the reference log begins (more than fit into its zeros), and with which it is replaced."""
MEMORY_BYTES_A_RECORD: Final = 720
"""Touched before anything is measured: twice what three logs hold, as freed pages are not taken again in order."""


class Work(NamedTuple):
    name: str
    in_flight: int
    batch: int
    appends: int


WORKS: Final = (Work("batches of 1,000", 4, 1000, 40), Work("one by one", 64, 1, 6_400))
QUICK_WORKS: Final = (Work("batches of 1,000", 4, 1000, 2), Work("one by one", 64, 1, 200))


class Cost(NamedTuple):
    """Cost of one record, in microseconds."""

    wall_us: float
    cpu_us: float


class Reference:
    """A quorum whose log is new."""

    def __init__(self, setting: Setting, directory: Path) -> None:
        self._begins_with, self._records_max = setting.pick(NEW_RECORDS, (1_000, 200_000))
        self._directory = directory
        self._running = ExitStack()
        self._trio: Trio | None = None
        self._count = 0

    def trio(self) -> Trio:
        if self._trio is not None and self._trio.await_leader().ask("who")["end_offset"] > self._records_max:
            self.close()
        if self._trio is None:
            self._count += 1
            place = folder(self._directory, f"new-{self._count}")
            self._trio = self._running.enter_context(Trio("scale, a new log", place))
            for work in QUICK_WORKS:
                cost_of(self._trio, work)  # warm
            self._trio.await_leader().ask("window", appends=self._begins_with // FILL["batch"], **FILL)
        return self._trio

    def close(self) -> None:
        self._trio = None
        self._running.close()


def measure(setting: Setting, directory: Path) -> Measured:
    measured = Measured(how={"records_max": _levels(setting)[-1], "epochs_max": _epoch_levels(setting)[-1]})
    touch_memory(MEMORY_BYTES_A_RECORD * _levels(setting)[-1])
    reference = Reference(setting, directory)
    try:
        with Trio("scale", folder(directory, "grown")) as trio:
            _series(setting, measured, reference, trio, "records", _with_records(setting, trio))
            _series(setting, measured, reference, trio, "epochs", _with_epochs(setting, trio))
        observed.measure(setting, reference.trio(), folder(directory, "observers"), measured)
    finally:
        reference.close()
    return measured


def touch_memory(size_bytes: int) -> None:
    """Have the machine hold so much memory, at most half of what is free, and let it go again."""
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    np.ones(min(size_bytes, free_bytes // 2), dtype=np.uint8)


def _levels(setting: Setting) -> list[int]:
    most = setting.pick(setting.records_max, 10_000)
    return [each for each in (10**power for power in range(3, 10)) if each <= most]


def _epoch_levels(setting: Setting) -> Sequence[int]:
    levels: Sequence[int] = setting.pick((1, 10, 100, 1000), (1, 4))
    return levels


def _with_records(setting: Setting, trio: Trio) -> Iterator[int]:
    """Level by level, once so many records were appended."""
    for level in _levels(setting):
        while (missing := level - trio.await_leader().ask("who")["end_offset"]) > 0:
            part = min(missing, RECORDS_A_FILL)
            trio.await_leader().ask("window", appends=max(part // FILL["batch"], 1), **FILL)
            setting.say(f"scale: {level - missing + part:,} of {_levels(setting)[-1]:,} records ...")
        yield level


def _with_epochs(setting: Setting, trio: Trio) -> Iterator[int]:
    """Level by level, once the lead was handed over so often; each epoch has a few records."""
    epochs: set[int] = set()
    for level in _epoch_levels(setting):
        while True:
            leader = trio.await_leader()
            epochs.add(leader.ask("who")["epoch"])
            leader.ask("window", in_flight=1, appends=1, batch=10)
            if len(epochs) >= level:
                break
            if len(epochs) % 100 == 0:
                setting.say(f"scale: {len(epochs)} of {_epoch_levels(setting)[-1]:,} epochs ...")
            heir = 1 + (trio.nodes.index(leader) + 1) % len(trio.nodes)
            leader.ask("transfer", to=heir)
        yield level


def _series(
    setting: Setting, measured: Measured, reference: Reference, trio: Trio, name: str, levels: Iterator[int]
) -> None:
    rounds = setting.pick(7, 1)
    works = setting.pick(WORKS, QUICK_WORKS)
    ratios: dict[str, list[tuple[int, Spread]]] = {work.name: [] for work in works}
    details: list[dict[str, Any]] = []
    for level in levels:
        for work in works:
            pairs = [_pair(turn, trio, reference.trio(), work) for turn in range(rounds)]
            what = f"{level:,} {name}, {work.name}"
            is_last = level == (_levels(setting) if name == "records" else _epoch_levels(setting))[-1]
            ours, news = ([pair[at].wall_us for pair in pairs] for at in (0, 1))
            row = over(what, "us a record", ours, "a new log", news, FLAT if is_last else None)
            assert row.ratio is not None
            measured.rows.append(row)
            ratios[work.name].append((level, row.ratio))
            details.append({"what": what, "rounds": [[each._asdict() for each in pair] for pair in pairs]})
            cpu = [pair[0].cpu_us / pair[1].cpu_us for pair in pairs]
            details[-1]["cpu_over_new"] = Spread.of(cpu)._asdict()
    measured.details[name] = details
    measured.rows += [slope_row(f"cost over {name}, {work}", found) for work, found in ratios.items()]


def _pair(turn: int, trio: Trio, new: Trio, work: Work) -> tuple[Cost, Cost]:
    if turn % 2:
        second = cost_of(new, work)
        return cost_of(trio, work), second
    return cost_of(trio, work), cost_of(new, work)


def cost_of(trio: Trio, work: Work) -> Cost:
    leader: Node = trio.await_leader()
    before = trio.cpu_s()
    done = leader.ask("window", in_flight=work.in_flight, appends=work.appends, batch=work.batch)
    return Cost(done["seconds"] / done["count"] * 1e6, (trio.cpu_s() - before) / done["count"] * 1e6)


def slope_row(what: str, ratios: Sequence[tuple[int, Spread]]) -> Row:
    """The exponent k of size^k that fits the medians best."""
    sizes = [log(size) for size, _ in ratios]
    costs = [log(ratio.median) for _, ratio in ratios]
    slope = float(np.polyfit(sizes, costs, 1)[0])
    return alone(f"{what}: slope (0 is flat)", "", [slope])
