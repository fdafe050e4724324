"""`fastquorum topic reassign`: replicas are moved to other brokers, no more moved, or looked after while they move."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from fastquorum.cli.image.committed_image import watched_fold
from fastquorum.cli.image.tables import nodes_text
from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.quorum.controller_requests import ControllerClient
from fastquorum.cli.terminal.arguments import add_quorum, explain
from fastquorum.cli.terminal.output import print_json, print_table, tell
from fastquorum.cli.topic.reassignment_plan import Planned, read_plan
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image import Image
from fastquorum.controller.image.partition import Partition
from fastquorum.errors import PeerProtocolError, UsageError
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import error_name
from fastquorum.wire.messages.partitions import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse

_VERSION: Final = 1
_EXIT_REFUSED: Final = 1
_EXIT_MOVING: Final = 3

ReassignableTopic = AlterPartitionReassignmentsRequest.ReassignableTopic
PartitionResponse = AlterPartitionReassignmentsResponse.ReassignableTopicResponse.ReassignablePartitionResponse


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Begin to move replicas as a plan says: the JSON file that kafka-reassign-partitions takes. A reassignment "
        "under way is replaced. FROM is what a partition had before: use it to move back.\n"
        "--cancel ends the moves of the plan's partitions: they get back the replicas from before.\n"
        "--status shows for each partition of the plan whether it is as planned, on the way, or neither; without a "
        "plan, all that are on the way.\n"
        "Exit codes: 1 if the controller refused any partition (the others are moved), or with --status if any is "
        "neither; 3 with --status while any is on the way. --format json prints one JSON object a partition.",
        "fastquorum topic reassign plan.json --bootstrap h1:9093,h2:9093,h3:9093",
        "fastquorum topic reassign --status plan.json --bootstrap h1:9093",
        "fastquorum topic reassign --cancel plan.json --bootstrap h1:9093",
    )
    parser.add_argument(
        "plan",
        metavar="PLAN",
        nargs="?",
        help='a file: {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}',
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--cancel", action="store_true", help="cancel what is under way")
    what.add_argument("--status", action="store_true", help="change nothing, show the progress")
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.plan is None and not arguments.status:
        raise UsageError("a PLAN file is missing", "only --status works without one")
    plan = read_plan(arguments.plan) if arguments.plan is not None else None
    with quorum_client(arguments) as client:
        image = watched_fold(client, arguments.timeout).image
        if arguments.status:
            return _show_status(image, plan, arguments.format)
        assert plan is not None
        responses = _alter(client, plan, arguments)
    _show_answers(image, plan, responses, arguments)
    return _EXIT_REFUSED if any(each.error_code for each in responses) else 0


# --- asking -----------------------------------------------------------------------------------------------------------


def _alter(client: QuorumClient, plan: Sequence[Planned], arguments: argparse.Namespace) -> list[PartitionResponse]:
    """Send the request; return the response for each partition, in the plan's order."""
    deadline = Deadline(arguments.timeout)
    done = "no more moved" if arguments.cancel else "moved"
    controller = ControllerClient(
        client, deadline, change=f"the plan's replicas are {done}", look="fastquorum topic reassign --status"
    )
    topics: dict[str, ReassignableTopic] = {}
    for each in plan:
        topic = topics.setdefault(each.topic, ReassignableTopic(name=each.topic))
        replicas = None if arguments.cancel else list(each.replicas)
        topic.partitions.append(
            ReassignableTopic.ReassignablePartition(partition_index=each.partition, replicas=replicas)
        )
    request = AlterPartitionReassignmentsRequest(timeout_ms=deadline.left_ms, topics=list(topics.values()))
    answer = controller.ask(
        request, _VERSION, AlterPartitionReassignmentsResponse, lambda response: response.error_code
    )
    controller.check(answer.error_code, answer.error_message)
    found = {(topic.name, each.partition_index): each for topic in answer.responses for each in topic.partitions}
    if found.keys() != {(each.topic, each.partition) for each in plan}:
        raise PeerProtocolError("the response is not about the partitions of the request")
    return [found[each.topic, each.partition] for each in plan]


def _show_answers(
    image: Image, plan: Sequence[Planned], responses: Sequence[PartitionResponse], arguments: argparse.Namespace
) -> None:
    rows = []
    for each, answer in zip(plan, responses, strict=True):
        before = _partition(image, each.topic, each.partition)
        had = () if before is None else before.replicas
        wanted = None if arguments.cancel else each.replicas
        error = error_name(answer.error_code) if answer.error_code else None
        if arguments.format == "json":
            shown = {"topic": each.topic, "partition": each.partition, "from": list(had), "to": wanted}
            print_json(shown | {"error": error, "message": answer.error_message})
            continue
        done = "cancelled" if arguments.cancel else "begun"
        result = done if error is None else f"{error}: {answer.error_message or ''}".rstrip(": ")
        rows.append((each.topic, each.partition, nodes_text(had), nodes_text(wanted or ()), result))
    if arguments.format != "json":
        print_table(("TOPIC", "PARTITION", "FROM", "TO", "RESULT"), rows)
    sys.stdout.flush()
    refused = sum(answer.error_code != 0 for answer in responses)
    if refused:
        tell(f"the controller refused {refused} of {len(responses)} partitions")


# --- looking ----------------------------------------------------------------------------------------------------------


class _Standing(NamedTuple):
    """How far one partition is."""

    topic: str
    partition: int
    state: str
    present: Partition | None
    planned: tuple[NodeId, ...]


_DONE: Final = "completed"
_MOVING: Final = "in progress"
_OTHER: Final = "not as planned"
_MISSING: Final = "does not exist"


def _show_status(image: Image, plan: Sequence[Planned] | None, format_name: str) -> int:
    standings = _moving(image) if plan is None else [_standing(image, each) for each in plan]
    if format_name == "json":
        for each in standings:
            print_json(_standing_view(each))
    else:
        rows = [_standing_row(each) for each in standings]
        print_table(("TOPIC", "PARTITION", "STATE", "REPLICAS", "ADDING", "REMOVING", "PLANNED"), rows)
    states = {each.state for each in standings}
    if states & {_OTHER, _MISSING}:
        return _EXIT_REFUSED
    return _EXIT_MOVING if _MOVING in states else 0


def _standing(image: Image, planned: Planned) -> _Standing:
    present = _partition(image, planned.topic, planned.partition)
    if present is None:
        state = _MISSING
    elif present.is_reassigning:
        state = _MOVING
    else:
        state = _DONE if present.replicas == planned.replicas else _OTHER
    return _Standing(planned.topic, planned.partition, state, present, planned.replicas)


def _moving(image: Image) -> list[_Standing]:
    return [
        _Standing(topic.name, number, _MOVING, each, ())
        for topic in image.topics.sorted()
        for number, each in topic.partitions.items()
        if each.is_reassigning
    ]


def _standing_row(standing: _Standing) -> tuple[object, ...]:
    present = standing.present
    nodes = ((), (), ()) if present is None else (present.replicas, present.adding, present.removing)
    shown = (nodes_text(each) for each in (*nodes, standing.planned))
    return standing.topic, standing.partition, standing.state.replace(" ", "_"), *shown


def _standing_view(standing: _Standing) -> dict[str, object]:
    present = standing.present
    return {
        "topic": standing.topic,
        "partition": standing.partition,
        "state": standing.state,
        "replicas": [] if present is None else list(present.replicas),
        "addingReplicas": [] if present is None else list(present.adding),
        "removingReplicas": [] if present is None else list(present.removing),
        "planned": list(standing.planned),
    }


def _partition(image: Image, topic: str, number: int) -> Partition | None:
    found = image.topics.named(topic)
    return None if found is None else found.partitions.get(number)
