"""The page of the demo: an audit of a real cluster, and its history."""

from typing import Any

from fastquorum.pages import Card, Page, Prose, Section
from fastquorum.pages.chart import Pen
from fastquorum.spark.pages import audit_replicas, timeline
from fastquorum.spark.pages.words import counted, text


def page_of(report: dict[str, Any]) -> Page:
    """Make the page of the demo's report: `audit` and `timeline`, each as its own command has it."""
    audit, story = report["audit"], report["timeline"]
    return Page(
        title="fastquorum spark demo",
        heading="Three controllers of Apache Kafka 4.3.0",
        subtitles=[
            "What they left on disk: an audit of it, and what happened.",
            f"{counted(len(audit['replicas']), 'directory', 'directories')}, looked at in {report['seconds']} s.",
        ],
        report=report,
        cards=[
            Card("verdict", "GREEN" if report["ok"] else "RED", Pen.GOOD if report["ok"] else Pen.BAD),
            Card("divergent replicas", text(len(audit["divergent"])), Pen.BAD if audit["divergent"] else None),
            Card("uncommitted tails", text(len(audit["uncommitted_tails"]))),
            Card("events", text(len(story["events"]))),
        ],
        warnings=[*audit_replicas.warnings_of(audit), *timeline.warnings_of(story)],
        sections=[
            Section("Do the replicas hold the same bytes?", [Prose("From `fastquorum audit replicas`.")]),
            *audit_replicas.sections_of(audit),
            Section("What happened?", [Prose("From `fastquorum report timeline`.")]),
            *timeline.sections_of(story),
        ],
    )
