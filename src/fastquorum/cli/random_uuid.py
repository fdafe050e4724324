"""`fastquorum random-uuid`."""

import argparse

from fastquorum.cli.terminal.arguments import explain
from fastquorum.node.io.directory import new_directory_id


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Draw a random id, as `kafka-storage random-uuid` does: one for the cluster, and one for each data directory.",
        "fastquorum random-uuid",
    )


def run(arguments: argparse.Namespace) -> int:
    print(new_directory_id())
    return 0
