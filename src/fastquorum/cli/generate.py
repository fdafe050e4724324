"""`fastquorum generate`: metadata logs of made-up clusters, of real size, with what is wrong with them in a list."""

import argparse
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels, natural, positive
from fastquorum.cli.terminal.output import print_json, print_table, progress, tell
from fastquorum.generate import (
    FINDERS,
    LIST,
    START_MS,
    GenerateOptions,
    generate,
    parse_faults,
    parse_span,
    whole_clusters,
)

_SEED: Final = 1
"""The same for everybody: what one has found, another finds."""


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Make metadata logs such as real clusters leave: brokers and topics that come and go, ISR changes, elections, "
        "snapshots. The real controller makes all decisions, in simulated time. `run`, `log verify` and Kafka's tools "
        "open each replica's directory. The same arguments give the same bytes.\n"
        "--faults plants faults, and planted.json lists them: cluster, kind, offset, the brokers or partitions "
        "concerned, and the pipeline that should find it. A cluster has at most one fault of a kind, and only as many "
        "as its time and replicas allow.\n\n"
        "The kinds of faults, and what a pipeline should find:\n"
        + "\n".join(f"  {kind:24}{finder.finds}" for kind, finder in FINDERS.items()),
        "fastquorum generate --out logs --brokers 1000 --partitions 1000000 --hours 24 --seed 7",
        "fastquorum generate --out many --clusters 200 --brokers 4-12 --partitions 1-100 --seed 7 --faults all=5",
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="a new or empty directory; it gets one directory a cluster"
    )
    parser.add_argument(
        "--brokers", metavar="N[-M]", required=True, help="brokers of each cluster; N-M: drawn for each cluster"
    )
    parser.add_argument(
        "--partitions", metavar="N[-M]", required=True, help="partitions of each cluster, with up to 3 replicas"
    )
    parser.add_argument("--hours", metavar="N", type=positive, default=24, help="hours of simulated time (default: 24)")
    parser.add_argument("--clusters", metavar="N", type=positive, default=1, help="(default: 1)")
    parser.add_argument(
        "--seed", metavar="N", type=natural, default=_SEED, help=f"seed of all random choices (default: {_SEED})"
    )
    parser.add_argument(
        "--replicas", metavar="N", type=positive, default=3, help="voters of each cluster's quorum (default: 3)"
    )
    parser.add_argument(
        "--faults",
        metavar="KIND[=COUNT],...",
        default="none",
        help="faults to plant, over all clusters; `all`, `all=COUNT`: that many of each kind (default: none)",
    )
    parser.add_argument(
        "--start-ms",
        metavar="MS",
        type=natural,
        default=START_MS,
        help="when the logs begin, in milliseconds since 1970 (default: the first of January 2026)",
    )
    parser.add_argument(
        "--keep-log",
        action="store_true",
        help="keep the logs from offset 0 on (default: what the first sixth of the snapshots covers is removed, as "
        "by retention)",
    )
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    options = GenerateOptions(
        brokers=parse_span(arguments.brokers, "brokers"),
        partitions=parse_span(arguments.partitions, "partitions"),
        hours=arguments.hours,
        clusters=arguments.clusters,
        seed=arguments.seed,
        replicas=arguments.replicas,
        faults=parse_faults(arguments.faults),
        start_ms=arguments.start_ms,
        keeps_log=arguments.keep_log,
    )
    kernels = load_kernels(arguments.kernels)
    out = arguments.out
    began = time.monotonic()
    is_begun = False

    try:
        with ExitStack() as resources:

            def begin(total: int) -> Callable[[int], None]:
                nonlocal is_begun
                is_begun = True  # what was there before is not ours
                return resources.enter_context(progress("partitions", total))

            report = generate(out, options, kernels, begin)
    except BaseException:
        if is_begun:
            _tell_incomplete(out, options)
        raise
    _show(report, out, time.monotonic() - began, arguments.format)
    return 0


def _tell_incomplete(out: str, options: GenerateOptions) -> None:
    whole = whole_clusters(out)
    tell(
        f"{out} is incomplete: {len(whole)} of {options.clusters} cluster(s) are whole, nothing is left of the next, "
        f"and there is no {LIST}"
    )


def _show(report: dict[str, Any], out: str, took_s: float, how: str) -> None:
    if how == "json":
        print_json(report | {"directory": os.path.abspath(out)})
        return
    rows = [
        (
            each["directory"],
            each["cluster_id"],
            each["brokers"],
            each["partitions"],
            f"{each['start_offset']}..{each['end_offset']}",
            each["epoch"],
            len(each["checkpoints"]),
        )
        for each in report["clusters"]
    ]
    print_table(("CLUSTER", "ID", "BROKERS", "PARTITIONS", "OFFSETS", "EPOCH", "CHECKPOINTS"), rows)
    if report["planted"]:
        print()
        planted = [
            (each["kind"], each["directory"] or each["cluster"], each["offset"], _about(each), each["pipeline"])
            for each in report["planted"]
        ]
        print_table(("PLANTED", "WHERE", "OFFSET", "ABOUT", "PIPELINE"), planted)
    print(f"\n{len(rows)} cluster(s) below {out} in {took_s:.1f} s; {LIST} lists what was planted")


def _about(planted: dict[str, Any]) -> str:
    partition = f"{planted['topic']}-{planted['partition']}" if planted["partition"] is not None else planted["topic"]
    broker = f"broker {planted['broker']}" if planted["broker"] is not None else None
    return ", ".join(each for each in (partition, broker) if each) or "-"
