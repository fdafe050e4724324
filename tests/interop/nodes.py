"""Three nodes as a user runs them: `fastquorum format`, then `fastquorum run` in a process each, on free ports."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from fastquorum.client.connection import Deadline, NoAnswer, NotSent
from fastquorum.client.quorum import FoundLeader, QuorumClient
from fastquorum.kernels import load
from fastquorum.types import Endpoint
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse
from tests.conftest import ROOT
from tests.process.cluster import fixed_ports
from tests.process.processes import WAIT_S

from .directories import fastquorum

CLUSTER_ID: Final = "usACA5tBSrKS64DhDt4jig"
DIRECTORY_IDS: Final = {1: "vvU4x29PSmGr6cl_yWjBGQ", 2: "MzGshnxlQ8CWUREFNVsnEw", 3: "9vYZaEs_QvG4c-Lp2Qh1qA"}
TOPIC: Final = "quorum"
RUN: Final = (sys.executable, "-m", "fastquorum.cli", "run")

Partition = DescribeQuorumResponse.TopicData.PartitionData


class Description(NamedTuple):
    """The quorum, as its leader sees it."""

    response: DescribeQuorumResponse

    @property
    def partition(self) -> Partition:
        return self.response.topics[0].partitions[0]

    @property
    def leader_id(self) -> int:
        return self.partition.leader_id

    @property
    def epoch(self) -> int:
        return self.partition.leader_epoch

    @property
    def end_offsets(self) -> dict[int, int]:
        """Each voter's."""
        return {row.replica_id: row.log_end_offset for row in self.partition.current_voters}


class Nodes:
    """Use as `with running(...) as nodes`."""

    def __init__(
        self, root: Path, *, log: str, environment: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> None:
        self.ports = dict(zip(DIRECTORY_IDS, fixed_ports(len(DIRECTORY_IDS)), strict=True))
        self.ids = tuple(self.ports)
        self._root = root
        self._arguments = arguments
        self._environment = {**os.environ, **(environment or {})}
        self._running: dict[int, subprocess.Popen[str]] = {}
        self._client = QuorumClient([self.endpoint(node_id) for node_id in self.ids], load("native"))
        voters = ",".join(f"{each}@127.0.0.1:{self.ports[each]}:{DIRECTORY_IDS[each]}" for each in self.ids)
        identity = ("--cluster-id", CLUSTER_ID, "--voters", voters, "--log", log)
        for node_id in self.ids:
            fastquorum("format", "--data", self.data(node_id), "--node-id", str(node_id), *identity)

    # --- places -------------------------------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """Every node, as clients and tools are told."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def address(self, node_id: int) -> str:
        return f"127.0.0.1:{self.ports[node_id]}"

    def endpoint(self, node_id: int) -> Endpoint:
        return Endpoint("CONTROLLER", "127.0.0.1", self.ports[node_id])

    def data(self, node_id: int) -> Path:
        return self._root / f"node{node_id}"

    # --- processes ----------------------------------------------------------------------------------------------------

    def start(self, *node_ids: int) -> None:
        """Return when they listen."""
        for node_id in node_ids:
            with (self._root / f"node{node_id}.stderr").open("ab") as errors:
                self._running[node_id] = subprocess.Popen(
                    [*RUN, "--data", str(self.data(node_id)), "--verbose", *self._arguments],
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=ROOT,
                    env=self._environment,
                    text=True,
                )
        for node_id in node_ids:
            stdout = self._running[node_id].stdout
            assert stdout is not None
            assert "listens" in stdout.readline(), self.stderr(node_id)

    def kill(self, node_id: int) -> None:
        """SIGKILL."""
        process = self._running.pop(node_id)
        process.kill()
        process.communicate()

    def stop(self) -> None:
        """SIGTERM to all at once; their directories are closed when it returns."""
        processes, self._running = self._running, {}
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        for node_id, process in processes.items():
            process.communicate(timeout=WAIT_S)
            assert process.returncode == 0, self.stderr(node_id)

    def close(self) -> None:
        """Nobody survives."""
        self._client.close()
        for node_id in list(self._running):
            self.kill(node_id)

    def stderr(self, node_id: int) -> str:
        return (self._root / f"node{node_id}.stderr").read_text(errors="replace")

    def pid(self, node_id: int) -> int:
        return self._running[node_id].pid

    def exit_code(self, node_id: int, within_s: float = 0) -> int | None:
        """None while it runs. A process that is ending closes its connections before its code is known: wait."""
        try:
            return self._running[node_id].wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def descriptors(self, node_id: int) -> int:
        """How many files and connections it has open."""
        return len(os.listdir(f"/proc/{self.pid(node_id)}/fd"))

    # --- the quorum ---------------------------------------------------------------------------------------------------

    def leader(self) -> FoundLeader:
        return self._client.leader(Deadline(WAIT_S))

    def describe(self, within_s: float = WAIT_S) -> Description:
        """Ask the present leader for a description."""
        return Description(self._client.describe(Deadline(within_s)))

    def wait_epoch(self, after: int) -> Description:
        """Return once somebody leads a later epoch."""
        deadline = Deadline(WAIT_S)
        while True:
            found = self.describe()
            if found.epoch > after:
                return found
            assert not deadline.is_over, f"still epoch {found.epoch}, led by node {found.leader_id}"
            self._client.forget_leader()

    def wait_caught_up(self, within_s: float = WAIT_S) -> Description:
        """Return once every voter has what the leader has, and all of it is committed."""
        deadline = Deadline(within_s)
        while True:
            found = self.describe(deadline.left_s)
            if set(found.end_offsets.values()) == {found.partition.high_watermark}:
                return found
            assert not deadline.is_over, found.end_offsets

    def append(self, *values: bytes) -> int:
        """Append values as one batch; return the first offset."""
        return self._client.append(values, Deadline(WAIT_S))

    def change(self, threads: int) -> None:
        """Have the active controller write, as brokers' configuration, how many threads clean their logs."""
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        config = resource.AlterableConfig(name="log.cleaner.threads", config_operation=0, value=str(threads))
        request = IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=4, resource_name="", configs=[config])]
        )
        try:
            controller = self._client.controller(Deadline(WAIT_S)).endpoint
            answer = self._client.ask(
                controller, request, 1, IncrementalAlterConfigsResponse, Deadline(WAIT_S), silence_s=WAIT_S
            )
        except (NotSent, NoAnswer):
            self._client.forget_leader()
            raise
        (response,) = answer.responses
        assert response.error_code == ErrorCode.NONE, response


@contextmanager
def running(
    root: Path,
    *,
    log: str = "user",
    environment: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
) -> Iterator[Nodes]:
    """Started nodes, one of which leads; whatever happens, none is left behind. `environment` is added to ours,
    `arguments` to `run`'s."""
    nodes = Nodes(root, log=log, environment=environment, arguments=arguments)
    try:
        nodes.start(*nodes.ids)
        nodes.describe()
        yield nodes
    finally:
        nodes.close()
