"""`fastquorum spark timeline`: who led when, who was fenced, which partitions were without enough replicas."""

import argparse
import json
from typing import Any

from fastquorum.cli import spark_output
from fastquorum.cli.output import print_json
from fastquorum.spark.pages.timeline import page_of


def configure(parser: argparse.ArgumentParser) -> None:
    spark_output.configure(
        parser,
        "Tell what each cluster went through, by the records that a majority of the directories share: leaders of the "
        "quorum, brokers that were fenced and came back; for how long partitions were offline, under-replicated, or "
        "under their least ISR.",
        "fastquorum spark timeline /var/lib/controllers --out timeline.json",
    )


def run(arguments: argparse.Namespace) -> int:
    spark_output.check_out(arguments.out, arguments.html)
    from fastquorum.spark.running import running

    with running(arguments.master) as spark:
        from fastquorum.spark.jobs import timeline

        happened = timeline(spark, arguments.path).toArrow()
        summaries = timeline(spark, arguments.path, "summary").toArrow()
    report = as_report(happened.to_pylist(), summaries.to_pylist())
    spark_output.write(arguments.out, happened, report)
    spark_output.write_html(arguments.html, page_of(report))
    if arguments.format == "json":
        print_json(report)
    else:
        show(report)
    return 0


def as_report(happened: list[dict[str, Any]], summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """For programs: events in order, and a summary of each cluster."""
    events = [event | {"timestamp": event["timestamp"].isoformat()} for event in happened]
    events.sort(key=lambda event: (event["cluster_id"] or "", event["offset"]))
    told = [json.loads(each["summary"]) for each in summaries]
    return {"events": events, "clusters": sorted(told, key=lambda each: each["cluster_id"] or "")}


def show(report: dict[str, Any]) -> None:
    """For people."""
    from fastquorum.spark.pipelines.timeline import as_text

    for cluster in report["clusters"]:
        for event in report["events"]:
            if event["cluster_id"] == cluster["cluster_id"]:
                print(f"{event['timestamp'][11:23]}  {event['offset']:>8}  {event['text']}")
        print()
        for line in as_text(cluster):
            print(line)
        print()
