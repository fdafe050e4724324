"""`fastquorum topic delete`: a topic is deleted, with all its records."""

import argparse
from typing import Final

from fastquorum.cli.quorum.controller_requests import asking, only
from fastquorum.cli.terminal.arguments import add_quorum, explain, sendable
from fastquorum.cli.terminal.output import print_json
from fastquorum.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse

_VERSION: Final = 6


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Delete a topic. It is gone from the metadata when this returns; its brokers then remove its records. The "
        "command does not ask for confirmation.",
        "fastquorum topic delete orders --bootstrap h1:9093,h2:9093,h3:9093",
    )
    parser.add_argument("name", metavar="NAME", type=sendable)
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    name = arguments.name
    with asking(arguments, change=f"topic {name} was deleted", look="fastquorum topic list") as controller:
        topic = DeleteTopicsRequest.DeleteTopicState(name=name)
        request = DeleteTopicsRequest(topics=[topic], timeout_ms=controller.deadline.left_ms)
        answer = controller.ask(
            request, _VERSION, DeleteTopicsResponse, lambda response: only(response.responses).error_code
        )
        result = only(answer.responses)
        controller.check(
            result.error_code, f"topic {name}: {result.error_message}" if result.error_message else f"topic {name}"
        )
    if arguments.format == "json":
        print_json({"name": name, "id": str(result.topic_id), "deleted": True})
    else:
        print(f"Deleted topic {name}.")
    return 0
