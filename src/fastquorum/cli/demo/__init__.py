"""`fastquorum demo`: real processes, a real Kafka metadata log or a whole cluster, two kill -9, and a verdict from the
disks."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, positive
from fastquorum.errors import UsageError
from fastquorum.types import VOTERS_MAX

if TYPE_CHECKING:
    from fastquorum.cli.demo.screen import Screen

NODES: Final = 3
BROKERS_MAX: Final = 5


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Start a quorum of processes on this machine and append a real Apache Kafka metadata log to it, record by "
        "record, while its leader is killed with SIGKILL twice and restarted.\nThen stop the nodes, look up every "
        "acknowledged record on every disk, and compare the logs byte by byte. Exits 0 if nothing was lost or "
        "duplicated and the logs are the same, else 1.\n--brokers starts a cluster instead: three controllers, and "
        "brokers that register with them and hold no data. Topics are created; a broker and the active controller are "
        "killed with SIGKILL and return, and another broker leaves. Exits 0 if every acknowledged registration, topic, "
        "fencing and leave is in every controller's log, no fenced broker ever led, and the logs come to the same, "
        "else 1.",
        "fastquorum demo",
        "fastquorum demo --brokers 3",
        "fastquorum demo --nodes 5 --keep /tmp/demo --format json",
    )
    parser.add_argument("--nodes", metavar="N", type=positive, help=f"1 to {VOTERS_MAX} (default: {NODES})")
    parser.add_argument(
        "--brokers", metavar="N", type=positive, help=f"a cluster of three controllers and 1 to {BROKERS_MAX} brokers"
    )
    parser.add_argument("--keep", metavar="DIR", help="leave the data directories here (an empty directory)")
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    from fastquorum.cli.demo.screen import screen_for

    play = _play_of(arguments)
    with screen_for(arguments.format) as screen:
        return play(screen)


def _play_of(arguments: argparse.Namespace) -> "Callable[[Screen], int]":
    """What was asked for. UsageError."""
    from fastquorum.cli.demo.cluster.play import ClusterOptions, play_cluster
    from fastquorum.cli.demo.play import DemoOptions, play

    if arguments.brokers is not None:
        if arguments.nodes is not None:
            raise UsageError("--nodes and --brokers cannot be combined", "a cluster has three controllers")
        if not 1 <= arguments.brokers <= BROKERS_MAX:
            raise UsageError(f"--brokers {arguments.brokers}: the demo starts 1 to {BROKERS_MAX}")
        cluster = ClusterOptions(brokers=arguments.brokers, keep=arguments.keep, kernels=arguments.kernels)
        return lambda screen: play_cluster(cluster, screen)
    nodes = NODES if arguments.nodes is None else arguments.nodes
    if not 1 <= nodes <= VOTERS_MAX:
        raise UsageError(f"--nodes {nodes}: a quorum has 1 to {VOTERS_MAX} voters")
    options = DemoOptions(nodes=nodes, keep=arguments.keep, kernels=arguments.kernels)
    return lambda screen: play(options, screen)
