"""`fastquorum demo`: real processes, a real Kafka metadata log, two kill -9, and a verdict from the disks."""

import argparse
import signal
import sys
from types import FrameType

from fastquorum.cli.arguments import add_format, add_kernels, explain
from fastquorum.errors import UsageError
from fastquorum.types import VOTERS_MAX


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Start a quorum of processes on this machine and append a real Apache Kafka metadata log to it, record by "
        "record, while its leader is killed with SIGKILL twice and restarted.\nThen stop the nodes, look up every "
        "acknowledged record on every disk, and compare the logs byte by byte. Exits 0 if nothing was lost or "
        "duplicated and the logs are the same, else 1.",
        "fastquorum demo",
        "fastquorum demo --nodes 5 --keep /tmp/demo --format json",
    )
    parser.add_argument("--nodes", metavar="N", type=int, default=3, help=f"1 to {VOTERS_MAX} (default: 3)")
    parser.add_argument("--keep", metavar="DIR", help="leave the data directories here (an empty directory)")
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    from fastquorum.cli.demo.play import Options, play
    from fastquorum.cli.demo.screen import screen_for

    if not 1 <= arguments.nodes <= VOTERS_MAX:
        raise UsageError(f"--nodes {arguments.nodes}: a quorum has 1 to {VOTERS_MAX} voters")
    # Otherwise a SIGTERM would leave the nodes running: they would not even notice that their stage is gone.
    signal.signal(signal.SIGTERM, _end)
    options = Options(nodes=arguments.nodes, keep=arguments.keep, kernels=arguments.kernels)
    with screen_for(arguments.format) as screen:
        return play(options, screen)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)
