"""`fastquorum topic describe`: topics with their partitions and configurations."""

import argparse

from fastquorum.cli.image.committed_image import committed_image
from fastquorum.cli.image.tables import PARTITION_HEADER, partition_rows
from fastquorum.cli.terminal.arguments import add_quorum, explain
from fastquorum.cli.terminal.output import print_json, print_table
from fastquorum.controller.image import Image
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.image.view import configs_view, topic_view
from fastquorum.errors import UsageError


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Describe a topic, or all of them, as the committed metadata says: what was configured for it, and for each "
        "partition its leader (-: none), leader epoch, replicas, ISR, eligible leader replicas (KIP-966), and the "
        "replicas that a reassignment adds and removes.\n--format json prints one JSON object a topic.",
        "fastquorum topic describe orders --bootstrap h1:9093,h2:9093,h3:9093",
        "fastquorum topic describe --bootstrap h1:9093 --format json",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this topic (default: all)")
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    image = committed_image(arguments)
    topics = list(image.topics.sorted()) if arguments.name is None else [known_topic(image, arguments.name)]
    for number, topic in enumerate(topics):
        if arguments.format == "json":
            print_json({"name": topic.name, "configs": _configs(image, topic)} | topic_view(topic))
            continue
        if number:
            print()
        _show(image, topic)
    return 0


def known_topic(image: Image, name: str) -> Topic:
    """UsageError if the image has no such topic."""
    topic = image.topics.named(name)
    if topic is None:
        raise UsageError(f"there is no topic {name!r}", "`fastquorum topic list` shows what there is")
    return topic


def _show(image: Image, topic: Topic) -> None:
    print(f"Topic {topic.name}, id {topic.id}")
    if configs := _configs(image, topic):
        print("Configs: " + ",".join(f"{name}={value}" for name, value in configs.items()))
    print_table(PARTITION_HEADER, partition_rows(topic))


def _configs(image: Image, topic: Topic) -> dict[str, str]:
    return configs_view(image, Resource(ResourceType.TOPIC, topic.name))
