"""`fastquorum broker fence`: a broker is taken out of service without waiting for its session to end."""

import argparse
from typing import Final

from fastquorum.cli.broker.describe import registered
from fastquorum.cli.image.committed_image import watched_fold
from fastquorum.cli.quorum.client import quorum_client
from fastquorum.cli.quorum.controller_requests import ControllerClient
from fastquorum.cli.terminal.arguments import add_quorum, explain, node_number
from fastquorum.cli.terminal.output import print_json
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse

_VERSION: Final = 1


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Fence a broker at once: it leaves every ISR, and other brokers take its leads. Use it for a broker that is "
        "known to be dead or cut off, before its session ends by itself (9 s).\n"
        "Kafka has no request for that. The controller is sent the heartbeat in which a broker itself asks to be "
        "fenced, so this does not keep a living broker out: its own next heartbeat (2 s) asks to be unfenced. It "
        "counts as a sign of life, too: another process can register with this id only once a session (9 s) is over "
        "again. To keep a broker out for good, stop it; to remove its registration, unregister it.\n"
        "Exit code 1: the controller did not fence it, since it is shutting down already.",
        "fastquorum broker fence 11 --bootstrap h1:9093,h2:9093,h3:9093",
    )
    parser.add_argument("id", metavar="ID", type=node_number, help="the broker's node.id")
    add_quorum(parser)


def run(arguments: argparse.Namespace) -> int:
    with quorum_client(arguments) as client:
        fold = watched_fold(client, arguments.timeout)
        broker = registered(fold.image, arguments.id)
        is_fenced, was_fenced = broker.fenced, broker.fenced
        if not was_fenced:
            is_fenced = _fence(client, arguments, broker.epoch, fold.next_offset - 1)
    if arguments.format == "json":
        print_json({"id": broker.id, "epoch": broker.epoch, "fenced": is_fenced, "wasFenced": was_fenced})
    elif was_fenced:
        print(f"Broker {broker.id} is fenced already.")
    elif is_fenced:
        print(f"Broker {broker.id} is fenced. If it lives, its next heartbeat unfences it.")
    else:
        print(f"Broker {broker.id} is not fenced: it is shutting down, and its leaders are moving away.")
    return 0 if is_fenced else 1


def _fence(client: QuorumClient, arguments: argparse.Namespace, epoch: int, metadata_offset: int) -> bool:
    """Is it fenced now?"""
    controller = ControllerClient(
        client,
        Deadline(arguments.timeout),
        change=f"broker {arguments.id} was fenced",
        look=f"fastquorum broker describe {arguments.id}",
    )
    request = BrokerHeartbeatRequest(
        broker_id=arguments.id, broker_epoch=epoch, current_metadata_offset=metadata_offset, want_fence=True
    )
    answer = controller.ask(request, _VERSION, BrokerHeartbeatResponse, lambda response: response.error_code)
    stale = answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    controller.check(answer.error_code, "it has registered anew meanwhile, or was unregistered" if stale else "")
    return answer.is_fenced
