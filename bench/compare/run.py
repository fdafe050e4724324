"""Rounds: everybody's turn, the floor's slices in between, and what came of it."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.compare.cluster import Cluster, ContenderFailed
from bench.compare.contenders import Contender, Planner
from bench.compare.fetch import Missing
from bench.compare.floor import Floor, settle_disk
from bench.compare.syncs import SyncCount, count_syncs
from bench.compare.workload import CLOSED, BadAnswer, Figures, Workload
from fastquorum.load.stolen import Stolen


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds of each slice."""

    slice_s: float = 2.0
    floor_s: float = 0.5
    warm_share: float = 1.0
    """Part of a contender's own warm-up."""
    settles_disk: bool = True
    """Whether to wait, between two contenders, for the whole system's unwritten pages."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One contender's figures of one workload in one round, and the floor's just before."""

    round: int
    figures: Figures
    floor: Figures | None


@dataclass(slots=True)
class Taken:
    slices: dict[tuple[str, str], list[Slice]] = field(default_factory=dict)
    """By contender and workload."""
    syncs: dict[str, SyncCount] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Contender and why it was left out."""
    stolen: list[float] = field(default_factory=list)
    """For each round the share of the CPU time wanted that a hypervisor gave to other machines."""
    failures: list[str] = field(default_factory=list)
    """Lost parts: a slice, a round of a contender."""


class Comparison:
    """One run of `bench compare`."""

    def __init__(self, directory: str, has_floor: bool, lengths: Lengths, counts_syncs: bool = True) -> None:
        self._directory, self._has_floor, self._lengths = directory, has_floor, lengths
        self._counts_syncs = counts_syncs
        self.taken = Taken()

    def run(self, contenders: Sequence[Contender], workloads: Sequence[Workload], rounds: int) -> Taken:
        """A contender that cannot be had is skipped, one that fails loses that round: nothing ends the run."""
        planners = self._prepare(contenders)
        ready = [each for each in contenders if each.name in planners]
        with self._folder() as directory:
            floor = Floor(directory) if self._has_floor else None
            for contender in ready if self._counts_syncs else ():
                self._count_syncs(contender, planners[contender.name])
            for number in range(rounds):
                stolen = Stolen()
                for contender in ready if number % 2 == 0 else reversed(ready):
                    _tell(f"round {number + 1} of {rounds}: {contender.name}")
                    self._turn(contender, planners[contender.name], workloads, number, floor)
                if (share := stolen.share()) is not None:
                    self.taken.stolen.append(share)
        return self.taken

    def _prepare(self, contenders: Sequence[Contender]) -> dict[str, Planner]:
        planners = {}
        for contender in contenders:
            try:
                planners[contender.name] = contender.prepare()
            except Missing as missing:
                self.taken.skipped[contender.name] = str(missing)
                print(f"left out: {contender.name}: {missing}", file=sys.stderr, flush=True)
        return planners

    def _count_syncs(self, contender: Contender, planner: Planner) -> None:
        _tell(f"counting syncs: {contender.name}")
        with self._folder() as directory:
            try:
                counted = count_syncs(
                    contender.name, planner(directory), directory, self._lengths.slice_s / 2, self._lengths.slice_s / 2
                )
            except (ContenderFailed, BadAnswer) as error:
                counted = SyncCount(0, (), False, str(error))
        self.taken.syncs[contender.name] = counted

    def _turn(
        self, contender: Contender, planner: Planner, workloads: Sequence[Workload], number: int, floor: Floor | None
    ) -> None:
        with self._folder() as directory:
            try:
                with Cluster(contender.name, planner(directory), directory) as cluster:
                    cluster.run(CLOSED[1], contender.warm_s * self._lengths.warm_share)
                    for workload in workloads:
                        self._slice(contender, cluster, workload, number, floor)
            except (ContenderFailed, BadAnswer) as error:
                self._lost(f"round {number + 1}: {error}")
        if self._lengths.settles_disk:
            settle_disk()

    def _slice(
        self, contender: Contender, cluster: Cluster, workload: Workload, number: int, floor: Floor | None
    ) -> None:
        under = floor.run(workload, self._lengths.floor_s) if floor is not None and not workload.rate else None
        try:
            figures = cluster.run(workload, self._lengths.slice_s)
        except BadAnswer as error:
            self._lost(f"round {number + 1}, {workload.name}: {error}")
            return
        self.taken.slices.setdefault((contender.name, workload.name), []).append(Slice(number, figures, under))

    def _lost(self, what: str) -> None:
        self.taken.failures.append(what)
        print(f"lost: {what}", file=sys.stderr, flush=True)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Removed whatever happens, a log that still grows included."""
        folder = Path(tempfile.mkdtemp(dir=self._directory, prefix="fastquorum-compare-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _tell(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)
