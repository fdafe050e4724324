"""`fastquorum log trim`: closes a log that a crash left open."""

import argparse

from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels
from fastquorum.cli.terminal.output import print_json, print_table, working
from fastquorum.cli.terminal.several import add_paths, for_each
from fastquorum.kernels import Kernels
from fastquorum.storage.io.opening import trim_directory


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Cut torn and zero tails off a log that a crash left open, so that Kafka's tools read it. Synced records are "
        "never cut: if they are damaged nothing is changed, and the exit code is 4.\nThe node must not run; a node "
        "does the same by itself when it starts.",
        "fastquorum log trim n1",
        "fastquorum log trim backup/*",
    )
    add_paths(parser, "DIR")
    add_format(parser)
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    return for_each(arguments.command, arguments.paths, lambda path: _trim(path, kernels, arguments.format))


def _trim(path: str, kernels: Kernels, how: str) -> int:
    with working(f"reading {path}"):
        seen = trim_directory(path, kernels)
    report = {"path": path, "closed": seen.is_closed, "endOffset": seen.end_offset, "records": seen.record_count}
    if how == "json":
        print_json(report)
    else:
        print_table(("TRIMMED", path), list(report.items())[1:])
    return 0
