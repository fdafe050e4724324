"""Two processes that act as one replica, and replicas that have lost what they had: told of to whoever runs the node.

A directory id stands for what its directory holds: votes, epochs, records. A copy that runs beside the original, a
backup that was restored, or a directory that was formatted anew under the same id is not that replica any more, and
nobody can tell which of two is. raft/ says what it sees, and goes on: to refuse one of them could be the wrong one.
"""

from typing import Final

from fastquorum.kernels.lane import Connection
from fastquorum.raft.core import Core
from fastquorum.raft.effects import Notice
from fastquorum.types import Endpoint, Epoch, Micros, NodeId, Offset, ReplicaKey

REPLICAS_MAX: Final = 256
"""Replicas whose connections are remembered before those that are gone are forgotten."""
TURNS_MAX: Final = 5
"""So often a replica may change between the same two connections: it does now and then, looking for its leader."""
TURNS_US: Final[Micros] = 10_000_000
"""Within this time it is told so often that another connection has taken its place."""


def notice_own_lead(core: Core, endpoints: tuple[Endpoint, ...]) -> None:
    """Order what is to be said when others take this node for the leader of an epoch that it does not lead."""
    at = ", ".join(f"{each.host}:{each.port}" for each in endpoints)
    core.emit(
        Notice(
            "double",
            core.key.id,
            f"node {core.key.id} is said to lead{f' at {at}' if at else ''}, and this node {core.key.id}, at "
            f"{_own_place(core)}, does not: another process runs with its id and directory id "
            f"{core.key.directory_id} on a copy of the directory, or this directory is an old one; stop one of the "
            "two, and keep the one that leads",
        )
    )


def notice_taken_place(core: Core, leader_id: NodeId) -> None:
    """Order what is to be said when the leader tells again and again that somebody else fetches in this one's name."""
    core.emit(
        Notice(
            "double",
            core.key.id,
            f"leader {leader_id} gives the answers of node {core.key.id}, at {_own_place(core)}, to another process "
            f"that fetches with its id and directory id {core.key.directory_id}, on a copy of the directory: stop one "
            "of the two",
        )
    )


def notice_lost_records(core: Core, peer: ReplicaKey, had: Offset, has: Offset) -> None:
    """Order what is to be said when a replica comes back with less than it had acknowledged to this leader."""
    core.emit(
        Notice(
            "records_lost",
            peer.id,
            f"node {peer.id}{_place(core, peer.id)}, directory id {peer.directory_id}, had all below offset {had} on "
            f"its disk, and has {has} now: its directory was formatted anew, restored or copied; its votes may be "
            "forgotten, too: let no other voter stop until it has caught up",
        )
    )


def note_epoch(core: Core, sender: ReplicaKey, epoch: Epoch) -> None:
    """A request that names this epoch as its sender's own has come; who is no voter has no votes to forget."""
    voter = core.voters.get(sender.id)
    if voter is None or not core.voters.is_voter(sender):
        return
    was = core.voter_epochs.forgotten(voter.key, epoch, core.now_us)
    if was is not None:
        core.emit(
            Notice(
                "votes_forgotten",
                sender.id,
                f"node {sender.id}{_place(core, sender.id)}, directory id {sender.directory_id}, was in epoch {was}, "
                f"and is in epoch {epoch} now: its directory was formatted anew, restored or copied; it may have "
                "forgotten votes, and records: let no other voter stop until it has caught up",
            )
        )
    if epoch <= core.epoch:  # what nobody here has heard of may be made up
        core.voter_epochs.note(voter.key, epoch, core.now_us)


class Turns:
    """On which connections each replica fetches from one leader."""

    def __init__(self) -> None:
        self._before: dict[ReplicaKey, Connection] = {}
        self._turns: dict[ReplicaKey, int] = {}

    def note(self, core: Core, peer: ReplicaKey, present: Connection, coming: Connection) -> None:
        """A replica that is served on one connection fetches on another. Between two it goes to and fro only if they
        are two processes."""
        if len(self._before) >= REPLICAS_MAX:
            self._forget_all_but({each.key for each in core.peers})
        if self._before.get(peer) != coming:
            self._turns[peer] = 0
        self._before[peer] = present
        self._turns[peer] = self._turns.get(peer, 0) + 1
        if self._turns[peer] > TURNS_MAX:
            core.emit(
                Notice(
                    "double",
                    peer.id,
                    f"two processes fetch in turn as node {peer.id}{_place(core, peer.id)}, directory id "
                    f"{peer.directory_id}: a copied directory runs beside the original; stop one of the two",
                )
            )

    def _forget_all_but(self, known: set[ReplicaKey]) -> None:
        for table in (self._before, self._turns):
            for peer in [peer for peer in table if peer not in known]:
                del table[peer]


def _own_place(core: Core) -> str:
    return ", ".join(f"{each.host}:{each.port}" for each in core.listeners) or "no address"


def _place(core: Core, node_id: NodeId) -> str:
    endpoint = core.endpoint_of(node_id)
    return f" at {endpoint.host}:{endpoint.port}" if endpoint is not None else ""
