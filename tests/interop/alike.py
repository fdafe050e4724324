"""One controller of Kafka's and one of ours, each a quorum of its own, that are asked the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import QuorumClient
from fastquorum.kernels import load
from fastquorum.types import Endpoint
from fastquorum.wire import Message
from tests.process.cluster import fixed_ports

from .brokers import WAIT_S, our_controller, wait_for
from .kafka import Kafka
from .mixed import Member, jvm_controller
from .nodes import CLUSTER_ID, DIRECTORY_IDS

NODE: Final = 1


class Side(NamedTuple):
    """One controller, ours or Kafka's."""

    client: QuorumClient
    endpoint: Endpoint

    def ask(self, message: Message, version: int, answer: type[Any]) -> Any:
        return self.client.ask(self.endpoint, message, version, answer, Deadline(WAIT_S))


class Sides(NamedTuple):
    """Both."""

    theirs: Side
    ours: Side

    def ask(self, ask: Callable[[Side], Any]) -> tuple[Any, Any]:
        """What Kafka's says, and ours."""
        return ask(self.theirs), ask(self.ours)


@contextmanager
def both(kafka: Kafka, root: Path) -> Iterator[Sides]:
    theirs, ours = fixed_ports(2)
    at = f"127.0.0.1:{theirs}"
    voters = f"{NODE}@{at}:{DIRECTORY_IDS[NODE]}"
    kafkas = jvm_controller(kafka, root / "theirs", NODE, theirs, CLUSTER_ID, voters=voters, bootstrap=at)
    own = our_controller(root, NODE, ours, f"{NODE}@127.0.0.1:{ours}:{DIRECTORY_IDS[NODE]}")
    with _running(kafkas) as one, _running(own) as other:
        yield Sides(one, other)


@contextmanager
def _running(member: Member) -> Iterator[Side]:
    member.start()
    try:
        wait_for(f"{member} to be up", lambda: member.check() or member.is_up)
        endpoint = Endpoint("CONTROLLER", "127.0.0.1", member.port)
        with QuorumClient([endpoint], load("pure")) as client:
            client.controller(Deadline(WAIT_S))
            yield Side(client, endpoint)
    finally:
        member.stop()
