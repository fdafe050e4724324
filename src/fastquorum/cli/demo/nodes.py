"""The demo's quorum: formatted directories, and one `fastquorum run` process for each."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from fastquorum.cli.connection import Deadline
from fastquorum.errors import FatalError, RetriableError
from fastquorum.kernels import Kernels
from fastquorum.loopback import HOST, free_ports
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.directory import new_directory_id
from fastquorum.storage.format import FormatOptions, format_directory
from fastquorum.storage.identity import LogKind
from fastquorum.storage.io_disk import RealDisk
from fastquorum.types import LISTENER_NAME, Endpoint, NodeId, ReplicaKey, Voter, VoterSet

START_S: Final = 15.0
STOP_S: Final = 6.0
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


class Node:
    """One node: its directory and, while it runs, its process."""

    def __init__(self, node_id: NodeId, directory: str, kernels_name: str, settings: str) -> None:
        self.id = node_id
        self.directory = directory
        self._command = [sys.executable, "-m", "fastquorum.cli", "run", "--data", directory]
        self._command += ["--config", settings, "--kernels", kernels_name]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def errors_path(self) -> str:
        return f"{self.directory}.stderr"

    def start(self) -> None:
        """Start it, not waiting for anything."""
        with open(self.errors_path, "ab") as errors:
            # In a session of its own: Ctrl-C in the terminal is for the demo, which then stops its nodes.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def wait_listening(self, deadline: Deadline) -> None:
        """Wait for the line that says so. RetriableError if it ends instead, FatalError if it takes too long."""
        assert self._process is not None
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], deadline.left_s)
        if not readable:
            raise FatalError(f"node {self.id} does not start within {deadline.timeout_s:g} s: see {self.errors_path}")
        if not self._process.stdout.readline():
            code = self._process.wait()
            with open(self.errors_path, encoding="utf-8", errors="replace") as errors:
                raise NodeEnded(f"node {self.id} ended with exit code {code}: {errors.read().strip()}")

    def kill(self) -> None:
        """SIGKILL. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._reap(None)

    def terminate(self) -> None:
        """Ask for a graceful stop."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def wait_stopped(self, deadline: Deadline) -> bool:
        """Did it stop in time, and as one that is well?"""
        return self._process is None or self._reap(deadline.left_s) == 0

    def _reap(self, timeout_s: float | None) -> int | None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        process.stdout.close()
        self._process = None
        return code


@dataclass(eq=False)
class NodeEnded(RetriableError):
    """A node ended while it was to start: perhaps somebody else took its port."""

    reason: str
    template: ClassVar[str] = "{reason}"


class Nodes:
    """All of them."""

    def __init__(self, nodes: Iterable[Node], endpoints: tuple[Endpoint, ...]) -> None:
        self.by_id = {node.id: node for node in nodes}
        self.endpoints = endpoints

    @property
    def directories(self) -> list[str]:
        return [node.directory for node in self.by_id.values()]

    def stop(self, leader_id: NodeId) -> list[NodeId]:
        """Stop all gracefully; who did not.

        The leader is asked when the others have gone: one of them would stand for its succession, and its log would end
        with an election that nobody else has.
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
        """End whatever still runs."""
        for node in self.by_id.values():
            node.kill()


def start_nodes(root: str, count: int, kernels: Kernels) -> Nodes:
    """Format `count` directories below `root` and start a process on each, on ports that are free."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        nodes = _format(os.path.join(root, f"attempt-{attempt}") if attempt > 1 else root, count, kernels)
        try:
            for node in nodes.by_id.values():
                node.start()
            deadline = Deadline(START_S)
            for node in nodes.by_id.values():
                node.wait_listening(deadline)
            return nodes
        except NodeEnded:
            nodes.kill()
            if attempt == ATTEMPTS_MAX:
                raise
        except BaseException:
            nodes.kill()
            raise
    raise AssertionError


def _format(root: str, count: int, kernels: Kernels) -> Nodes:
    os.makedirs(root, exist_ok=True)
    settings = os.path.join(root, "nodes.properties")
    with open(settings, "w", encoding="ascii") as file:
        file.write(SETTINGS)
    endpoints = tuple(Endpoint(LISTENER_NAME, HOST, port) for port in free_ports(count))
    keys = [ReplicaKey(number, new_directory_id()) for number in range(1, count + 1)]
    voters = VoterSet([Voter(key, (endpoint,)) for key, endpoint in zip(keys, endpoints, strict=True)])
    cluster_id = str(new_directory_id())
    nodes = []
    for key in keys:
        directory = os.path.join(root, f"node-{key.id}")
        disk = RealDisk.open_directory(directory, kernels, create=True)
        # The log that is played has feature levels of its own.
        options = FormatOptions(cluster_id, key.id, key.directory_id, voters, LogKind.METADATA, has_bootstrap=False)
        format_directory(disk, kernels, options, now_ms=wall_clock_ms())
        nodes.append(Node(key.id, directory, kernels.NAME, settings))
    return Nodes(nodes, endpoints)
