"""Nodes under measurement, each in a process of its own (`node`): one alone, or three that are a quorum."""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bench.compare.cluster import ContenderFailed, Process, Started
from fastquorum.loopback import free_ports

CLUSTER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
SOON: Final[Mapping[str, Any]] = {"election_timeout_us": 200_000}
"""For figures that elections are no part of: the first one need not be waited for. The fetch timeout stays."""
ANSWER_S: Final = 120.0
LEADER_S: Final = 60.0
LOOK_S: Final = 0.02


class Node:
    """A process that runs a node and carries out commands: see `node`."""

    def __init__(self, name: str, api: str, options: Mapping[str, Any], log: Path) -> None:
        self._command = [sys.executable, "-m", "bench.figures.node", api, json.dumps(options)]
        self._name, self._log = name, log
        self._process = Process(name, self._command, log, {})

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, do: str, timeout_s: float = ANSWER_S, **fields: Any) -> dict[str, Any]:
        """ContenderFailed if it has ended or does not answer."""
        answer: dict[str, Any] = json.loads(self._process.ask({"do": do, **fields}, timeout_s))
        return answer

    def kill(self) -> int:
        """SIGKILL; when, on the monotonic clock, in nanoseconds."""
        at_ns = time.monotonic_ns()
        os.kill(self.pid, signal.SIGKILL)
        self.stop()
        return at_ns

    def start_again(self) -> None:
        """After `kill` or `stop`."""
        self._process = Process(self._name, self._command, self._log, {})

    def ask_to_end(self) -> None:
        self._process.ask_to_end()

    def stop(self) -> None:
        self._process.ask_to_end()
        self._process.stop(speaks=True)


class Trio(Started):
    """Three nodes, a leader elected. A context manager: they end with it."""

    def __init__(
        self,
        name: str,
        directory: Path,
        api: str = "blocking",
        options: Mapping[str, Any] = SOON,
        kernels: str = "native",
    ) -> None:
        self._name = name
        self.endpoints = [f"127.0.0.1:{port}" for port in free_ports(3)]
        voters = ",".join(f"{number}@{endpoint}" for number, endpoint in enumerate(self.endpoints, 1))
        self._options = {"voters": voters, "cluster_id": CLUSTER_ID, "kernels": kernels, **options}
        self._directory, self._api = directory, api
        self.nodes: list[Node] = []

    def _begin(self) -> None:
        for number in (1, 2, 3):
            own = {"path": str(self._directory / f"node-{number}"), "node_id": number, **self._options}
            log = self._directory / f"node-{number}.stderr"
            self.nodes.append(Node(f"{self._name}, node {number}", self._api, own, log))
        self.await_leader()

    def await_leader(self, among: Sequence[Node] | None = None) -> Node:
        """The node that takes appends."""
        deadline = time.monotonic() + LEADER_S
        while time.monotonic() < deadline:
            for node in self.nodes if among is None else among:
                if node.ask("who")["leads"]:
                    return node
            time.sleep(LOOK_S)  # between two looks
        raise ContenderFailed(f"{self._name}: nobody leads after {LEADER_S:.0f} s")

    def endpoint_of(self, node: Node) -> str:
        return self.endpoints[self.nodes.index(node)]

    def cpu_s(self) -> float:
        """Processor time of all three so far."""
        return sum(float(node.ask("who")["cpu_s"]) for node in self.nodes)

    def _end(self) -> None:
        """All at once: a leader hands over to the others while they are there."""
        for node in self.nodes:
            with suppress(BrokenPipeError):
                node.ask_to_end()
        for node in self.nodes:
            node.stop()
