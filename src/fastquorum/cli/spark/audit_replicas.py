"""`fastquorum spark audit-replicas`: do the replicas of each cluster hold the same bytes?"""

import argparse
from typing import Any, Final

from fastquorum.cli.spark import shared
from fastquorum.cli.terminal.output import print_table
from fastquorum.spark.pages.audit_replicas import page_of

_COLUMNS: Final = ("cluster_id", "node_id", "directory", "end_offset", "committed_end")

_MORE: Final = {
    "lacking_committed": "lacking committed records",
    "stale_tails": "with a stale tail",
    "torn_ends": "with a torn end",
}
_ORDER: Final = (
    "lacks committed records",
    "divergent",
    "undecided",
    "stale tail",
    "torn end",
    "uncommitted tail",
    "behind",
    "same",
)


def configure(parser: argparse.ArgumentParser) -> None:
    shared.configure(
        parser,
        "Compare the replicas of each cluster batch by batch. A voter has one vote, however many copies of its "
        "directory there are; a directory whose directory id differs from the one in the voters' record has none, and "
        "a note says so. A replica is divergent if it shows what no healthy quorum shows: other bytes of the same "
        "epoch than the majority has, or a fault below what the replica itself had acknowledged or put into a "
        "snapshot. Voters that lack committed records, as a snapshot or a durable mark proves, are reported if no "
        "majority is left that has these records: older copies were restored. What a crash or an election leaves is a "
        "note: a torn end, a deposed leader's stale tail, a tail beyond what a majority has. Only logs are compared. "
        "Snapshots count for what they prove; audit invariants finds damaged ones. Directories without "
        "meta.properties are compared as one cluster, and a note says so.\n"
        "Exits 0 if there are only notes; 1 if a replica is divergent, if voters lack committed records, or if it "
        "cannot be decided, as when a replica cannot be read; 2 if there is no log.",
        "fastquorum spark audit-replicas '/backup/*/controller-*' --out audit.json",
    )


def run(arguments: argparse.Namespace) -> int:
    shared.check_out(arguments)
    path = shared.path_of(arguments)
    passed_over = shared.passed_over(arguments.master, path)
    with shared.engine_of(arguments) as engine:
        audited = engine.audit_replicas(path)
    from fastquorum.spark.pipelines.audit_replicas import as_report

    report = {**as_report(audited), "passed_over": passed_over}
    shared.hand_out(arguments, lambda: report, lambda: audited, page_of, show)
    return 1 if report["divergent"] or report["lacking_committed"] or report["undecided"] else 0


def show(report: dict[str, Any]) -> None:
    """For people: what is wrong first."""
    ordered = sorted(report["replicas"], key=lambda row: _ORDER.index(row["verdict"]))  # stable: by cluster within each
    rows = [(*("-" if row[name] is None else row[name] for name in _COLUMNS), _verdict_text(row)) for row in ordered]
    print_table(("CLUSTER", "NODE", "DIRECTORY", "END", "COMMITTED", "VERDICT"), rows)
    for note in report["notes"]:
        print(f"note: {note['text']}")
    print()
    remedies = {row["verdict"]: row["remedy"] for row in ordered if row["remedy"]}
    for verdict, remedy in remedies.items():
        print(f"{verdict}: {remedy}")
    counts = {name: len(report[name]) for name in ("divergent", "uncommitted_tails", "undecided")}
    more = [f"{len(report[name])} {what}" for name, what in _MORE.items() if report.get(name)]
    print(
        f"{len(rows)} replicas: {counts['divergent']} divergent, {counts['uncommitted_tails']} with an uncommitted "
        f"tail, {counts['undecided']} undecided" + "".join(f", {each}" for each in more)
    )


def _verdict_text(row: dict[str, Any]) -> str:
    text = str(row["verdict"])
    if row["offset"] is not None:
        text += f" from offset {row['offset']} on, {row['bytes']:,} bytes"
    return f"{text}: {row['why']}" if row["why"] else text
