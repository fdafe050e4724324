"""`fastquorum image`: brokers, topics and configurations, as a metadata log says them at an offset."""

import argparse
from typing import Final

from fastquorum.cli.arguments import add_format, add_kernels, explain, load_kernels, natural
from fastquorum.cli.output import print_json, print_table, working
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.partition import Partition
from fastquorum.controller.image.registrations import Broker, Listener
from fastquorum.controller.image.topics import Topic
from fastquorum.controller.image.view import features_view, image_view, resource_name, topic_view
from fastquorum.errors import UsageError
from fastquorum.storage.images import fold_log
from fastquorum.storage.io_open import open_offline
from fastquorum.types import NO_NODE

_PARTITION_HEADER: Final = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "ADDING", "REMOVING")


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Show what the records of a metadata log come to: features, brokers, controllers, topics, configurations. "
        "Reads a data or log directory, ours or Apache Kafka's, and changes nothing. Nobody knows of the last records "
        "of a single directory whether they were committed.",
        "fastquorum image n1",
        "fastquorum image n1 --at 145 --format json",
        "fastquorum image n1 --topic my-topic",
        "fastquorum image diff n1 --from 100 --to 145",
    )
    parser.add_argument("path", metavar="DIR")
    parser.add_argument(
        "--at",
        metavar="OFFSET",
        type=natural,
        help="what the records below this offset come to (default: all there are)",
    )
    parser.add_argument("--topic", metavar="NAME", help="only this topic, with its partitions")
    add_format(parser)
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    kernels = load_kernels(arguments.kernels)
    with working(f"reading {arguments.path}"):
        fold = fold_log(open_offline(arguments.path, kernels), kernels, arguments.at)
    if arguments.topic is not None:
        _show_topic(fold.image, arguments.topic, arguments.format)
    elif arguments.format == "json":
        place = fold.place
        shown = {"endOffset": place.end_offset, "epoch": place.epoch, "timestampMs": place.timestamp_ms}
        print_json(shown | image_view(fold.image))
    else:
        _show(fold)
    return 0


def _show(fold: Fold) -> None:
    image, place = fold.image, fold.place
    open_transaction = f", in a transaction that is open at {fold.next_offset}" if fold.is_in_transaction else ""
    print(f"The image of offsets below {place.end_offset}, epoch {place.epoch}{open_transaction}")
    version = image.features.metadata_version
    levels = ", ".join(f"{name} {level}" for name, level in features_view(image.features).items())
    print(f"Features: {levels or 'none'}{f' ({version})' if version is not None else ''}")
    if image.brokers:
        print()
        rows = [
            (each.id, _state(each), each.epoch, each.rack or "-", _listeners(each.listeners))
            for _, each in sorted(image.brokers.items())
        ]
        print_table(("BROKER", "STATE", "EPOCH", "RACK", "LISTENERS"), rows)
    if image.controllers:
        print()
        nodes = [(each.id, _listeners(each.listeners)) for _, each in sorted(image.controllers.items())]
        print_table(("CONTROLLER", "LISTENERS"), nodes)
    if image.topics.ids:
        print()
        header = ("TOPIC", "ID", "PARTITIONS", "LEADERLESS", "UNDER_REPLICATED")
        print_table(header, [_topic_row(topic) for topic in image.topics.sorted()])
    if image.configs:
        print()
        settings = [
            (resource_name(resource), name, value)
            for resource, values in sorted(image.configs.items())
            for name, value in sorted(values.items())
        ]
        print_table(("CONFIGURATION OF", "NAME", "VALUE"), settings)
    others = {
        "client quotas": len(image.quotas),
        "access control entries": len(image.acls),
        "SCRAM credentials": len(image.scram),
        "delegation tokens": len(image.tokens),
    }
    if any(others.values()):
        print("\nAlso: " + ", ".join(f"{count} {what}" for what, count in others.items() if count))


def _show_topic(image: Image, name: str, format_name: str) -> None:
    topic = image.topics.named(name)
    if topic is None:
        raise UsageError(f"there is no topic {name!r} in the image", "without --topic every topic is listed")
    if format_name == "json":
        print_json({"name": name} | topic_view(topic))
        return
    print(f"Topic {name}, id {topic.id}")
    print_table(_PARTITION_HEADER, [(number, *_partition_row(each)) for number, each in topic.partitions.items()])


def _topic_row(topic: Topic) -> tuple[object, ...]:
    leaderless = sum(not each.has_leader for each in topic.partitions)
    behind = sum(len(each.isr) < len(each.replicas) for each in topic.partitions)
    return topic.name, topic.id, len(topic.partitions), leaderless, behind


def _partition_row(partition: Partition) -> tuple[object, ...]:
    nodes = (partition.replicas, partition.isr, partition.elr, partition.adding, partition.removing)
    leader = "-" if partition.leader == NO_NODE else partition.leader
    return leader, partition.leader_epoch, *(",".join(map(str, each)) or "-" for each in nodes)


def _state(broker: Broker) -> str:
    if broker.fenced:
        return "fenced"
    return "stopping" if broker.in_controlled_shutdown else "active"


def _listeners(listeners: tuple[Listener, ...]) -> str:
    hosts = ((each, f"[{each.host}]" if ":" in each.host else each.host) for each in listeners)
    return ", ".join(f"{each.name}://{host}:{each.port}" for each, host in hosts) or "-"
