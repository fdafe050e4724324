"""`fastquorum broker list`: every registered broker."""

import argparse

from fastquorum.cli.image.committed_image import committed_image
from fastquorum.cli.image.tables import BROKER_HEADER, broker_row
from fastquorum.cli.terminal.arguments import add_quorum, explain
from fastquorum.cli.terminal.output import print_json, print_table
from fastquorum.controller.image.view import broker_view


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "List the registered brokers, as the committed metadata says. STATE is active, fenced (silent, or not ready "
        "yet: it leads nothing), or stopping (in controlled shutdown).\n--format json prints one JSON object a broker.",
        "fastquorum broker list --bootstrap h1:9093,h2:9093,h3:9093",
        "fastquorum broker list --bootstrap h1:9093 --format json | jq 'select(.fenced).id'",
    )
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    image = committed_image(arguments)
    brokers = [each for _, each in sorted(image.brokers.items())]
    if arguments.format == "json":
        for each in brokers:
            print_json({"id": each.id} | broker_view(each))
    else:
        print_table(BROKER_HEADER, [broker_row(each) for each in brokers])
    return 0
