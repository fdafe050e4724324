"""Builders: real controllers of ours on loopback, and programs that join them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastquorum import sync
from fastquorum.broker import View
from fastquorum.client.connection import Connection, Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.kernels import load
from fastquorum.node.settings.settings import from_arguments
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from tests.api.nodes import CLUSTER_ID, QUICK, WAIT_S, Trio

SESSION_US = 3_000_000
OFTEN: dict[str, Any] = {
    "session_timeout_us": SESSION_US,
    "heartbeat_interval_us": 400_000,
    "request_timeout_us": 700_000,
}
CONTROLLER: dict[str, Any] = {"log": "metadata", "controller": True, "session_timeout_us": SESSION_US}


@contextmanager
def one_controller(root: Path, **options: Any) -> Iterator[str]:
    """A quorum of one; HOST:PORT."""
    given: dict[str, Any] = {**QUICK, **CONTROLLER, "node_id": 1, "cluster_id": CLUSTER_ID, **options}
    with sync.open(root / "controller", **given) as quorum:
        quorum.wait_ready(WAIT_S)
        yield str(quorum.endpoint)


@contextmanager
def three_controllers(root: Path, **options: Any) -> Iterator[Trio]:
    nodes = Trio(root, **{**CONTROLLER, **options})
    try:
        nodes.open(1, 2, 3)
        nodes.ready()
        yield nodes
    finally:
        nodes.close()


def bootstrap_of(nodes: Trio) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in nodes.ports)


def join(bootstrap: str, broker_id: int = 7, **options: Any) -> sync.Membership:
    given: dict[str, Any] = {
        "bootstrap": bootstrap,
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        **OFTEN,
        **options,
    }
    return sync.join(**given)


def seen(membership: sync.Membership, is_it: Callable[[View], object]) -> View:
    """The first view in which it is so. AssertionError if the membership ends before."""
    for view in membership.changes():
        if is_it(view):
            return view
    raise AssertionError(f"it never was: {membership.view}")


def is_fenced(view: View, broker_id: int) -> bool:
    broker = view.image.brokers.get(broker_id)
    return broker is not None and broker.fenced


def controller_of(bootstrap: str) -> Endpoint:
    """Where the active one is."""
    endpoints: Any = from_arguments({"bootstrap": bootstrap})["bootstrap"]
    with QuorumClient(endpoints, load("pure")) as client:
        return client.controller(Deadline(WAIT_S)).endpoint


def ask(at: Endpoint, message: Message, version: int) -> Message:
    """By hand, on a connection of its own; the answer."""
    connection = Connection(at, Deadline(WAIT_S))
    try:
        return connection.request(message, version, Deadline(WAIT_S))
    finally:
        connection.close()


def create_topic(bootstrap: str, name: str, *replicas: int) -> None:
    """One partition on these brokers; the first is to lead it."""
    topic = CreateTopicsRequest.CreatableTopic
    assigned = topic.CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
    made = topic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assigned])
    answer = ask(controller_of(bootstrap), CreateTopicsRequest(topics=[made]), 7)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE, answer
