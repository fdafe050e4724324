"""Real nodes in real processes over real directories: started, killed, waited for, and read when they are down."""

import random
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from fastquorum import log
from fastquorum.errors import CorruptionError
from fastquorum.kernels import load
from fastquorum.storage.identity import read_identity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.names import QUORUM_STATE
from fastquorum.storage.state_value import decode_state
from fastquorum.types import Endpoint
from tests.process.history import Ballots
from tests.process.links import Links
from tests.process.processes import WAIT_S, Event, NodeProcess

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
FAILPOINTS = "FASTQUORUM_FAILPOINTS"
LOOPBACK = "127.0.0.1"
QUICK: dict[str, object] = {
    "controller.quorum.election.timeout.ms": 150,
    "controller.quorum.fetch.timeout.ms": 400,
    "controller.quorum.request.timeout.ms": 400,
    "controller.quorum.election.backoff.max.ms": 100,
    "log.preallocate.bytes": 65536,
    "metadata.log.segment.bytes": 131072,  # rolls happen
    "log.mark.interval.ms": 50,
}


def fixed_ports(count: int) -> list[int]:
    """Ports nobody listens on, below those the kernel gives to outgoing connections: ours while a node is down, too."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as text:
        first_ephemeral = int(text.read().split()[0])
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(10_000, max(first_ephemeral, 20_000))
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


class Cluster:
    """N voters, each in its own process. Use as `with cluster(...) as quorum`."""

    def __init__(
        self,
        root: Path,
        size: int = 3,
        *,
        links: bool = False,
        settings: Mapping[str, object] | None = None,
        kernels: Mapping[int, str] | None = None,
        hosts: Mapping[int, str] | None = None,
    ) -> None:
        """`hosts`: each node's address; without, all are on loopback."""
        self.root = root
        self.ids = tuple(range(1, size + 1))
        self.hosts = hosts or dict.fromkeys(self.ids, LOOPBACK)
        self.ports = dict(zip(self.ids, fixed_ports(size), strict=True))
        self.nodes: dict[int, NodeProcess] = {}
        self.ballots = Ballots()
        self.links = Links(self.ports, self.ballots, self._pid_of) if links else None
        self.settings: dict[str, object] = {**QUICK, **(settings or {})}
        self.kernels = load("native")
        """What this process reads logs with; the nodes have their own."""
        self._kernel_names = kernels or {}
        self._all: list[NodeProcess] = []

    # --- places -------------------------------------------------------------------------------------------------------

    @property
    def voters(self) -> str:
        ports = self.links.public if self.links else self.ports
        return ",".join(f"{node_id}@{self.hosts[node_id]}:{ports[node_id]}" for node_id in self.ids)

    def path(self, node_id: int) -> Path:
        return self.root / f"node{node_id}"

    def endpoint(self, node_id: int) -> Endpoint:
        """Where clients reach the node, past every proxy."""
        return Endpoint("", self.hosts[node_id], self.ports[node_id])

    def config(self, node_id: int, **more: object) -> Path:
        """The node's configuration file. Keys with dots are given as in `{"cluster.id": ...}`."""
        values: dict[str, object] = {
            "node.id": node_id,
            "controller.quorum.voters": self.voters,
            "cluster.id": CLUSTER_ID,
            "listeners": f"CONTROLLER://{self.hosts[node_id]}:{self.ports[node_id]}",
            "kernels": self._kernel_names.get(node_id, "native"),
            **self.settings,
            **more,
        }
        if self.links:
            values["advertised.listeners"] = f"CONTROLLER://{LOOPBACK}:{self.links.public[node_id]}"
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.root / f"node{node_id}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    # --- processes ----------------------------------------------------------------------------------------------------

    def spawn(
        self,
        node_id: int,
        *,
        failpoints: str = "",
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> NodeProcess:
        """Start a process over the node's directory, without waiting for anything."""
        process = NodeProcess(
            node_id,
            [str(self.path(node_id)), str(self.config(node_id, **(settings or {})))],
            errors=self.root / f"node{node_id}.stderr",
            environment={**(environment or {}), **({FAILPOINTS: failpoints} if failpoints else {})},
            prefix=prefix,
            on_event=self._on_event,
        )
        self._all.append(process)
        return process

    def start(self, *node_ids: int, **how: Any) -> None:
        """Start nodes that are down."""
        for node_id in node_ids:
            old = self.nodes.get(node_id)
            if old is not None:
                assert not old.is_alive, f"node {node_id} is running"
                old.close()
            self.nodes[node_id] = self.spawn(node_id, **how)

    def ready(self, *node_ids: int, timeout_s: float = WAIT_S) -> None:
        """Return once each of these (all) has seen the quorum work; each since its own start."""
        for node_id in node_ids or self.ids:
            self.nodes[node_id].wait_event("ready", timeout_s=timeout_s)

    def kill(self, *node_ids: int) -> None:
        """SIGKILL, all of them first, then wait; what their disks say about votes is noted."""
        for node_id in node_ids:
            self.nodes[node_id].signal(signal.SIGKILL)
        for node_id in node_ids:
            self.nodes[node_id].ended()
            self.note_state(node_id)

    def stop(self, *node_ids: int) -> dict[int, int]:
        """SIGTERM to these (all) at once; their exit codes."""
        for node_id in node_ids or self.ids:
            self.nodes[node_id].signal(signal.SIGTERM)
        codes = {node_id: self.nodes[node_id].ended() for node_id in node_ids or self.ids}
        for node_id in codes:
            self.note_state(node_id)
        return codes

    def close(self) -> None:
        """Nobody survives."""
        for process in self._all:
            process.close()
        if self.links:
            self.links.close()

    @property
    def processes(self) -> Sequence[NodeProcess]:
        """All that were ever started."""
        return self._all

    @property
    def alive(self) -> list[int]:
        return [node_id for node_id, process in self.nodes.items() if process.is_alive]

    # --- who leads ----------------------------------------------------------------------------------------------------

    def leader(self) -> int:
        """Whoever the newest epoch's announcement names, as far as anybody alive has said; -1 nobody."""
        latest = (-1, -1)
        for node_id in self.alive:
            for event in self.nodes[node_id].reported("ready"):
                latest = max(latest, (event["epoch"], event["leader"]))
        return latest[1]

    def wait_leader(self, *, not_in: Sequence[int] = (), after_epoch: int = -1, timeout_s: float = WAIT_S) -> int:
        """A leader that a running node reports as working, in a later epoch than `after_epoch`."""
        watching = [node_id for node_id in self.alive if node_id not in not_in]
        event = self.nodes[watching[0]].wait(
            lambda each: each["event"] == "ready" and each["leader"] not in not_in and each["epoch"] > after_epoch,
            timeout_s=timeout_s,
        )
        leader: int = event["leader"]
        return leader

    def make_leader(self, node_id: int) -> None:
        """Have whoever leads resign for this one, until it leads. AssertionError if it ends before."""
        while (leader := self.leader()) != node_id:
            heir = self.nodes[node_id]
            assert heir.is_alive, f"node {node_id} has ended; stderr: {heir.stderr[-2000:]}"
            epoch = self.epoch()
            self.nodes[leader].tell(f"transfer {node_id}")
            self.wait_leader(after_epoch=epoch)

    def append(self, value: str, *, after_epoch: int) -> int:
        """Append at the leader of a later epoch than `after_epoch`; its id. If it leads no longer, at the next one."""
        while True:
            watching = self.nodes[self.alive[0]]
            event = watching.wait(
                lambda each, above=after_epoch: each["event"] == "ready" and each["epoch"] > above  # type: ignore[misc]
            )
            leader = self.nodes[event["leader"]]
            before = len(leader.events)
            leader.append(value, 20)
            appended = leader.wait_event("appended", after=before)
            if "offset" in appended:
                return leader.node_id
            assert (appended["value"], appended["error"], appended["maybe_committed"]) == (value, "NotLeader", False)
            after_epoch = event["epoch"]

    def epoch(self) -> int:
        """The newest epoch anybody alive has announced."""
        return max(
            (event["epoch"] for node_id in self.alive for event in self.nodes[node_id].reported("leadership")),
            default=-1,
        )

    # --- disks --------------------------------------------------------------------------------------------------------

    def records(self, node_id: int, from_offset: int = 0) -> list[tuple[int, bytes]]:
        """What the node's disk holds, whether or not it runs, up to where whole batches end."""
        found: list[tuple[int, bytes]] = []
        try:
            for record in log.open(str(self.path(node_id))).records(from_offset):
                found.append((record.offset, record.value or b""))
        except CorruptionError:
            if self.nodes[node_id].is_alive:
                return found  # a batch that is being written
            raise
        return found

    def timestamps(self, node_id: int) -> list[tuple[bytes, int]]:
        """Values on the node's disk and when they say they were written, in milliseconds."""
        return [(each.value or b"", each.timestamp_ms) for each in log.open(str(self.path(node_id))).records()]

    def note_state(self, node_id: int) -> None:
        """Remember epoch and vote on a dead node's disk."""
        path = self.path(node_id)
        if not (path / QUORUM_STATE).exists():
            return
        identity = read_identity(RealDisk.open_directory(str(path), self.kernels))
        with (
            lmdb.open(str(path / QUORUM_STATE), subdir=False, readonly=True, lock=False) as environment,
            environment.begin() as transaction,
        ):
            value = transaction.get(b"election")
        if value is None:
            return
        state = decode_state(self.kernels, identity.owner, bytes(value), str(path))
        voted = state.voted_key.id if state.voted_key is not None else None
        self.ballots.durable(node_id, state.epoch, state.leader_id, voted, f"disk of node {node_id}")

    def closed_bytes(self, node_id: int) -> bytes:
        """All segments of a stopped node, in order."""
        directory = self.path(node_id) / "__cluster_metadata-0"
        return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))

    def _pid_of(self, node_id: int) -> int | None:
        process = self.nodes.get(node_id)
        return process.pid if process is not None and process.is_alive else None

    def _on_event(self, node_id: int, event: Event) -> None:
        if event["event"] == "leadership" and event["leader"] >= 0:
            self.ballots.led(event["epoch"], event["leader"], f"said by node {node_id}")


@contextmanager
def cluster(root: Path, size: int = 3, **options: Any) -> Iterator[Cluster]:
    """Started and ready nodes; whatever happens, none is left behind."""
    quorum = Cluster(root, size, **options)
    try:
        quorum.start(*quorum.ids)
        quorum.ready()
        yield quorum
    finally:
        quorum.close()
