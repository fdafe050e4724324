"""`fastquorum spark timeline`: leaders, fenced brokers, and partitions without enough replicas, over time."""

import argparse
from datetime import UTC, datetime
from typing import Any

from fastquorum.cli.spark import shared
from fastquorum.spark.pages.timeline import page_of


def configure(parser: argparse.ArgumentParser) -> None:
    shared.configure(
        parser,
        "Show the history of each cluster: leaders of the quorum, brokers that were fenced and came back; for how "
        "long partitions were offline, under-replicated, or under their least ISR. --out DIR has a directory for each "
        "of events, partitions, brokers and summary.\n"
        f"{shared.BY_WHICH}\n"
        "Exits 1 if a cluster has no history, as no majority shares a record, or its records contradict each other; "
        "and if a directory could not be read.",
        "fastquorum spark timeline /var/lib/controllers --out timeline.json",
    )


def run(arguments: argparse.Namespace) -> int:
    shared.check_out(arguments)
    path = shared.path_of(arguments)
    inputs = shared.look_in(arguments.master, path)
    with shared.engine_of(arguments) as engine:
        packed = engine.timelines(path)
    from fastquorum.spark.pipelines.choosing import could_look
    from fastquorum.spark.pipelines.timeline import PACKING, as_report

    found = PACKING.unpacked(packed)
    report = {**as_report(found), **inputs._asdict()}
    shared.hand_out(arguments, lambda: report, lambda: PACKING.tables(found), page_of, show)
    return 0 if could_look(report["clusters"]) and not inputs.left_out else 1


def show(report: dict[str, Any]) -> None:
    from fastquorum.spark.pipelines.timeline.summary import as_text

    for cluster in report["clusters"]:
        heading, *lines = as_text(cluster)
        print(heading)
        for event in report["events"]:
            if event["cluster_id"] == cluster["cluster_id"]:
                print(f"{_moment(event['timestamp'])}  {event['offset']:>8}  {event['text']}")
        print()
        for line in lines:
            print(line)
        print()


def _moment(timestamp: str) -> str:
    """Return a time of the report in UTC, always of the same length."""
    moment = datetime.fromisoformat(timestamp).astimezone(UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
