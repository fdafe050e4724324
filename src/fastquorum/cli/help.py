"""`fastquorum help`: explains a command, as its `--help` does."""

import argparse

from fastquorum.cli.terminal.arguments import explain


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Explain a command, or list all of them.",
        "fastquorum help",
        "fastquorum help quorum describe",
    )
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="the command, in one or two words")


def run(arguments: argparse.Namespace) -> int:
    from fastquorum.cli.main import main  # which knows all commands, and imports this one

    return main([*arguments.words, "--help"])
