"""The true log of every node, kept outside the nodes: the ghost log against which all promises are checked.

For each node it holds the batches, chained by a hash, their places on its disk, and how many of them no crash can take
away; for the world, the leader of each epoch, the content of each (epoch, offset), and the committed log. It is fed
from the nodes' logs and disks, never from their claims.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from fastquorum.kernels.lane import LeaderSession
from fastquorum.raft.election import ElectionState
from fastquorum.sim.report import Violation
from fastquorum.sim.storage.disk import SimDisk
from fastquorum.storage.log.log import Log
from fastquorum.storage.names import (
    LOG_DIRECTORY,
    checkpoint_name,
    join,
    parse_checkpoint,
    parse_segment,
    segment_name,
)
from fastquorum.types import NO_NODE, Epoch, NodeId, Offset

_HEADER: Final = struct.Struct(">qiiBIhi")
"""Base offset, length, epoch, magic, CRC, attributes, last offset delta: the beginning of a v2 batch."""
_LENGTH_END: Final = 12
_READ_BYTES: Final = 1 << 24


class GhostBatch(NamedTuple):
    """One batch of a node's log. `chain` stands for it and all before it."""

    base: Offset
    end: Offset
    epoch: Epoch
    is_control: bool
    chain: bytes
    segment: str
    position_end: int
    data: bytes


@dataclass(slots=True)
class GhostNode:
    """One node through all its lives."""

    node_id: NodeId
    disk: SimDisk
    batches: list[GhostBatch] = field(default_factory=list)
    durable_count: int = 0
    generation: int = 0
    names_version: int = -1
    bases: list[Offset] = field(default_factory=list)
    start: Offset = 0
    """Start of its log. All below is in a snapshot, as it was committed, and counts as held."""
    dead: dict[tuple[Epoch, Offset], bytes] = field(default_factory=dict)
    """Batches that were truncated away, and not appended again since."""
    truncated_ends: dict[tuple[Epoch, Offset], None] = field(default_factory=dict)
    """Ends (with the epoch before them) that were truncated away at any time."""
    truncating_to: Offset = -1
    """Target of a truncation that is under way, when either log is right; -1: there is none."""
    kept_end: Offset = -1
    """While it is dead, the end that its next life must find at least; -1 while it lives."""
    marked_committed: Offset = 0
    """The committed offset in its directory."""
    pledged: Offset = 0
    """End of what was committed with this node's disk counted: it must never be lost again."""
    high_watermark: Offset = -1
    """The high watermark in this life; -1: unknown."""
    epoch: Epoch = 0
    led_epoch: Epoch = -1
    """The epoch it leads, or led last, in this life; -1 none."""
    led_session: LeaderSession | None = None
    """The lane's session of that epoch, until it follows: its commits may be seen only after its lane was closed."""
    votes: dict[Epoch, NodeId] = field(default_factory=dict)
    """Durable votes by epoch, those for itself included."""
    granted: dict[Epoch, NodeId] = field(default_factory=dict)
    """Votes that it has sent, by epoch."""
    durable_epoch: Epoch = 0

    @property
    def end(self) -> Offset:
        return self.batches[-1].end if self.batches else 0

    @property
    def last_epoch(self) -> Epoch:
        return self.batches[-1].epoch if self.batches else 0

    @property
    def chain(self) -> bytes:
        return self.batches[-1].chain if self.batches else b""

    @property
    def promised_end(self) -> Offset:
        """The end that a recovery must find at least."""
        end = self.durable_end
        if self.truncating_to < 0:
            return end
        return max((batch.end for batch in self.batches if batch.end <= min(end, self.truncating_to)), default=0)

    def index_of_end(self, end: Offset) -> int:
        """Return how many batches lie below `end`; -1 if that is inside a batch or beyond the log."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].end <= end:
                low = middle + 1
            else:
                high = middle
        found = self.batches[low - 1].end if low else 0
        return low if found == end else -1

    def chain_at(self, end: Offset) -> bytes | None:
        """Return the chain of everything below `end`; None if no batch ends there."""
        count = self.index_of_end(end)
        if count < 0:
            return None
        return self.batches[count - 1].chain if count else b""

    @property
    def durable_end(self) -> Offset:
        """The end that a crash now keeps in the worst case. Prepared segments without a durable name do not count.

        For a dead node, the end that it kept in the worst case. Anything else on its disk may be torn.
        """
        if self.kept_end >= 0:
            return self.kept_end
        segment, prefix = "", 0
        while self.durable_count < len(self.batches):
            batch = self.batches[self.durable_count]
            if batch.segment != segment:
                segment = batch.segment
                prefix = self.disk.entries[segment].durable_prefix if self.disk.is_durable(segment) else 0
            if batch.position_end > prefix:
                break
            self.durable_count += 1
        return self.batches[self.durable_count - 1].end if self.durable_count else 0


class Ghost:
    """The ghosts of all nodes, and the history of the world."""

    def __init__(self, voters: tuple[NodeId, ...]) -> None:
        self.voters = voters
        self.majority = len(voters) // 2 + 1
        self.nodes: dict[NodeId, GhostNode] = {}
        self.leaders: dict[Epoch, tuple[NodeId, int]] = {}
        """The leader of each epoch, and which of its lives that was."""
        self.identity: dict[tuple[Epoch, Offset], bytes] = {}
        """The chain of the batch that holds this offset in this epoch, for ever."""
        self.committed: list[GhostBatch] = []
        self.committed_chains: dict[Offset, bytes] = {0: b""}
        self.leader_high_watermark: Offset = -1
        self.on_written: Callable[[NodeId, GhostBatch], None] | None = None
        """Called with every batch when it is first seen in a log, which is the leader's."""

    @property
    def committed_end(self) -> Offset:
        return self.committed[-1].end if self.committed else 0

    def add(self, node_id: NodeId, disk: SimDisk) -> GhostNode:
        """Begin to watch a node."""
        node = self.nodes[node_id] = GhostNode(node_id, disk)
        return node

    def durable_majority(self, end: Offset) -> bool:
        """Return whether the disks of a majority of voters hold everything below `end`, even after a crash."""
        return sum(self.nodes[voter].durable_end >= end for voter in self.voters) >= self.majority

    # --- watching a log -----------------------------------------------------------------------------------------------

    def observe(self, node: GhostNode, log: Log) -> None:
        """Take over the changes of the node's log since the last call."""
        if log.generation != node.generation:
            node.generation = log.generation
            self._shorten(node, log)
        if log.start_offset > node.start:
            self._moved_on(node, log)
        if log.end_offset > node.end:
            for data in _read(log, node.end):
                self._add(node, data)

    def _shorten(self, node: GhostNode, log: Log) -> None:
        """Find how much of a truncated, or newly begun, log is the same as before."""
        fresh = self._fresh(node, log)
        keep = 0
        while keep < min(len(node.batches), len(fresh.batches)):
            if node.batches[keep].chain != fresh.batches[keep].chain:
                break
            keep += 1
        for batch in node.batches[keep:]:
            node.dead[batch.epoch, batch.base] = batch.chain
            node.truncated_ends[batch.epoch, batch.end] = None
            if self.committed_chains.get(batch.end) == batch.chain:
                raise Violation("S11", f"committed batch at {batch.base} (epoch {batch.epoch}) truncated", node.node_id)
        del node.batches[keep:]
        node.durable_count = min(node.durable_count, keep)
        for batch in fresh.batches[keep:]:
            if batch.end <= log.start_offset:
                node.batches.append(batch)
            else:
                self._add(node, batch.data)
        if log.start_offset > node.start:
            self._moved_on(node, log)

    def _fresh(self, node: GhostNode, log: Log) -> GhostNode:
        """Return the node's log as it is now, with the committed log in place of the part that it has moved on from."""
        fresh = GhostNode(node.node_id, node.disk)
        if log.start_offset:
            fresh.batches = [batch for batch in self.committed if batch.end <= log.start_offset]
            if fresh.end != log.start_offset:
                raise Violation(
                    "S24", f"the log begins at {log.start_offset}, which nothing committed ends at", node.node_id
                )
        for data in _read(log, log.start_offset):
            self._extend(fresh, data)
        return fresh

    def _moved_on(self, node: GhostNode, log: Log) -> None:
        """Check S24: what is gone below the log's start is in a durable snapshot."""
        node.start = log.start_offset
        snapshots = [parse_checkpoint(name) for name in node.disk.list(LOG_DIRECTORY)]
        if not any(
            each is not None
            and each.offset >= node.start
            and node.disk.is_durable(join(LOG_DIRECTORY, checkpoint_name(each)))
            for each in snapshots
        ):
            raise Violation("S24", f"the log begins at {node.start}, and no durable snapshot covers that", node.node_id)
        node.durable_count = max(node.durable_count, node.index_of_end(node.start))

    def _add(self, node: GhostNode, data: bytes) -> None:
        batch = self._extend(node, data)
        node.dead.pop((batch.epoch, batch.base), None)
        self._identify(node, batch)

    def _identify(self, node: GhostNode, batch: GhostBatch) -> None:
        """Check S7 and S8: one content for (epoch, offset), with one past."""
        if self.on_written is not None and (batch.epoch, batch.base) not in self.identity:
            self.on_written(node.node_id, batch)
        for offset in range(batch.base, batch.end):
            known = self.identity.setdefault((batch.epoch, offset), batch.chain)
            if known != batch.chain:
                raise Violation(
                    "S8", f"offset {offset} of epoch {batch.epoch} has two contents or two pasts", node.node_id
                )

    def _extend(self, node: GhostNode, data: bytes) -> GhostBatch:
        base, _, epoch, _, _, attributes, delta = _HEADER.unpack_from(data)
        if node.names_version != node.disk.names_version:
            node.names_version = node.disk.names_version
            found = [parse_segment(name) for name in node.disk.list(LOG_DIRECTORY)]
            node.bases = [each for each in found if each is not None]
        last = node.batches[-1] if node.batches else None
        begins_segment = base in node.bases or last is None
        segment = join(LOG_DIRECTORY, segment_name(base)) if begins_segment or last is None else last.segment
        position = 0 if begins_segment or last is None else last.position_end
        if base != node.end:
            raise Violation("S7", f"a batch at {base} follows the end {node.end}", node.node_id)
        chain = blake2b(node.chain + data, digest_size=8).digest()
        batch = GhostBatch(
            base, base + delta + 1, epoch, bool(attributes & 0x20), chain, segment, position + len(data), data
        )
        if batch.epoch < node.last_epoch:
            raise Violation("S7", f"epoch {epoch} at {base} after epoch {node.last_epoch}", node.node_id)
        node.batches.append(batch)
        return batch

    # --- recovery -----------------------------------------------------------------------------------------------------

    def recovered(self, node: GhostNode, log: Log) -> None:
        """Check S25, S30, S34: a new life's log is the former one's, with at least all that was durable, and nothing
        dead; so is its committed offset."""
        kept_end, node.kept_end = node.kept_end, -1
        former = node.batches
        fresh = self._fresh(node, log)
        common = 0
        while common < min(len(former), len(fresh.batches)):
            if former[common].chain != fresh.batches[common].chain:
                break
            common += 1
        common_end = former[common - 1].end if common else 0
        # A snapshot in place of the log ends what was not committed, in the middle of a life or at the next start.
        if log.start_offset <= common_end < kept_end:
            raise Violation("S25", f"recovery kept {common_end}, durable was {kept_end}", node.node_id)
        if common_end < node.pledged:
            raise Violation("S11", f"recovery kept {common_end}, {node.pledged} was counted for a commit", node.node_id)
        for batch in fresh.batches[common:]:
            if node.dead.get((batch.epoch, batch.base)) == batch.chain and node.truncating_to < 0:
                raise Violation("S30", f"batch at {batch.base} of epoch {batch.epoch} came back", node.node_id)
            self._identify(node, batch)
        node.batches = fresh.batches
        node.names_version = -1
        node.start = log.start_offset
        node.durable_count = max(node.index_of_end(node.start), 0)
        node.generation = log.generation
        node.truncating_to = -1
        node.high_watermark = -1
        node.led_epoch = -1
        node.led_session = None
        if node.durable_end < node.end or log.flushed_end != node.end:
            raise Violation("S25", f"after recovery {node.durable_end} of {node.end} is durable", node.node_id)
        known = log.committed_offset
        if not node.marked_committed <= known <= self.committed_end:
            detail = f"knows of {known} committed after a start, knew {node.marked_committed}, is {self.committed_end}"
            raise Violation("S34", detail, node.node_id)

    # --- commits ------------------------------------------------------------------------------------------------------

    def commit(self, leader: GhostNode, high_watermark: Offset) -> list[GhostBatch]:
        """Commit up to a leader's high watermark; return the new batches of the committed log."""
        count = leader.index_of_end(high_watermark)
        if count < 0:
            raise Violation("S12", f"high watermark {high_watermark} is no batch's end", leader.node_id)
        new = (
            [batch for batch in leader.batches[:count] if batch.end > self.committed_end]
            if (high_watermark > self.committed_end)
            else []
        )
        if new and leader.chain_at(self.committed_end) != self.committed_chains[self.committed_end]:
            raise Violation("S9", f"the leader commits another history at {self.committed_end}", leader.node_id)
        for batch in new:
            self.committed.append(batch)
            self.committed_chains[batch.end] = batch.chain
        return new

    def saved(self, node: GhostNode, state: ElectionState) -> None:
        """Check S2, S4: an election was made durable, or may have been."""
        if state.epoch < node.durable_epoch:
            raise Violation("S4", f"durable epoch falls from {node.durable_epoch} to {state.epoch}", node.node_id)
        node.durable_epoch = state.epoch
        vote = node.node_id if state.leader_id == node.node_id else state.voted_key.id if state.voted_key else None
        known = node.votes.get(state.epoch)
        if known is not None and vote is None and state.leader_id == NO_NODE:
            raise Violation("S2", f"the vote of epoch {state.epoch} for {known} is forgotten", node.node_id)
        if vote is not None and node.votes.setdefault(state.epoch, vote) != vote:
            raise Violation(
                "S2", f"vote of epoch {state.epoch} goes from {node.votes[state.epoch]} to {vote}", node.node_id
            )


def _read(log: Log, start: Offset) -> Iterator[bytes]:
    """Yield the batches from `start` on."""
    while start < log.end_offset:
        data = log.read(start, _READ_BYTES)
        at = 0
        while at < len(data):
            base, length, _, _, _, _, delta = _HEADER.unpack_from(data, at)
            yield data[at : at + _LENGTH_END + length]
            at += _LENGTH_END + length
            start = base + delta + 1
