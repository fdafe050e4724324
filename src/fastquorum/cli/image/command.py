"""`fastquorum image`: brokers, topics and configurations, as a metadata log says them at an offset."""

import argparse

from fastquorum.cli.image.committed_image import watched_fold
from fastquorum.cli.image.offset import tell_torn, tell_where
from fastquorum.cli.image.tables import (
    BROKER_HEADER,
    PARTITION_HEADER,
    TOPIC_HEADER,
    broker_row,
    listeners_text,
    partition_rows,
    topic_row,
)
from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.terminal.arguments import add_at, add_bootstrap, add_format, add_kernels, explain, load_kernels
from fastquorum.cli.terminal.output import print_json, print_table, working
from fastquorum.cli.terminal.several import for_each
from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.view import image_view, resource_name, topic_view
from fastquorum.errors import UsageError
from fastquorum.kernels import Kernels
from fastquorum.storage.images import fold_as_recovered
from fastquorum.storage.io.opening import open_offline


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Show the state that the records of a metadata log lead to: features, brokers, controllers, topics, "
        "configurations. Reads a data or log directory, ours or Apache Kafka's, and changes nothing. A single "
        "directory cannot tell whether its last records were committed: with --bootstrap the committed log is fetched "
        "from the leader.\n"
        "What an interrupted write left at the log's end is left out, with a note on stderr; damage before it is an "
        "error.",
        "fastquorum image n1",
        "fastquorum image n1 --at 145 --format json",
        "fastquorum image n1 --topic my-topic",
        "fastquorum image backup/* --format json",
        "fastquorum image --bootstrap h1:9093,h2:9093,h3:9093",
        "fastquorum image diff n1 --from 100 --to 145",
    )
    parser.add_argument("paths", metavar="DIR", nargs="*", help="one or more")
    add_at(parser)
    parser.add_argument("--topic", metavar="NAME", help="only this topic, with its partitions")
    add_bootstrap(parser, required=False)
    add_format(parser)
    add_kernels(parser)


def run(arguments: argparse.Namespace) -> int:
    if bool(arguments.paths) == (arguments.bootstrap is not None):
        raise UsageError("name either a directory DIR or running nodes by --bootstrap")
    if arguments.paths:
        kernels = load_kernels(arguments.kernels)
        return for_each(arguments.command, arguments.paths, lambda path: _look(path, kernels, arguments))
    with quorum_client(arguments) as client:
        fold = watched_fold(client, arguments.timeout, arguments.at)
    _tell(fold, arguments, {})
    return 0


def _look(path: str, kernels: Kernels, arguments: argparse.Namespace) -> int:
    with working(f"reading {path}"):
        fold, tail = fold_as_recovered(open_offline(path, kernels), kernels, arguments.at)
    tell_torn(tail)
    if len(arguments.paths) == 1:
        _tell(fold, arguments, {})
        return 0
    if arguments.format == "table":
        print(path)
    _tell(fold, arguments, {"path": path})
    if arguments.format == "table":
        print()
    return 0


def _tell(fold: Fold, arguments: argparse.Namespace, named: dict[str, str]) -> None:
    """`named`: what a JSON object begins with, where there are several."""
    tell_where(fold, arguments.at)
    if arguments.topic is not None:
        _show_topic(fold.image, arguments.topic, arguments.format, named)
    elif arguments.format == "json":
        place = fold.place
        shown = {"endOffset": place.end_offset, "epoch": place.epoch, "timestampMs": place.timestamp_ms}
        print_json(named | shown | image_view(fold.image))
    else:
        _show(fold)


def _show(fold: Fold) -> None:
    image, place = fold.image, fold.place
    open_transaction = f", in a transaction that is open at {fold.next_offset}" if fold.is_in_transaction else ""
    print(f"The image of offsets below {place.end_offset}, epoch {place.epoch}{open_transaction}")
    version = image.features.metadata_version
    levels = ", ".join(f"{name} {level}" for name, level in image.features.by_name().items())
    print(f"Features: {levels or 'none'}{f' ({version})' if version is not None else ''}")
    if image.brokers:
        print()
        print_table(BROKER_HEADER, [broker_row(each) for _, each in sorted(image.brokers.items())])
    if image.controllers:
        print()
        nodes = [(each.id, listeners_text(each.listeners)) for _, each in sorted(image.controllers.items())]
        print_table(("CONTROLLER", "LISTENERS"), nodes)
    if image.topics.ids:
        print()
        print_table(TOPIC_HEADER, [topic_row(topic) for topic in image.topics.sorted()])
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


def _show_topic(image: Image, name: str, format_name: str, named: dict[str, str]) -> None:
    topic = image.topics.named(name)
    if topic is None:
        raise UsageError(f"there is no topic {name!r} in the image", "without --topic every topic is listed")
    if format_name == "json":
        print_json(named | {"name": name} | topic_view(topic))
        return
    print(f"Topic {name}, id {topic.id}")
    print_table(PARTITION_HEADER, partition_rows(topic))
