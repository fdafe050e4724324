"""`fastquorum demo`: real processes, a real Kafka metadata log or a whole cluster, two kill -9, and a verdict from the
disks."""

import argparse
from typing import Final

from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels, positive
from fastquorum.errors import UsageError
from fastquorum.types import VOTERS_MAX

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
    from fastquorum.cli.demo.cluster.play import play_cluster
    from fastquorum.cli.demo.play import play
    from fastquorum.cli.demo.screen import JsonScreen, TextScreen

    nodes, brokers = NODES if arguments.nodes is None else arguments.nodes, arguments.brokers
    if brokers is not None and arguments.nodes is not None:
        raise UsageError("--nodes and --brokers cannot be combined", "a cluster has three controllers")
    if brokers is not None and not 1 <= brokers <= BROKERS_MAX:
        raise UsageError(f"--brokers {brokers}: the demo starts 1 to {BROKERS_MAX}")
    if not 1 <= nodes <= VOTERS_MAX:
        raise UsageError(f"--nodes {nodes}: a quorum has 1 to {VOTERS_MAX} voters")
    kernels = load_kernels(arguments.kernels)
    screen = JsonScreen() if arguments.format == "json" else TextScreen()
    if brokers is not None:
        return play_cluster(brokers, arguments.keep, kernels, screen)
    return play(nodes, arguments.keep, kernels, screen)
