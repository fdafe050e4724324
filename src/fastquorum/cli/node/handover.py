"""`fastquorum handover`: a replica's epoch and vote between our nodes and Apache Kafka's."""

import argparse

from fastquorum.cli.terminal.arguments import add_format, add_kernels, explain, load_kernels
from fastquorum.cli.terminal.output import print_json, print_table, working
from fastquorum.storage.io.handover import hand_to_kafka, take_from_kafka


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Let Apache Kafka's controller run on the data directory of a fastquorum node, or the other way round. A "
        "replica must never forget how it voted: its epoch and vote are written and synced where the new owner keeps "
        "them, and removed from the old place, so that the old owner can no longer run.\n"
        "Stop both before. If the command is interrupted, run it again. For metadata logs only.",
        "fastquorum handover --to-kafka n1",
        "fastquorum handover --from-kafka /var/lib/kafka/metadata",
    )
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--to-kafka", metavar="DIR", help="from fastquorum's node to Kafka's")
    way.add_argument("--from-kafka", metavar="DIR", help="from Kafka's node to fastquorum's")
    add_kernels(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    is_to_kafka = arguments.to_kafka is not None
    path = arguments.to_kafka if is_to_kafka else arguments.from_kafka
    with working(f"reading {path}"):
        state = hand_to_kafka(path, kernels) if is_to_kafka else take_from_kafka(path, kernels)
    voted = state.voted_key.id if state.voted_key is not None else -1
    report = {"owner": "kafka" if is_to_kafka else "fastquorum", "epoch": state.epoch, "leaderId": state.leader_id}
    report["votedId"] = voted
    if arguments.format == "json":
        print_json(report)
    else:
        print_table(("HANDED OVER", path), list(report.items()))
    return 0
