"""`fastquorum metrics list`: every metric that /metrics serves."""

import argparse

from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "List every metric that a node serves at /metrics (`fastquorum run --metrics`) or pushes by OTLP. Kafka's "
        "raft and log metrics have the names that Kafka's JMX exporter gives them. The text says which metrics only "
        "the leader reports, and which are absent until they are known.",
        "fastquorum metrics list",
        "fastquorum metrics list --format json",
    )
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    from fastquorum.observe.exposition import ALL

    if arguments.format == "json":
        for each in ALL:
            print_json({"name": each.name, "type": each.kind, "help": each.help})
    else:
        print_table(("METRIC", "TYPE", "MEANING"), [(each.name, each.kind, each.help) for each in ALL])
    return 0
