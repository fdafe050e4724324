"""`python -m bench compare`: who is compared, for how long, and where the results go."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import floors
from bench.compare import charts
from bench.compare.contenders import CONTENDERS, Contender
from bench.compare.goals import verdicts
from bench.compare.run import Comparison, Lengths, Taken
from bench.compare.tables import goal_table, noise, report, sync_table, workload_tables
from bench.compare.workload import CLOSED, WORKLOADS
from bench.facts import facts
from bench.report import check_places, facts_lines
from fastquorum.kernels import load

ROUNDS = 3
INTERRUPTED = 130
"""The exit code that shells expect after SIGINT."""
QUICK = Lengths(slice_s=0.3, floor_s=0.1, warm_share=0.2, settles_disk=False)


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.list:
        print("\n".join(f"{each.name:24} {each.note}".rstrip() for each in CONTENDERS))
        return 0
    contenders = _chosen(options.only)
    check_places(options.directory, options.save)
    load("native")  # fails here, with advice, rather than in three processes
    lengths = QUICK if options.quick else Lengths(slice_s=options.seconds)
    workloads = CLOSED[:2] if options.quick else WORKLOADS
    has_floor = floors.has_compiler()
    if not has_floor:
        print("left out: C floor: no C compiler; Debian, Ubuntu: apt install gcc", file=sys.stderr)
    comparison = Comparison(options.directory, has_floor, lengths, not options.no_syncs)
    found = facts(options.directory)
    interrupted = False
    try:
        comparison.run(contenders, workloads, 1 if options.quick else options.rounds)
    except KeyboardInterrupt:
        interrupted = True
        print("interrupted: what follows is what was measured until now", file=sys.stderr)
    taken = comparison.taken
    decided = verdicts(taken)
    result: dict[str, Any] = {
        "facts": found,
        "quick": options.quick,
        "compare": report(taken, contenders, workloads, decided),
    }
    text = json.dumps(result, indent=1)
    if options.save:
        Path(options.save).write_text(text + "\n")
        _draw(result["compare"], Path(options.save))
    lines = [
        *facts_lines(found),
        noise(taken),
        *_left_out(taken),
        "",
        *sync_table(taken, contenders),
        *workload_tables(taken, contenders, workloads),
        "",
        *goal_table(decided),
    ]
    print(text if options.format == "json" else "\n".join(lines))
    return INTERRUPTED if interrupted else 0 if taken.slices else 1


def _chosen(only: list[str]) -> list[Contender]:
    chosen = [each for each in CONTENDERS if not only or any(text.lower() in each.name.lower() for text in only)]
    unknown = [text for text in only if not any(text.lower() in each.name.lower() for each in CONTENDERS)]
    if unknown:
        names = "; ".join(each.name for each in CONTENDERS)
        raise SystemExit(f"bench: nobody's name contains {unknown[0]!r}; there are: {names}")
    return chosen


def _left_out(taken: Taken) -> list[str]:
    return [
        *(f"left out: {name}: {why}" for name, why in taken.skipped.items()),
        *(f"lost: {x}" for x in taken.failures),
    ]


def _draw(results: dict[str, Any], saved: Path) -> None:
    if not charts.can_draw():
        print("left out: charts: matplotlib is not installed: pip install '.[bench]'", file=sys.stderr)
        return
    for path in charts.draw(results, saved.with_suffix("")):
        print(f"wrote {path}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench compare",
        description="The same workloads on ours, on the peers and on the C floor, taking turns on one disk. Peers are "
        "fetched once, into ~/.cache/fastquorum/peers (or $XDG_CACHE_HOME); what cannot be had is left out and said.",
        epilog="example: python -m bench compare --rounds 3 --directory /data --save compare.json",
    )
    parser.add_argument("--list", action="store_true", help="who there is to compare, and end")
    parser.add_argument("--rounds", type=_positive, default=ROUNDS, metavar="N", help="default: %(default)s")
    parser.add_argument("--seconds", type=_seconds, default=2.0, help="of each slice (default: %(default)g)")
    parser.add_argument(
        "--no-syncs", action="store_true", help="do not begin by counting everybody's syncs with strace"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--save", metavar="FILE", help="write the JSON there as well, and charts beside it")
    parser.add_argument("--quick", action="store_true", help="one short round: shows that it runs, says little")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="those whose name contains this; may be repeated"
    )
    parser.add_argument(
        "--directory",
        default=tempfile.gettempdir(),
        help="where logs are written; take a disk, not a tmpfs (default: %(default)s)",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 600:
        raise argparse.ArgumentTypeError("0.1 to 600")
    return seconds


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
