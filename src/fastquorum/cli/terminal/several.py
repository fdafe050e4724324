"""Commands that take several paths, as an unquoted glob gives them."""

import argparse
from collections.abc import Callable, Sequence

from fastquorum.cli.terminal.output import tell
from fastquorum.errors import FastQuorumError


def add_paths(parser: argparse.ArgumentParser, metavar: str) -> None:
    parser.add_argument("paths", metavar=metavar, nargs="+", help="one or more")


def for_each(command: str, paths: Sequence[str], look: Callable[[str], int]) -> int:
    """Look at each path in turn; return the highest exit code. One that cannot be used keeps none from being looked
    at; a single one raises what it raises."""
    if len(paths) == 1:
        return look(paths[0])
    worst = 0
    for path in paths:
        try:
            worst = max(worst, look(path))
        except FastQuorumError as error:
            tell(f"fastquorum {command}: {error}")
            worst = max(worst, error.exit_code)
    return worst
