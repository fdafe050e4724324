"""`fastquorum topic create`: a topic, with its partitions placed by the controller or by hand."""

import argparse
from collections.abc import Sequence
from typing import Final

from fastquorum.cli.quorum.controller_requests import asking, only
from fastquorum.cli.terminal.arguments import add_quorum, explain, positive, sendable
from fastquorum.cli.terminal.output import print_json
from fastquorum.errors import UsageError
from fastquorum.types import NodeId, is_whole
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

_VERSION: Final = 7
_CONTROLLERS_CHOICE: Final = -1
_FACTOR_MAX: Final = 2**15 - 1
_PARTITIONS_MAX: Final = 2**31 - 1

CreatableTopic = CreateTopicsRequest.CreatableTopic


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Create a topic. Its partitions are on the brokers that the controller chooses, or on those of --assignment: "
        "for each partition its replicas, the preferred leader first.",
        "fastquorum topic create orders --partitions 12 --replication-factor 3 --bootstrap h1:9093,h2:9093,h3:9093",
        "fastquorum topic create orders --assignment 11:12:13,12:13:11 --bootstrap h1:9093",
        "fastquorum topic create orders --config retention.ms=3600000 --config min.insync.replicas=2 "
        "--bootstrap h1:9093",
    )
    parser.add_argument("name", metavar="NAME", type=sendable)
    parser.add_argument("--partitions", metavar="N", type=positive, help="partitions (default: the controller's)")
    parser.add_argument(
        "--replication-factor", metavar="N", type=positive, help="replicas of each one (default: the controller's)"
    )
    parser.add_argument(
        "--assignment", metavar="ID:ID,...", help="brokers of each partition, in place of the two numbers"
    )
    parser.add_argument(
        "--config",
        metavar="KEY=VALUE",
        type=sendable,
        action="append",
        default=[],
        help="a topic's configuration; may be repeated",
    )
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    topic = _topic_of(arguments)
    change, look = f"topic {topic.name} was created", f"fastquorum topic describe {topic.name}"
    with asking(arguments, change=change, look=look) as controller:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=controller.deadline.left_ms)
        answer = controller.ask(
            request, _VERSION, CreateTopicsResponse, lambda response: only(response.topics).error_code
        )
        created = only(answer.topics)
        controller.check(created.error_code, created.error_message)
    if arguments.format == "json":
        print_json(
            {
                "name": created.name,
                "id": str(created.topic_id),
                "partitionCount": created.num_partitions,
                "replicationFactor": created.replication_factor,
                "configs": {each.name: each.value for each in topic.configs},
            }
        )
    else:
        print(f"Created topic {created.name}.")
    return 0


def _topic_of(arguments: argparse.Namespace) -> CreatableTopic:
    if arguments.assignment is not None:
        if arguments.partitions is not None or arguments.replication_factor is not None:
            raise UsageError("--assignment gives the numbers of partitions and replicas", "leave the numbers out")
        assignments = [
            CreatableTopic.CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in enumerate(_assignment(arguments.assignment))
        ]
        partitions = factor = _CONTROLLERS_CHOICE
    else:
        assignments = []
        partitions = _number("--partitions", arguments.partitions, _PARTITIONS_MAX)
        factor = _number("--replication-factor", arguments.replication_factor, _FACTOR_MAX)
    return CreatableTopic(
        name=arguments.name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=assignments,
        configs=[
            CreatableTopic.CreatableTopicConfig(name=name, value=value) for name, value in _configs(arguments.config)
        ],
    )


def _number(option: str, value: int | None, value_max: int) -> int:
    if value is not None and value > value_max:
        raise UsageError(f"{option}: {value} is above {value_max}")
    return _CONTROLLERS_CHOICE if value is None else value


def _assignment(text: str) -> list[list[NodeId]]:
    """Return the brokers of each partition. All further checks are the controller's."""
    partitions = []
    for number, part in enumerate(text.split(",")):
        brokers = [each.strip() for each in part.split(":")]
        if not all(is_whole(each) and int(each) < 2**31 for each in brokers):
            raise UsageError(f"--assignment: {part!r}, of partition {number}, is not ID:ID:...")
        partitions.append([int(each) for each in brokers])
    return partitions


def _configs(texts: Sequence[str]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--config: {text!r} is not KEY=VALUE")
        if name in found:
            raise UsageError(f"--config: {name} is given twice")
        found[name] = value
    return list(found.items())
