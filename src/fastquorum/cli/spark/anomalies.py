"""`fastquorum spark anomalies`: what is unusual in each cluster's metadata log, and by how much?"""

import argparse
from typing import Any, Final

from fastquorum.cli.spark import shared
from fastquorum.spark.pages.anomalies import MISSING, page_of

_LOOKED_AT: Final = {
    "quorum_elections": "elections of the quorum's leader",
    "broker_departures": "times that a broker went",
    "partition_elections": "changes of a partition's leader",
    "isr_shrinks": "times that an ISR lost members",
}


def configure(parser: argparse.ArgumentParser) -> None:
    shared.configure(
        parser,
        "Find what is unusual: election storms of the quorum and of partitions, brokers that come and go, ISRs that "
        "shrink over and over, record types that suddenly become frequent, snapshots that are missing. Each log is "
        "its own baseline: an event counts as unusual if it happens more often within a window than restarts explain, "
        "and more often than chance explains at the rate of the rest. Each finding has its numbers. \n"
        "Exits 1 if something is unusual, or if a cluster or directory could not be checked.",
        "fastquorum spark anomalies '/backup/*' --window-minutes 10 --sensitivity high",
    )
    parser.add_argument(
        "--window-minutes",
        type=float,
        default=30.0,
        metavar="N",
        help="window in which events are counted (default: 30)",
    )
    parser.add_argument(
        "--sensitivity",
        choices=("low", "normal", "high"),
        default="normal",
        help="low: a finding needs twice as many events; high: half as many (default: normal)",
    )


def run(arguments: argparse.Namespace) -> int:
    shared.check_out(arguments)
    path = shared.path_of(arguments)
    inputs = shared.look_in(arguments.master, path)
    with shared.engine_of(arguments, "looking for what is unusual") as engine:
        found = engine.anomalies(path, arguments.window_minutes, arguments.sensitivity)
    from fastquorum.spark.pipelines.anomalies.findings import as_report

    report = {**as_report(found), **inputs._asdict()}
    shared.hand_out(arguments, lambda: report, lambda: found, page_of, show)
    return 1 if inputs.left_out else verdict(report)


def verdict(report: dict[str, Any]) -> int:
    """Return the exit code. A cluster that could not be checked is not fine."""
    from fastquorum.spark.pipelines.choosing import could_look

    return 1 if report["findings"] or not could_look(report["clusters"]) else 0


def show(report: dict[str, Any]) -> None:
    for cluster in report["clusters"]:
        findings = [each for each in report["findings"] if each["cluster_id"] == cluster["cluster_id"]]
        print(f"cluster {cluster['cluster_id']}: {len(findings)} findings")
        for each in findings:
            print(f"  {each['kind']}: {each['text']}")
        for line in _looked_at(cluster):
            print(f"  {line}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in report["kinds"].items())
    unchecked = sum("unchecked" in each for each in report["clusters"])
    not_looked_at = f"; {unchecked} could not be checked" if unchecked else ""
    print(f"{len(report['clusters'])} clusters: {kinds or 'nothing unusual'}{not_looked_at}")


def _looked_at(cluster: dict[str, Any]) -> list[str]:
    if "unchecked" in cluster:
        return [f"it could not be checked: {cluster['unchecked']}"]
    from fastquorum.spark.pipelines.anomalies.counting import minutes

    window = cluster["window_ms"] / 60_000
    lines = [
        f"{cluster[name]['count']} {what}; at most {cluster[name]['most']} of one in {window:g} min, "
        f"{cluster[name]['too_many']} are too many"
        for name, what in _LOOKED_AT.items()
    ]
    if cluster["missing_records"]:
        lines.insert(0, MISSING.format(cluster["missing_records"]))
    if cluster["record_mix"] is not None:
        lines.append(f"the usual mix of records is not known: {cluster['record_mix']}")
    return [
        f"checked {minutes(cluster['lasted_ms'])} up to offset {cluster['end_offset']}, {cluster['snapshots']} "
        "snapshots",
        *([f"not proven: {cluster['unproven']}"] if "unproven" in cluster else []),
        *lines,
    ]
