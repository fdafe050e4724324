"""`fastquorum log trim`: closes a log that a crash left open."""

import argparse

from fastquorum.cli.arguments import add_format, add_kernels, explain, load_kernels
from fastquorum.cli.output import print_json, print_table, working
from fastquorum.storage.io_open import trim_directory


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Cut torn and zero tails off a log that a crash left open, so that Kafka's tools read it. Synced records are "
        "never cut: if they are damaged nothing is changed, and the exit code is 4.\nThe node must not run; a node "
        "does the same by itself when it starts.",
        "fastquorum log trim n1",
    )
    parser.add_argument("path", metavar="DIR")
    add_format(parser)
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    with working(f"reading {arguments.path}"):
        seen = trim_directory(arguments.path, load_kernels(arguments.kernels))
    said = {"closed": seen.is_closed, "endOffset": seen.end_offset, "records": seen.record_count}
    if arguments.format == "json":
        print_json(said)
    else:
        print_table(("TRIMMED", arguments.path), list(said.items()))
    return 0
