"""The demo's quorum: formatted directories, and one `fastquorum run` process for each."""

import os
import sys
import time
from collections.abc import Iterable
from typing import Final

from fastquorum.cli.demo.processes import Program, ProgramEnded
from fastquorum.client.connection import Deadline
from fastquorum.client.quorum import LOOK_AGAIN_S, QuorumClient
from fastquorum.errors import FatalError, NotReady
from fastquorum.kernels import Kernels
from fastquorum.loopback import HOST, free_ports
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.directory import new_directory_id
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.identity import LogKind
from fastquorum.storage.io.disk import RealDisk
from fastquorum.types import LISTENER_NAME, NO_NODE, Endpoint, NodeId, ReplicaKey, Voter, VoterSet

START_S: Final = 15.0
STOP_S: Final = 6.0
CATCH_UP_S: Final = 10.0
ATTEMPTS_MAX: Final = 5
SETTINGS: Final = """\
# A dead leader is noticed sooner than by default, so that the demo is short.
controller.quorum.fetch.timeout.ms=600
controller.quorum.election.timeout.ms=300
controller.quorum.election.backoff.max.ms=200
controller.quorum.request.timeout.ms=1000
# Nothing but what is played.
metadata.max.idle.interval.ms=0
"""
CONTROLLER_SETTINGS: Final = """\
controller.enable=true
broker.session.timeout.ms={}
"""


class DemoNode(Program):
    """One node: its directory and, while it runs, its process."""

    def __init__(self, node_id: NodeId, directory: str, kernels_name: str, settings: str) -> None:
        command = [sys.executable, "-m", "fastquorum.cli", "run", "--data", directory]
        command += ["--config", settings, "--kernels", kernels_name, "--until-stdin-ends"]
        super().__init__(f"node {node_id}", command, f"{directory}.stderr")
        self.id = node_id
        self.directory = directory

    def wait_listening(self, deadline: Deadline) -> None:
        """Wait for the line that says so. ProgramEnded if it ends instead, FatalError if it takes too long."""
        if self.next_line(deadline) is None:
            raise FatalError(f"{self.name} does not start within {deadline.timeout_s:g} s: see {self.errors_path}")


class DemoNodes:
    """All of them."""

    def __init__(self, nodes: Iterable[DemoNode], endpoints: tuple[Endpoint, ...], cluster_id: str) -> None:
        self.by_id = {node.id: node for node in nodes}
        self.endpoints = endpoints
        self.cluster_id = cluster_id

    @property
    def directories(self) -> list[str]:
        return [node.directory for node in self.by_id.values()]

    def stop(self, leader_id: NodeId) -> list[NodeId]:
        """Stop all gracefully; return the ids of those that failed to.

        The leader is asked when the others have gone: one of them would stand for its succession, and its log would end
        with an election that no other node has.
        """
        followers = [node for node in self.by_id.values() if node.id != leader_id]
        leader = [node for node in self.by_id.values() if node.id == leader_id]
        unwell = []
        for group in (followers, leader):
            for node in group:
                node.terminate()
            deadline = Deadline(STOP_S)
            unwell += [node.id for node in group if not node.wait_stopped(deadline)]
        return unwell

    def kill(self) -> None:
        for node in self.by_id.values():
            node.kill()


def caught_up_leader(nodes: DemoNodes, kernels: Kernels) -> NodeId:
    """The leader, once every node has everything; NO_NODE if that does not happen: the verdict will tell."""
    deadline = Deadline(CATCH_UP_S)
    try:
        with QuorumClient(nodes.endpoints, kernels) as client:
            while not deadline.is_over:
                partition = client.describe(deadline).topics[0].partitions[0]
                ends = {row.log_end_offset for row in partition.current_voters}
                if ends == {partition.high_watermark}:
                    return partition.leader_id
                time.sleep(LOOK_AGAIN_S)
    except NotReady:
        pass
    return NO_NODE


def start_nodes(root: str, count: int, kernels: Kernels, *, session_timeout_ms: int | None = None) -> DemoNodes:
    """Format `count` directories below `root` and start a process on each, on ports that are free.

    With a session timeout they are a cluster's controllers, and fence a broker that is silent for so long.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        directory = os.path.join(root, f"attempt-{attempt}") if attempt > 1 else root
        nodes = _format(directory, count, kernels, session_timeout_ms)
        try:
            for node in nodes.by_id.values():
                node.start()
            deadline = Deadline(START_S)
            for node in nodes.by_id.values():
                node.wait_listening(deadline)
            return nodes
        except ProgramEnded:
            nodes.kill()
            if attempt == ATTEMPTS_MAX:
                raise
        except BaseException:
            nodes.kill()
            raise
    raise AssertionError


def _format(root: str, count: int, kernels: Kernels, session_timeout_ms: int | None) -> DemoNodes:
    is_controller = session_timeout_ms is not None
    os.makedirs(root, exist_ok=True)
    settings = os.path.join(root, "nodes.properties")
    with open(settings, "w", encoding="ascii") as file:
        file.write(SETTINGS + (CONTROLLER_SETTINGS.format(session_timeout_ms) if is_controller else ""))
    endpoints = tuple(Endpoint(LISTENER_NAME, HOST, port) for port in free_ports(count))
    keys = [ReplicaKey(number, new_directory_id()) for number in range(1, count + 1)]
    voters = VoterSet([Voter(key, (endpoint,)) for key, endpoint in zip(keys, endpoints, strict=True)])
    cluster_id = str(new_directory_id())
    nodes = []
    for key in keys:
        directory = os.path.join(root, f"node-{key.id}")
        disk = RealDisk.open_directory(directory, kernels, create=True)
        options = FormatOptions(
            cluster_id,
            key.id,
            key.directory_id,
            voters,
            LogKind.METADATA,
            has_bootstrap=is_controller,  # a log that is played has feature levels of its own
            is_controller=is_controller,
        )
        format_directory(disk, kernels, options, now_ms=wall_clock_ms())
        nodes.append(DemoNode(key.id, directory, kernels.NAME, settings))
    return DemoNodes(nodes, endpoints, cluster_id)
