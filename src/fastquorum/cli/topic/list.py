"""`fastquorum topic list`: every topic."""

import argparse

from fastquorum.cli.image.committed_image import committed_image
from fastquorum.cli.image.tables import TOPIC_HEADER, topic_row
from fastquorum.cli.terminal.arguments import add_quorum, explain
from fastquorum.cli.terminal.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "List the topics, as the committed metadata says. LEADERLESS counts partitions without a leader, "
        "UNDER_REPLICATED those with a replica out of sync.\n"
        "--format json prints one JSON object a topic.",
        "fastquorum topic list --bootstrap h1:9093,h2:9093,h3:9093",
    )
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    topics = committed_image(arguments).topics
    rows = [topic_row(topic) for topic in topics.sorted()]
    if arguments.format == "json":
        for name, topic_id, partitions, leaderless, behind in rows:
            print_json(
                {
                    "name": name,
                    "id": str(topic_id),
                    "partitionCount": partitions,
                    "leaderlessCount": leaderless,
                    "underReplicatedCount": behind,
                }
            )
    else:
        print_table(TOPIC_HEADER, rows)
    return 0
