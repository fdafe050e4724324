"""`fastquorum spark sim-sweep`: many seeds of the simulator, on Spark's executors."""

import argparse
from typing import Any

from fastquorum.cli.sim.run import add_controller
from fastquorum.cli.sim.sweep import seeds
from fastquorum.cli.spark import shared
from fastquorum.cli.terminal.arguments import add_format, explain, positive
from fastquorum.errors import UsageError
from fastquorum.spark.pages.sim_sweep import page_of

_SEED_MAX = 2**63 - 1
"""That a number of Spark's can be."""


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Simulate the seeds from A up to, not including, B on Spark's executors: the code of `fastquorum sim sweep`, "
        "on as many machines as there are. For each seed that breaks an invariant, report the first one, and look for "
        "a smaller run that breaks it too: fewer nodes, fewer kinds of faults. Exits 1 if there is one.\n"
        "Needs pip install 'fastquorum[spark]', no Java.",
        "fastquorum spark sim-sweep --seeds 0:100000 --controller --master spark://h1:7077 --out seeds.parquet",
    )
    parser.add_argument("--seeds", metavar="A:B", type=seeds, required=True)
    parser.add_argument("--kernels", choices=("mixed", "native", "pure"), default="mixed", help="default: mixed")
    add_controller(parser)
    parser.add_argument("--no-shrink", action="store_true", help="do not shrink failed seeds")
    parser.add_argument(
        "--seeds-a-task", metavar="N", type=positive, default=8, help="seeds that one task simulates (default: 8)"
    )
    shared.add_out(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.seeds.stop > _SEED_MAX:
        raise UsageError(f"--seeds up to {arguments.seeds.stop}", f"Spark counts to {_SEED_MAX}")
    shared.check_out(arguments)
    with shared.spark_of(arguments.master, "simulating the seeds") as spark:
        from fastquorum.spark.engines.run_jobs import sim_sweep
        from fastquorum.spark.pipelines.sim_sweep import as_report

        rows = sim_sweep(
            spark,
            arguments.seeds,
            kernels=arguments.kernels,
            controller=arguments.controller,
            shrinks=not arguments.no_shrink,
            seeds_a_task=arguments.seeds_a_task,
        ).toArrow()
    report = as_report(rows)
    shared.hand_out(arguments, lambda: report, lambda: rows, page_of, show)
    return 1 if report["failed"] else 0


def show(report: dict[str, Any]) -> None:
    for row in report["failed"]:
        print(
            f"seed {row['seed']}: {row['invariant']} broken at {row['virtual_us']} us by node {row['node_id']}: "
            f"{row['detail']}"
        )
        for line in row["shrunk_trace_tail"] or row["trace_tail"]:
            print(f"  {line}")
        print(f"again with: {row['repro']}")
        if row["shrunk_repro"] is not None:
            print(f"shrunk to {row['shrunk_events']:,} of {row['events']:,} events: {row['shrunk_repro']}")
        print()
    totals = report["totals"]
    print(
        f"{report['seeds']:,} seeds, {len(report['failed'])} failed; {totals['events']:,} events, "
        f"{totals['virtual_us'] / 3.6e9:,.1f} virtual hours, {totals['elections']:,} elections, "
        f"{totals['acknowledged']:,} acknowledged"
    )
    for invariant, count in report["invariants"].items():
        print(f"{invariant}: {count} seeds")
