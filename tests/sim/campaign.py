"""The long run: many seeds of the real code, and for every mutant the first seed that catches it, or its scene.

    python -m tests.sim.campaign --seeds 1:5001 --jobs 2 --report sim-campaign.json
    python -m tests.sim.campaign --seeds 1:1001 --controller --seeds-only
    python -m tests.sim.campaign --mutants-only

Known seeds go to tests/sim/known_seeds.json, which the tests read.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, NamedTuple

from fastquorum import sim
from tests.sim import controller_mutants, lease_mutants, mutants, producer_mutants
from tests.sim.lease_scenes import SCENES
from tests.sim.mutants import Mutant, Patches

KNOWN_SEEDS = Path(__file__).with_name("known_seeds.json")
MUTANTS: dict[str, Mutant] = {**mutants.MUTANTS, **producer_mutants.MUTANTS, **controller_mutants.MUTANTS}
SEEDS_MAX = 500
"""Within so many seeds every mutant has to be caught."""


UNEXPECTED = "unexpected error"
"""In place of an invariant, where the code under test raises what it must not."""
ENDS_IN_AN_ERROR: frozenset[str] = frozenset()
"""Mutants whose bug is that."""


class Caught(NamedTuple):
    """The first seed that catches a mutant, and as what."""

    mutant: str
    seed: int
    invariant: str
    detail: str


def run_mutant(name: str, seed: int) -> sim.Report:
    with Patches() as patches:
        MUTANTS[name].apply(patches)
        # The mutants are of Python.
        return sim.run(seed, kernels="pure", controller=name in controller_mutants.MUTANTS)


def is_caught(name: str, report: sim.Report) -> bool:
    """Is a promise broken? An error that nobody expected is the bug's only if it is known to come to that: else the
    mutant itself no longer fits the code."""
    return not report.ok and (report.invariant != UNEXPECTED or name in ENDS_IN_AN_ERROR)


def search(name: str, seeds_max: int = SEEDS_MAX) -> Caught | None:
    """The first catching seed; None if there is none among the first `seeds_max`."""
    return _first_caught(name, map(partial(run_mutant, name), range(1, seeds_max + 1)))


def search_in(pool: Pool, name: str) -> Caught | None:
    """The same, by many processes."""
    return _first_caught(name, pool.imap(partial(run_mutant, name), range(1, SEEDS_MAX + 1)))


def _first_caught(name: str, reports: Iterable[sim.Report]) -> Caught | None:
    for report in reports:
        if is_caught(name, report):
            return Caught(name, report.seed, report.invariant, report.detail)
    return None


def play(name: str) -> Caught | None:
    """A mutant of the lease promise, in the scene that it is for: what that needs, few seeds bring about. Seed 0."""
    with Patches() as patches:
        lease_mutants.MUTANTS[name].apply(patches)
        try:
            SCENES[name]()
        except sim.Violation as broken:
            return Caught(name, 0, broken.invariant, broken.detail)
    return None


def sweep(
    seeds: Iterable[int], jobs: int | None = None, limit_s: float = 0, *, controller: bool
) -> Iterator[sim.Report]:
    """By so many processes, each begun anew: by default by all processors, and to the end."""
    until = time.monotonic() + limit_s
    with get_context("spawn").Pool(jobs) as pool:
        for report in pool.imap_unordered(sim.run_cluster if controller else sim.run_seed, seeds):
            yield report
            if limit_s and time.monotonic() > until:
                pool.terminate()
                return


def failures_of(reports: Iterable[sim.Report]) -> str:
    """Empty if there is none."""
    return "\n".join(str(report) for report in reports if not report.ok)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1:5001", help="first:end")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=0, help="stop the sweep after so many seconds; 0: never")
    parser.add_argument("--report", type=Path, help="write a JSON report here")
    parser.add_argument("--controller", action="store_true", help="the seeds are of clusters")
    parser.add_argument("--mutants-only", action="store_true")
    parser.add_argument("--seeds-only", action="store_true")
    parser.add_argument("--mutant", action="append", help="only this one; may be repeated")
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    failed = False
    if not arguments.seeds_only:
        failed |= not _search_mutants(arguments.jobs, arguments.mutant or [*MUTANTS, *SCENES], report)
    if not arguments.mutants_only:
        first, end = map(int, arguments.seeds.split(":"))
        failed |= not _run_seeds(range(first, end), arguments, report)
    if arguments.report:
        arguments.report.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if failed else 0


def _search_mutants(jobs: int, names: list[str], report: dict[str, Any]) -> bool:
    known = json.loads(KNOWN_SEEDS.read_text()) if KNOWN_SEEDS.exists() else {}
    report["mutants"] = found = {}
    for name in names:
        if name in SCENES:
            caught = play(name)
        else:
            with get_context().Pool(jobs) as pool:
                caught = search_in(pool, name)
        found[name] = None if caught is None else {"seed": caught.seed, "invariant": caught.invariant}
        if name in MUTANTS:
            known[name] = found[name]
            KNOWN_SEEDS.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")
        print(f"{name}: {'NOT CAUGHT' if caught is None else caught[1:]}", flush=True)
    return all(found.values())


def _run_seeds(seeds: range, arguments: argparse.Namespace, report: dict[str, Any]) -> bool:
    totals: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    failures = []
    started = time.monotonic()
    for each in sweep(seeds, arguments.jobs, arguments.limit_s, controller=arguments.controller):
        totals.update(
            seeds=1, ok=each.ok, events=each.events, virtual_us=each.virtual_us, elections=each.elections,
            restarts=each.restarts, acknowledged=each.acknowledged, unknown=each.unknown, barriers=each.barriers,
            committed_records=each.committed_records,
        )  # fmt: skip
        faults.update(each.faults)
        if not each.ok:
            failures.append({"seed": each.seed, "invariant": each.invariant, "detail": each.detail})
            print(each, flush=True)
    seconds = time.monotonic() - started
    report.update(totals=dict(totals), faults=dict(faults), failures=failures, seconds=round(seconds, 1))
    print(f"{totals['ok']} of {totals['seeds']} seeds are good, {totals['events']} events in {seconds:.0f} s")
    return not failures


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted: nothing is reported", file=sys.stderr)
        sys.exit(130)
