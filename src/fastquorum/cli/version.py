"""`fastquorum version`: which one this is, as `--version` says it, too."""

import argparse

from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import print_json
from fastquorum.version import __version__


def configure(parser: argparse.ArgumentParser) -> None:
    explain(parser, "Print the version; `doctor` says more of what is installed.", "fastquorum version")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.format == "json":
        print_json({"version": __version__})
    else:
        print(f"fastquorum {__version__}")
    return 0
