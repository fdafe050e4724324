"""Three controllers, ours or Kafka's, each a process as a user starts it, with the same settings."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bench.compare import fetch
from bench.compare.cluster import ROOT, ContenderFailed, Process, Started
from bench.compare.contenders import JAVA
from fastquorum.client.committed import committed_fold
from fastquorum.client.connection import Deadline
from fastquorum.client.describing import Voters
from fastquorum.client.quorum import QuorumClient
from fastquorum.controller.image import Image
from fastquorum.errors import NotReady
from fastquorum.kernels import load
from fastquorum.loopback import free_ports
from fastquorum.types import LISTENER_NAME, Endpoint, NodeId

CLUSTER_ID: Final = "usACA5tBSrKS64DhDt4jig"
DIRECTORY_IDS: Final = {1: "vvU4x29PSmGr6cl_yWjBGQ", 2: "MzGshnxlQ8CWUREFNVsnEw", 3: "9vYZaEs_QvG4c-Lp2Qh1qA"}
READY_S: Final = 90.0
CHECK_S: Final = 1.0
"""How often is looked whether a node has ended, while nobody leads."""
LOOK_S: Final = 0.02
TIMEOUTS: Final = {
    "controller.quorum.election.timeout.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 2000,
    "controller.quorum.election.backoff.max.ms": 1000,
    "controller.quorum.request.timeout.ms": 2000,
}
"""Kafka's defaults, said to everybody."""
FORMAT_JAVA: Final = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF")

Settings = Mapping[str, object]


class Node(NamedTuple):
    """Where one of the three is, and what it is told."""

    id: NodeId
    port: int
    folder: Path
    config: Path
    voters: str
    """All of them, with their directory ids."""


class Commands(NamedTuple):
    """Commands that make the directory of one node, and run it."""

    format: Sequence[str]
    run: Sequence[str]


@dataclass(frozen=True, slots=True)
class Server:
    """One kind of controller."""

    name: str
    prepare: Callable[[], Callable[[Node, Settings], Commands]]
    """Fetches what it needs. Raises fetch.Missing."""
    warm_s: float = 1.0
    """Seconds of load before anything is measured."""


def _ours() -> Callable[[Node, Settings], Commands]:
    def commands(node: Node, settings: Settings) -> Commands:
        _write(node.config, settings)
        program = [sys.executable, "-m", "fastquorum.cli"]
        identity = ["--node-id", str(node.id), "--cluster-id", CLUSTER_ID, "--voters", node.voters]
        data = ["--data", str(node.folder)]
        return Commands(
            [*program, "format", *data, *identity, "--controller"],
            [*program, "run", *data, "--controller", "--config", str(node.config), "--until-stdin-ends"],
        )

    return commands


def _kafka(heap: str, **more: object) -> Callable[[], Callable[[Node, Settings], Commands]]:
    def prepare() -> Callable[[Node, Settings], Commands]:
        path = f"{fetch.jars('kafka')}/*"

        def commands(node: Node, settings: Settings) -> Commands:
            of_kafka = {
                "process.roles": "controller",
                "node.id": node.id,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"CONTROLLER://127.0.0.1:{node.port}",
                "controller.quorum.bootstrap.servers": ",".join(
                    each.rpartition(":")[0].partition("@")[2] for each in node.voters.split(",")
                ),
                "log.dirs": node.folder,
            }
            own = {name.replace("_", "."): value for name, value in more.items()}
            _write(node.config, of_kafka | dict(settings) | own)
            tool = [*FORMAT_JAVA, "-cp", path, "kafka.tools.StorageTool", "format"]
            return Commands(
                [*tool, "-t", CLUSTER_ID, "-c", str(node.config), "--initial-controllers", node.voters],
                [*JAVA, f"-Xmx{heap}", "-cp", path, "kafka.Kafka", str(node.config)],
            )

        return commands

    return prepare


def _write(path: Path, settings: Settings) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


OURS: Final = "ours"
KAFKA: Final = "Kafka"
KAFKA_AT_ONCE: Final = "Kafka, linger 0"


def servers(heap: str) -> tuple[Server, ...]:
    """`heap`: the largest of a JVM, as java's -Xmx has it."""
    return (
        Server(OURS, _ours),
        Server(KAFKA, _kafka(heap), warm_s=6.0),
        Server(KAFKA_AT_ONCE, _kafka(heap, controller_quorum_append_linger_ms=0), warm_s=6.0),
    )


class Quorum(Started):
    """Formatted and started on an empty directory; ends with its `with` block."""

    def __init__(
        self,
        server: Server,
        commands: Callable[[Node, Settings], Commands],
        directory: Path,
        settings: Settings,
        prefix: Callable[[NodeId], Sequence[str]] = lambda node_id: (),
    ) -> None:
        """`prefix` goes before a node's command: a tracer."""
        self.name = server.name
        self._prefix = prefix
        self.directory = directory
        ports = dict(zip(DIRECTORY_IDS, free_ports(len(DIRECTORY_IDS)), strict=True))
        voters = ",".join(f"{each}@127.0.0.1:{port}:{DIRECTORY_IDS[each]}" for each, port in ports.items())
        self.endpoints = {each: Endpoint(LISTENER_NAME, "127.0.0.1", port) for each, port in ports.items()}
        self._commands = {
            each: commands(
                Node(each, port, directory / f"node-{each}", directory / f"node-{each}.properties", voters),
                TIMEOUTS | dict(settings),
            )
            for each, port in ports.items()
        }
        self._running: dict[NodeId, Process] = {}
        self._client = QuorumClient(list(self.endpoints.values()), load("native"))

    def _begin(self) -> None:
        self._format()
        for node_id in self._commands:
            self.start(node_id)
        self.active()

    def _format(self) -> None:
        """All at once."""
        started = [
            subprocess.Popen(list(each.format), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for each in self._commands.values()
        ]
        for process in started:
            printed, _ = process.communicate()
            if process.returncode:
                raise ContenderFailed(f"{self.name} cannot be formatted: {printed.decode(errors='replace')[-400:]}")

    def _end(self) -> None:
        self._client.close()
        for process in self._running.values():  # all at once; nobody reads their directories any more
            os.kill(process.pid, signal.SIGKILL)
        for process in self._running.values():
            process.ask_to_end()
            process.stop(speaks=False)

    # --- processes ----------------------------------------------------------------------------------------------------

    def start(self, node_id: NodeId) -> None:
        log = self.directory / f"node-{node_id}.stderr"
        command = [*self._prefix(node_id), *self._commands[node_id].run]
        self._running[node_id] = Process(f"{self.name}, node {node_id}", command, log, {})

    def kill(self, node_id: NodeId) -> float:
        """SIGKILL; when, by time.monotonic."""
        process = self._running.pop(node_id)
        at = time.monotonic()
        os.kill(process.pid, signal.SIGKILL)
        process.ask_to_end()
        process.stop(speaks=False)
        return at

    def cpu_us(self) -> dict[str, float]:
        """Return the processor time of each node so far."""
        return {f"node {node_id}": process.cpu_us() for node_id, process in self._running.items()}

    def check(self) -> None:
        """Raise ContenderFailed if a node has ended by itself."""
        for process in self._running.values():
            process.check()

    # --- the quorum ---------------------------------------------------------------------------------------------------

    def describe(self) -> Voters:
        """Return the quorum as its leader sees it."""
        return self._client.describe(Deadline(READY_S)).topics[0].partitions[0]

    def active(self) -> NodeId:
        """Return the leader's id. ContenderFailed if there is none, or a node has ended."""
        deadline = Deadline(READY_S)
        while True:
            self.check()
            self._client.forget_leader()
            try:
                return self._client.describe(deadline.sooner(CHECK_S)).topics[0].partitions[0].leader_id
            except NotReady as error:
                if deadline.is_over:
                    raise ContenderFailed(f"{self.name}: nobody leads after {READY_S:.0f} s: {error}") from None

    def wait_caught_up(self) -> None:
        """Until each of the three has what is committed now."""
        target, deadline = self.describe().high_watermark, time.monotonic() + READY_S
        while any(row.log_end_offset < target for row in self.describe().current_voters):
            self.check()
            if time.monotonic() > deadline:
                raise ContenderFailed(f"{self.name}: a restarted node does not catch up within {READY_S:.0f} s")
            time.sleep(LOOK_S)  # between two looks

    def image(self) -> Image:
        """All that is committed, folded."""
        return committed_fold(self._client, load("native"), READY_S).image
