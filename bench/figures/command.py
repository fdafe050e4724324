"""`python -m bench figures`: which figures are measured, and where the results go."""

import argparse
from typing import Final

from bench import floors
from bench.figures import (
    barriers,
    batches,
    embedding,
    failover,
    idle,
    image,
    overload,
    recovery,
    scale,
    slow_python,
    twins,
)
from bench.figures.figure import Figure, Setting
from bench.figures.running import add_options, positive, run_figures, to_measure

FIGURES: Final = (
    Figure("barriers", "read barriers a second over commits a second, 64 in flight", barriers.measure),
    Figure("recovery", "a node's start on a log of 1 GiB over reading the log from the page cache", recovery.measure),
    Figure("idle", "processor, memory and wake-ups of three nodes that have nothing to do", idle.measure),
    Figure(
        "embedding", "a quorum for tests until it is ready and closed; an open's hold on its loop", embedding.measure
    ),
    Figure("failover", "the leader killed until the next commit, over what the timeouts allow", failover.measure),
    Figure("scale", "cost of a record over records, epochs and observers", scale.measure),
    Figure("native over pure", "whole quorums, every workload of `bench commit`", twins.measure),
    Figure("slow python", "p99 of Kafka clients with a Python thread computing beside each node", slow_python.measure),
    Figure("overload", "twice the knee offered: throughput over the knee's, refusals, memory", overload.measure),
    Figure("image", "the controller's image at 1,000,000 partitions: fold, memory, heartbeats, fencing", image.measure),
    Figure("bytes", "records a second in batches of 1,000 over the C floor", batches.measure),
)


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    wanted = to_measure(FIGURES, options)
    if wanted is None:
        return 0
    setting = Setting(
        options.directory, options.quick, floors.has_compiler(), kills=options.kills, records_max=options.records
    )
    return run_figures(wanted, setting, save=options.save, is_json=options.format == "json")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench figures",
        description="What no microbenchmark shows, each beside its yardstick: "
        + ", ".join(f.name for f in FIGURES)
        + ".",
        epilog="example: python -m bench figures --only failover --kills 20 --directory /data --save figures.json",
    )
    add_options(parser)
    parser.add_argument("--kills", type=positive, default=100, metavar="N", help="of failover (default: %(default)s)")
    parser.add_argument(
        "--records",
        type=_records,
        default=10_000_000,
        metavar="N",
        help="in the largest log of scale, 1000 or more; three nodes keep 107 bytes of each (default: 10 million)",
    )
    return parser


def _records(text: str) -> int:
    number = int(text)
    if number < 1000:
        raise argparse.ArgumentTypeError("at least 1000")
    return number
