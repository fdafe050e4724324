"""The fuzz as a command: so many mutants of a seed, or some of them again."""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import fastquorum
from fastquorum.storage.identity import LogKind

from .drive import GROWTH_MIB_MAX, WARM_UP, Run, fuzz, quorum
from .mutations import Mutant, Mutator
from .report import Counts, Finding, read_mutants, write_mutants
from .target import HANG_S

FAILURE: Final = Path("build/fuzz-failure.jsonl")
Say = Callable[[str], None]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--frames", type=int, default=100_000, metavar="N", help="how many mutants (100000)")
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="another one gives other mutants (7)")
    parser.add_argument(
        "--log",
        choices=[*(each.value for each in LogKind), "both"],
        default="both",
        help="of nodes with which kind of log; both: the first half of the mutants to the one, the rest to the other",
    )
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="send only the mutants of these numbers")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="send the mutants of such a file, one by one")
    parser.add_argument(
        "--failure",
        type=Path,
        default=FAILURE,
        metavar="FILE",
        help=f"where suspects are written, the kind of log behind the name ({FAILURE})",
    )


def campaign(options: argparse.Namespace, say: Say) -> dict[str, Any]:
    """The report; `problems` is empty if all is well."""
    began_s = time.monotonic()
    kinds = [*LogKind] if options.log == "both" else [LogKind(options.log)]
    if options.replay is not None:
        kinds = [LogKind(json.loads(options.replay.read_text().splitlines()[0])["log"])]
    share = -(-options.frames // len(kinds))
    logs, problems = {}, []
    for number, kind in enumerate(kinds):
        counts = Counts()
        with quorum(kind, counts) as run:
            try:
                _run(run, options, range(number * share, min((number + 1) * share, options.frames)), say)
            except Finding as finding:
                problems.append(_problem(finding, run, options))
                say(f"{finding}\n{problems[-1]['again']}")
        logs[kind.value] = counts.as_json()
    seconds = time.monotonic() - began_s
    mutants = sum(each["mutants"] for each in logs.values())
    return {
        "build": fastquorum.build_info().build_kind,
        "seed": options.seed,
        "mutants": mutants,
        "seconds": round(seconds, 1),
        "mutants_per_second": round(mutants / seconds),
        "limits": {"hang_s": HANG_S, "growth_mib": GROWTH_MIB_MAX, "warm_up_mutants": WARM_UP},
        "logs": logs,
        "problems": problems,
    }


def _run(run: Run, options: argparse.Namespace, numbers: range, say: Say) -> None:
    if options.replay is not None:
        _one_by_one(run, read_mutants(options.replay, run.live))
    elif options.only:
        mutator = Mutator(options.seed, run.live)
        _one_by_one(run, (mutator.mutant(number) for number in options.only))
    else:
        fuzz(run, options.seed, numbers, say)


def _one_by_one(run: Run, mutants: Iterable[Mutant]) -> None:
    """Everything is looked at after each, but for the log."""
    run.send_all(mutants, turn=1, check_every=1)
    run.check_log()


def _problem(finding: Finding, run: Run, options: argparse.Namespace) -> dict[str, Any]:
    suspects: Sequence[Mutant] = finding.mutants or list(run.suspects)
    path = options.failure.with_stem(f"{options.failure.stem}-{run.live.kind.value}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_mutants(path, options.seed, run.live, suspects)
    return {
        "kind": finding.kind,
        "detail": finding.detail,
        "log": run.live.kind.value,
        "seed": options.seed,
        "numbers": [each.number for each in suspects],
        "again": f"python -m tests.interop.campaign fuzz --replay {path}",
    }
