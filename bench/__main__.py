"""`python -m bench [kernels] [commit]`: measure, print a table or JSON. `... compare`: against peers;
`... controllers`: against Kafka's controllers; `... spark`: the data pipeline; `... budget`: what a commit costs;
`... figures`: goals that no microbenchmark shows."""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import commit, floors
from bench.cases import Setting, kernel_cases
from bench.facts import facts
from bench.measure import Outcome, measure
from bench.report import facts_lines, kernel_table, outcome_json

ROUNDS, ROUND_MS = 9, 20.0
QUICK_ROUNDS, QUICK_ROUND_MS = 5, 0.4
SUITES = ("kernels", "commit")


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in COMMANDS:
        return COMMANDS[words[0]](words[1:])
    options = _parser().parse_args(arguments)
    unknown = set(options.suite) - set(SUITES)
    if unknown:
        raise SystemExit(f"bench: no suite {sorted(unknown)[0]!r}; there are {', '.join(SUITES)}")
    if options.only and options.suite != ["kernels"]:
        raise SystemExit("bench: --only chooses among the kernels' cases: python -m bench kernels --only TEXT")
    setting = Setting(options.directory, options.quick, floors.has_compiler())
    report: dict[str, Any] = {"facts": facts(options.directory), "quick": options.quick}
    lines = facts_lines(report["facts"])
    for suite in options.suite or SUITES:
        results, table = RUN[suite](setting, options.only)
        report[suite] = results
        lines += ["", *table]
    text = json.dumps(report, indent=1)
    if options.save:
        Path(options.save).write_text(text + "\n")
    print(text if options.format == "json" else "\n".join(lines))
    return 0


def _kernels(setting: Setting, only: str) -> tuple[list[dict[str, Any]], list[str]]:
    rounds, round_ms = (QUICK_ROUNDS, QUICK_ROUND_MS) if setting.is_quick else (ROUNDS, ROUND_MS)
    outcomes: list[Outcome] = []
    for case in kernel_cases(setting):
        if only not in f"{case.group}, {case.name}":
            continue
        print(f"{case.group}, {case.name} ...", file=sys.stderr, flush=True)
        outcomes.append(measure(case, rounds, round_ms))
    if not outcomes:
        raise SystemExit(f"bench: no case's name contains {only!r}")
    return [outcome_json(outcome) for outcome in outcomes], kernel_table(outcomes)


def _commit(setting: Setting, only: str) -> tuple[list[dict[str, Any]], list[str]]:
    results = commit.run(setting)
    return results, commit.commit_table(results)


def _compare(arguments: list[str]) -> int:
    from bench.compare.command import main as compare  # the suites do without it

    return compare(arguments)


def _instructions(arguments: list[str]) -> int:
    from bench.instructions import main as instructions

    return instructions(arguments)


def _budget(arguments: list[str]) -> int:
    from bench.budget import main as budget

    return budget(arguments)


def _figures(arguments: list[str]) -> int:
    from bench.figures.command import main as figures

    return figures(arguments)


def _controllers(arguments: list[str]) -> int:
    from bench.controllers.command import main as controllers

    return controllers(arguments)


def _spark(arguments: list[str]) -> int:
    from bench.spark.command import main as spark

    return spark(arguments)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "budget": _budget,
    "compare": _compare,
    "controllers": _controllers,
    "figures": _figures,
    "instructions": _instructions,
    "spark": _spark,
}
"""Words that are no suites: commands with options of their own."""
RUN = {"kernels": _kernels, "commit": _commit}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ratios against yardsticks of the same run.")
    parser.add_argument(
        "suite",
        nargs="*",
        help=f"{', '.join(SUITES)}; all if none is named. Or a command: {', '.join(COMMANDS)} (--help there)",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--save", metavar="FILE", help="write the JSON there as well")
    parser.add_argument("--quick", action="store_true", help="small and short: shows that it runs, says little")
    parser.add_argument("--only", default="", metavar="TEXT", help="kernel cases whose name contains this")
    parser.add_argument(
        "--directory",
        default=tempfile.gettempdir(),
        help="where files are written; take a disk, not a tmpfs (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
