"""`fastquorum load compare`: two results, figure by figure, as ratios."""

import argparse

from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import print_json, print_table
from fastquorum.errors import UsageError
from fastquorum.load.reports.compare import compare, differences
from fastquorum.load.reports.history import read


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Print two results of `fastquorum load` side by side, with the ratio of each figure, B over A, and what else "
        "differs between them.\n"
        "Only figures of one machine, taken soon after each other, compare the program and not the machine.",
        "fastquorum load compare before.json after.json",
        "fastquorum load compare before.json bench/history     # the newest result there",
    )
    parser.add_argument("a", metavar="FILE|DIR", help="A: a result (JSON file), or a history's directory: its newest")
    parser.add_argument("b", metavar="FILE|DIR", help="B: another one")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    a, b = read(arguments.a), read(arguments.b)
    lines, differing = compare(a, b), differences(a, b)
    if not lines:
        raise UsageError("the two results have no offered load in common", "compare runs of the same loads")
    if arguments.format == "json":
        print_json({"figures": [line._asdict() for line in lines], "differences": differing})
        return 0
    rows = [
        (line.load, line.figure, _whole(line.a), _whole(line.b), "" if line.ratio is None else f"{line.ratio:.2f}")
        for line in lines
    ]
    print_table(("LOAD", "FIGURE", "A", "B", "B / A"), rows)
    for each in differing:
        print(f"differs: {each}")
    return 0


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
