"""What the controller and the handlers of client APIs see of a replica."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from fastquorum.node.lane.port import Shell
from fastquorum.node.network.connections import Connections
from fastquorum.node.records.log_reader import LogReader
from fastquorum.raft.events import Token
from fastquorum.raft.raft import Raft
from fastquorum.types import NO_NODE, Endpoint, Epoch, Micros, NodeId, Offset
from fastquorum.wire import Message


class ReplicaView(Protocol):
    """One replica, for code on its thread."""

    raft: Raft
    """To look at: only the replica lets it decide."""
    shell: Shell
    reader: LogReader
    connections: Connections

    @property
    def high_watermark(self) -> Offset:
        """Exclusive end of the committed prefix; -1 unknown."""

    @property
    def is_leader(self) -> bool:
        """Appends are accepted here."""

    def ask_raft(
        self, token: Token, message: Message, version: int, on_response: Callable[[Message], None], now_us: Micros
    ) -> None:
        """Have raft/ answer a request that came inside the one with this token."""

    def raise_kraft_version(self, kraft_version: int, end_offset: Offset, now_us: Micros) -> Offset:
        """Where the log ends behind what raises it; -1 if it cannot be raised now, or does not end at `end_offset`."""

    def notice(self, event: str, about: NodeId, sentence: str, now_us: Micros) -> None:
        """Have whoever runs this node told, once a minute at most."""


class KnownLeader(NamedTuple):
    """The leader, for answers that send a client there."""

    id: NodeId
    epoch: Epoch
    endpoint: Endpoint | None


def leader_of(replica: ReplicaView) -> KnownLeader:
    """Return the leader as far as this replica knows; none where it is its own leader that accepts no appends."""
    raft = replica.raft
    leader_id = raft.leader_id
    if leader_id == raft.key.id and not replica.is_leader:
        leader_id = NO_NODE
    return KnownLeader(leader_id, raft.epoch, raft.endpoint_of(leader_id))
