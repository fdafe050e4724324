"""`fastquorum spark demo`: an audit of a real Kafka cluster's directories, and its history, without a system Java."""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from fastquorum.cli.spark import audit_replicas, shared, timeline
from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import tell
from fastquorum.data import unpack_cluster
from fastquorum.spark.pages.demo import page_of


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Read what three controllers of Apache Kafka 4.3.0 left on disk, with a Spark on this machine: which replica "
        "has records that the others lack, and what happened to the cluster. Exits 1 if anything but one uncommitted "
        "tail is found: that would be wrong.",
        "fastquorum spark demo",
    )
    parser.add_argument("--master", metavar="URL", default="local[2]", help="of the Spark cluster (default: local[2])")
    shared.add_html(parser)
    add_format(parser)
    parser.set_defaults(out=None, append=None)


def run(arguments: argparse.Namespace) -> int:
    shared.check_out(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fastquorum-spark-") as directory:
        replicas = unpack_cluster(Path(directory))
        if arguments.format == "table":
            tell(f"the directories of {len(replicas)} real controllers, unpacked into {directory}")
        report = _look(arguments.master, directory)
    report["seconds"] = round(time.monotonic() - began, 1)
    is_complete = not any("unchecked" in each for each in report["timeline"]["clusters"])
    report["ok"] = is_complete and not report["audit"]["divergent"] and len(report["audit"]["uncommitted_tails"]) == 1
    shared.hand_out(arguments, lambda: report, dict, page_of, _show)
    return 0 if report["ok"] else 1


def _look(master: str, directory: str) -> dict[str, Any]:
    with shared.spark_of(master, "reading the logs") as spark:
        from fastquorum.spark.engines import jobs
        from fastquorum.spark.pipelines import audit_replicas, timeline

        audited = jobs.audit_replicas(spark, directory).toArrow()
        packed = jobs.timelines(spark, directory).toArrow()
    timelines = timeline.as_report(timeline.PACKING.unpacked(packed))
    return {"audit": audit_replicas.as_report(audited), "timeline": timelines}


def _show(report: dict[str, Any]) -> None:
    print("Do the replicas hold the same bytes?\n")
    audit_replicas.show(report["audit"])
    print("\nWhat happened?\n")
    timeline.show(report["timeline"])
    print(f"{'GREEN' if report['ok'] else 'RED'}, {report['seconds']} s")
