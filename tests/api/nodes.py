"""Builders: real nodes on loopback ports, over temporary directories, with small timeouts."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import fastquorum as fq
from fastquorum import sync
from fastquorum.api.options import OpenOptions
from fastquorum.errors import NotLeader, NotReady
from fastquorum.loopback import free_ports
from fastquorum.node.io.native.flusher import NativeFlusher

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
WAIT_S = 20.0
"""Bound of waits that end at once when all is well: a loaded machine is no failure."""

QUICK: OpenOptions = {
    "election_timeout_us": 150_000,
    "fetch_timeout_us": 400_000,
    "request_timeout_us": 400_000,
    "preallocate_bytes": 256 * 1024,
}


def voters(ports: list[int]) -> str:
    return ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in enumerate(ports, start=1))


class Trio:
    """Three nodes, opened one by one or all together, with the blocking API."""

    def __init__(self, root: Path, **options: object) -> None:
        self.root = root
        self.ports = free_ports(3)
        self.voters = voters(self.ports)
        self.options: OpenOptions = {**QUICK, **options}  # type: ignore[typeddict-item]
        self.nodes: dict[int, sync.Quorum] = {}

    def open_options(self, node_id: int) -> OpenOptions:
        return {**self.options, "node_id": node_id, "voters": self.voters, "cluster_id": CLUSTER_ID}

    def path(self, node_id: int) -> str:
        return str(self.root / str(node_id))

    def open(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.nodes[node_id] = sync.open(self.path(node_id), **self.open_options(node_id))

    def crash(self, node_id: int) -> None:
        """It vanishes without a word to its peers."""
        node = self.nodes.pop(node_id)
        node._node.abort()

    def close(self) -> None:
        for node in self.nodes.values():
            node._node.request_stop()
        for node_id in list(self.nodes):
            node = self.nodes.pop(node_id)
            node._node.stop(grace_s=0.2)

    def ready(self) -> None:
        for node in self.nodes.values():
            node.wait_ready(WAIT_S)

    @property
    def leader(self) -> sync.Quorum:
        """Whoever leads now; waits for an election."""
        while True:
            for node in list(self.nodes.values()):
                node.wait_ready(WAIT_S)
                if node.is_leader:
                    return node

    @property
    def followers(self) -> list[sync.Quorum]:
        leader = self.leader
        return [node for node in self.nodes.values() if node is not leader]

    def have_lead(self, heir: sync.Quorum) -> None:
        """Have this node lead; somebody else may be elected first, or who leads once more."""
        while not heir.is_leader:
            with suppress(NotLeader, NotReady):
                self.leader.transfer_leadership(heir.node_id, WAIT_S)

    def append(self, value: bytes) -> int:
        """To whoever leads; not to be used where an append of unknown fate may not be repeated."""
        while True:
            try:
                return self.leader.append(value, timeout=WAIT_S)
            except NotLeader:
                continue


@contextmanager
def stalled(node: sync.Quorum | fq.Quorum) -> Iterator[None]:
    """This node's disk does not answer."""
    flusher = node._node._opened.flusher
    assert isinstance(flusher, NativeFlusher)
    flusher.hold(True)
    try:
        yield
    finally:
        flusher.hold(False)


@contextmanager
def trio(root: Path, **options: object) -> Iterator[Trio]:
    """Three open nodes that know their leader."""
    nodes = Trio(root, **options)
    try:
        nodes.open(1, 2, 3)
        nodes.ready()
        yield nodes
    finally:
        nodes.close()


def values_of(node: sync.Quorum, from_offset: int = 0) -> list[bytes | None]:
    return [record.value for item in node.committed(from_offset, follow=False) for record in item.records]


def caught_up(node: sync.Quorum, end_offset: int) -> None:
    """Return once the node knows that everything below end_offset is committed."""
    if node.high_watermark >= end_offset:
        return
    for item in node.committed(from_offset=max(node.high_watermark, 0), progress=True):
        if item.next_offset >= end_offset or node.high_watermark >= end_offset:
            return
