"""`fastquorum broker describe`: one broker's registration, and what it holds."""

import argparse

from fastquorum.cli.image.committed_image import committed_image
from fastquorum.cli.image.tables import broker_state, listeners_text
from fastquorum.cli.terminal.arguments import add_quorum, explain, node_number
from fastquorum.cli.terminal.output import print_json, print_table
from fastquorum.controller.image import Image
from fastquorum.controller.image.configs import Resource, ResourceType
from fastquorum.controller.image.registrations import Broker
from fastquorum.controller.image.view import broker_view, configs_view
from fastquorum.errors import UsageError
from fastquorum.types import NodeId


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Describe one registered broker, as the committed metadata says: its registration, how many partitions it has "
        "a replica of, leads and is in sync with, and what was configured for it.",
        "fastquorum broker describe 11 --bootstrap h1:9093,h2:9093,h3:9093",
    )
    parser.add_argument("id", metavar="ID", type=node_number, help="the broker's node.id")
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    image = committed_image(arguments)
    broker = registered(image, arguments.id)
    if arguments.format == "json":
        held, configs = _held(image, broker.id), _configs(image, broker.id)
        print_json({"id": broker.id} | broker_view(broker) | held | {"configs": configs})
    else:
        _show(image, broker)
    return 0


def registered(image: Image, broker_id: NodeId) -> Broker:
    """UsageError if the image has no such broker."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise UsageError(f"broker {broker_id} is not registered", "`fastquorum broker list` lists those that are")
    return broker


def _show(image: Image, broker: Broker) -> None:
    cordoned = broker.cordoned_directories or ()
    rows = [
        ("State", broker_state(broker)),
        ("Epoch", broker.epoch),
        ("IncarnationId", broker.incarnation_id),
        ("Rack", broker.rack or "-"),
        ("Listeners", listeners_text(broker.listeners)),
        ("LogDirs", ", ".join(map(str, broker.directories)) or "-"),
        ("CordonedLogDirs", ", ".join(map(str, cordoned)) or "-"),
        ("Features", ", ".join(f"{each.name} {each.level_min}-{each.level_max}" for each in broker.features) or "-"),
        *((name[0].upper() + name[1:], count) for name, count in _held(image, broker.id).items()),
        ("Configs", ", ".join(f"{name}={value}" for name, value in _configs(image, broker.id).items()) or "-"),
    ]
    print_table(("BROKER", str(broker.id)), rows)


def _held(image: Image, broker_id: NodeId) -> dict[str, int]:
    """Partitions, by what the broker is to them."""
    partitions = [each for topic in image.topics.sorted() for each in topic.partitions]
    return {
        "replicaCount": sum(broker_id in each.replicas for each in partitions),
        "leaderCount": sum(each.leader == broker_id for each in partitions),
        "isrCount": sum(broker_id in each.isr for each in partitions),
    }


def _configs(image: Image, broker_id: NodeId) -> dict[str, str]:
    return configs_view(image, Resource(ResourceType.BROKER, str(broker_id)))
