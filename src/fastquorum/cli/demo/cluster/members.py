"""The demo's brokers, from its side: processes that embed the broker agent, and say how they stand."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fastquorum.broker.states import State
from fastquorum.cli.demo.nodes import STOP_S, DemoNodes
from fastquorum.cli.demo.processes import Program, ProgramEnded
from fastquorum.client.connection import Deadline
from fastquorum.errors import FatalError
from fastquorum.kernels import Kernels
from fastquorum.types import NodeId

FIRST_ID: Final = 11
"""No controller has it."""
SESSION_MS: Final = 3000
"""A broker that is silent for so long is fenced."""
STAND_S: Final = 20.0
"""Within which a broker stands as it is to."""
_NUMBERS: Final = {
    "session_timeout_us": SESSION_MS * 1000,
    "heartbeat_interval_us": 400_000,
    "request_timeout_us": 700_000,
}


class BrokerStatus(NamedTuple):
    """How a broker stands, as it says."""

    state: str
    epoch: int
    """Its fencing token."""
    reason: str
    """Why it may not act; empty if it may."""
    controller: NodeId | None
    """The active controller, as far as the broker knows."""
    holds: int
    """Partitions that it has a replica of."""
    leads: int
    """Partitions that it leads."""


class BrokerProcess(Program):
    """One broker, and its process while it runs."""

    def __init__(self, broker_id: NodeId, options: dict[str, Any], errors_path: str) -> None:
        command = [sys.executable, "-m", "fastquorum.cli.demo.cluster.member", json.dumps(options)]
        super().__init__(f"broker {broker_id}", command, errors_path)
        self.id = broker_id

    def wait(self, is_it: Callable[[BrokerStatus], bool], what: str) -> BrokerStatus:
        """How it stands once it is so. ProgramEnded; FatalError if it takes too long: `what` says what does."""
        deadline = Deadline(STAND_S)
        while (line := self.next_line(deadline)) is not None:
            standing = BrokerStatus(**json.loads(line))
            if is_it(standing):
                return standing
        raise FatalError(f"{self.name} {what} not within {STAND_S:g} s: see {self.errors_path}")

    def wait_active(self) -> int:
        """Wait until it may act; its epoch."""
        return self.wait(lambda standing: standing.state == State.ONLINE, "is admitted").epoch

    def leave(self) -> BrokerStatus:
        """Have it go in good order; how it stands in the end. ProgramEnded if it is not well."""
        self.terminate()
        last = self.wait(lambda standing: standing.state == State.GONE, "goes")
        if not self.wait_stopped(Deadline(STOP_S)):
            raise ProgramEnded(f"{self.name} did not end well: see {self.errors_path}")
        return last


def members_of(root: str, count: int, nodes: DemoNodes, kernels: Kernels) -> dict[NodeId, BrokerProcess]:
    """`count` brokers of these controllers, by their ids; none is started yet."""
    members = {}
    for broker_id in range(FIRST_ID, FIRST_ID + count):
        options = {
            "bootstrap": [each.address for each in nodes.endpoints],
            "broker_id": broker_id,
            "cluster_id": nodes.cluster_id,
            "kernels": kernels.NAME,
            **_NUMBERS,
        }
        members[broker_id] = BrokerProcess(broker_id, options, os.path.join(root, f"broker-{broker_id}.stderr"))
    return members
