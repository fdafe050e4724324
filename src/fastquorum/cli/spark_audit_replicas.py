"""`fastquorum spark audit-replicas`: do the replicas of each cluster hold the same bytes?"""

import argparse
from typing import Any, Final

from fastquorum.cli import spark_output
from fastquorum.cli.output import print_table
from fastquorum.spark.pages.audit_replicas import page_of

_COLUMNS: Final = ("cluster_id", "node_id", "directory", "end_offset", "committed_end")


def configure(parser: argparse.ArgumentParser) -> None:
    spark_output.configure(
        parser,
        "Compare the replicas of each cluster batch by batch. Who differs from the majority of the voters' directories "
        "is named, with the first offset; what one has beyond a majority was never acknowledged, and is a tail. A "
        "snapshot is of committed records only: who ends below its own has lost some, and is named too. "
        "Directories that no meta.properties is beside are compared as if they were of one cluster, and a note says so."
        "\nExits 1 if a replica is divergent, or nobody can tell.",
        "fastquorum spark audit-replicas '/backup/*/controller-*' --out audit.json",
    )


def run(arguments: argparse.Namespace) -> int:
    spark_output.check_out(arguments.out, arguments.html)
    spark_output.check_in(arguments.master, arguments.path)
    from fastquorum.spark.running import running

    with running(arguments.master) as spark:
        from fastquorum.spark.jobs import audit_replicas
        from fastquorum.spark.pipelines.audit_replicas import as_report

        audited = audit_replicas(spark, arguments.path).toArrow()
    report = as_report(audited)
    spark_output.hand_out(arguments, report, audited, page_of, show)
    return 1 if report["divergent"] or report["undecided"] else 0


def show(report: dict[str, Any]) -> None:
    """For people."""
    rows = [(*("-" if row[name] is None else row[name] for name in _COLUMNS), _said(row)) for row in report["replicas"]]
    print_table(("CLUSTER", "NODE", "DIRECTORY", "END", "COMMITTED", "VERDICT"), rows)
    for note in report["notes"]:
        print(f"note: {note['text']}")
    counts = {name: len(report[name]) for name in ("divergent", "uncommitted_tails", "undecided")}
    print(
        f"\n{len(rows)} replicas: {counts['divergent']} divergent, {counts['uncommitted_tails']} with an uncommitted "
        f"tail, {counts['undecided']} undecided"
    )


def _said(row: dict[str, Any]) -> str:
    text = str(row["verdict"])
    if row["offset"] is not None:
        text += f" from offset {row['offset']} on, {row['bytes']:,} bytes"
    return f"{text}: {row['why']}" if row["why"] else text
