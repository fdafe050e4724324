"""`fastquorum spark audit-invariants`: does each metadata log keep the promises of a quorum and its controller?"""

import argparse
from typing import Any, Final

from fastquorum.cli.spark import shared
from fastquorum.cli.terminal.output import print_table
from fastquorum.spark.pages.audit_invariants import page_of, subject_of

SHOWN_MAX: Final = 20
"""Findings of a kind on the screen; a file has all."""


def configure(parser: argparse.ArgumentParser) -> None:
    shared.configure(
        parser,
        "Check every invariant that a metadata log can break: epochs never fall and have one leader; offsets have no "
        "gaps; a partition's leader is in its ISR, the ISR within the replicas, its epochs grow as they should; a "
        "broker's epoch is the offset of its registration; a fenced broker leads nothing; a snapshot equals what the "
        "log leads to. Each violation is reported with its record and the state before it; once, however many "
        "replicas have it.\n"
        "Exits 0 if there are only notes (such as a torn end), 1 if an invariant is broken or all logs of a cluster "
        "are empty, and 2 if there is no log.",
        "fastquorum spark audit-invariants '/backup/*/controller-*' --out violations.json",
    )


def run(arguments: argparse.Namespace) -> int:
    shared.check_out(arguments)
    path = shared.path_of(arguments)
    passed_over = shared.passed_over(arguments.master, path)
    with shared.engine_of(arguments, "checking invariants") as engine:
        found = engine.audit_invariants(path)
    from fastquorum.spark.pipelines.invariants import findings
    from fastquorum.spark.stored.logs import find_all

    logs = find_all(path).logs
    report = {
        "logs": len(logs),
        **findings.as_report(found),
        "empty_clusters": findings.empty_clusters(found, logs),
        "passed_over": passed_over,
    }
    shared.hand_out(arguments, lambda: report, lambda: found, page_of, show)
    return 1 if report["violations"] or report["empty_clusters"] else 0


def show(report: dict[str, Any]) -> None:
    shown: dict[str, int] = {}
    rows = []
    found = [*report["violations"], *report["notes"]]
    for row in found:
        shown[row["kind"]] = shown.get(row["kind"], 0) + 1
        if shown[row["kind"]] <= SHOWN_MAX:
            rows.append(_row(row))
    if rows:
        print_table(("CLUSTER", "KIND", "OFFSET", "EPOCH", "NODES", "OF", "SAYS"), rows)
        print()
    for kind, count in shown.items():
        if count > SHOWN_MAX:
            print(f"{count - SHOWN_MAX} more of {kind}: --out has them all")
    for each in report.get("empty_clusters", ()):
        print(f"cluster {each or '-'} could not be checked: all its logs are empty")
    kinds = ", ".join(f"{count} {kind}" for kind, count in report["kinds"].items())
    for kind, remedy in dict.fromkeys((row["kind"], row["remedy"]) for row in found if row["remedy"] is not None):
        print(f"{kind}: {remedy}")
    count = len(report["notes"])
    notes = f"; {count} note{'s' if count > 1 else ''}" if count else ""
    kept = "no invariant of the others is broken" if report.get("empty_clusters") else "every invariant holds"
    print(f"{report['logs']} logs: {kinds or kept}{notes}")


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    says = str(row["says"])
    if row["before"] is not None:
        says += f"; before, since offset {row['before_offset']}: {row['before']}"
    nodes = ",".join("?" if each is None else str(each) for each in row["node_ids"])
    numbers = ("-" if row[name] is None else row[name] for name in ("offset", "epoch"))
    return (row["cluster_id"], row["kind"], *numbers, nodes, subject_of(row), says)
