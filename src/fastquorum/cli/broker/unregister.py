"""`fastquorum broker unregister`: a broker that is gone for good is forgotten."""

import argparse
from typing import Final

from fastquorum.cli.quorum.controller_requests import asking
from fastquorum.cli.terminal.arguments import add_quorum, explain, node_number
from fastquorum.cli.terminal.output import print_json
from fastquorum.wire.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse

_VERSION: Final = 0


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Remove a broker's registration: it leaves every ISR, leads nothing, and gets no new replicas. It stays in "
        "the replica lists of its partitions; move these replicas to other brokers first (`fastquorum topic "
        "reassign`). A broker that still runs registers again when it is restarted.",
        "fastquorum broker unregister 11 --bootstrap h1:9093,h2:9093,h3:9093",
    )
    parser.add_argument("id", metavar="ID", type=node_number, help="the broker's node.id")
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    change = f"broker {arguments.id} was unregistered"
    with asking(arguments, change=change, look="fastquorum broker list") as controller:
        request = UnregisterBrokerRequest(broker_id=arguments.id)
        answer = controller.ask(request, _VERSION, UnregisterBrokerResponse, lambda response: response.error_code)
        controller.check(answer.error_code, answer.error_message)
    if arguments.format == "json":
        print_json({"id": arguments.id, "unregistered": True})
    else:
        print(f"Broker {arguments.id} is no longer registered.")
    return 0
