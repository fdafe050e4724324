"""`fastquorum top`: the quorum live in a terminal, its nodes' roles, rates, lags and percentiles."""

import argparse
import sys

from fastquorum.cli.terminal.arguments import (
    add_format,
    add_timeout,
    explain,
    parse_bootstrap,
    port_number,
    positive_seconds,
)
from fastquorum.client.endpoints import parse_endpoints


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Show the quorum live: the leader, how far each replica is behind, and for nodes that serve metrics "
        "(`fastquorum run --metrics`) rates and percentiles since the last refresh. Works while nodes are down, and "
        "while there is no leader. Ends with q or Ctrl-C. With --once, or if stdout is not a terminal, it prints "
        "instead; exit code 3 means that no leader was found.",
        "fastquorum top --bootstrap h1:9093,h2:9093,h3:9093 --metrics-port 9404",
        "fastquorum top --bootstrap h1:9093 --metrics h1:9404,h2:9404 --once --format json",
    )
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT,...", required=True, help="any nodes; the others are found through them"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--metrics", metavar="HOST:PORT,...", help="where nodes serve their metrics")
    where.add_argument("--metrics-port", metavar="PORT", type=port_number, help="every node serves its metrics there")
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=positive_seconds,
        default=2.0,
        help="seconds between two refreshes (default: 2)",
    )
    add_timeout(parser, "a node that does not answer within this time counts as down", 2.0)
    parser.add_argument("--once", action="store_true", help="query twice, print what changed in between, and end")
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    from fastquorum.cli.top.looking import Looker
    from fastquorum.cli.top.showing import show_live, show_once, show_repeatedly

    metrics = parse_endpoints("--metrics", arguments.metrics) if arguments.metrics is not None else ()
    bootstrap = parse_bootstrap(arguments.bootstrap)
    with Looker(bootstrap, metrics, arguments.metrics_port, arguments.timeout) as looker:
        if arguments.once:
            return show_once(looker, arguments.interval, arguments.format)
        if arguments.format == "json" or not sys.stdout.isatty():
            return show_repeatedly(looker, arguments.interval, arguments.format)
        return show_live(looker, arguments.interval)
