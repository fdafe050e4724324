"""A quorum that runs, as its replicas' logs alone: elections, appends, replication, snapshots, crashes, voters that
come and go, and copies of directories. What it leaves is healthy at any moment, whatever it looks like.

Sources: Raft, sections 5.2 to 5.4; KIP-630 (snapshots), KIP-853 (voter sets, one change at a time).
"""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fastquorum.kernels import Attribute, Kernels, Record, load
from fastquorum.raft.messages import voters_record
from fastquorum.storage.identity import LogKind
from fastquorum.types import Endpoint, ReplicaKey, Uuid, Voter, VoterSet
from fastquorum.wire.message import Message
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.control import encode_control_record
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.metadata import encode_metadata_record

KERNELS: Final[Kernels] = load("native")
NO_OP: Final = encode_metadata_record(NoOpRecord(), 0)
BEGAN_MS: Final = 1_700_000_000_000
VOTERS_MAX: Final = 5
_BATCH_RECORDS: Final = (1, 1, 2, 3, 8)
_BATCHES_A_FETCH: Final = (1, 1, 2, 5, 50)
_OFTEN: Final = (0.2, 1, 1, 4)
_TORN_BYTES_MAX: Final = 200
_EPOCH_MS: Final = 1_000_000
_NEW_DISK: Final = 100

Ids = tuple[int, ...]


def node_id_of(replica_id: int) -> int:
    """A replica's id is its node's, and _NEW_DISK more with each new disk, and directory id, that it got."""
    return replica_id % _NEW_DISK


def on_new_disk(replica_id: int) -> int:
    return replica_id + _NEW_DISK


def directory_id(replica_id: int) -> Uuid:
    return Uuid(bytes([replica_id]) * 16)


def voter_set(ids: Ids) -> VoterSet:
    return VoterSet([Voter(ReplicaKey(node_id_of(each), directory_id(each)), (_endpoint(each),)) for each in ids])


def _endpoint(replica_id: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"h{node_id_of(replica_id)}", 9000)


def written_ms(offset: int, epoch: int) -> int:
    """When a leader of that epoch writes there: an election takes its time, so no two epochs' batches are equal."""
    return BEGAN_MS + epoch * _EPOCH_MS + offset


def control_batch(base_offset: int, message: Message, epoch: int) -> bytes:
    key, value = encode_control_record(message)
    return KERNELS.encode_records(
        [Record(value, key)],
        base_offset=base_offset,
        leader_epoch=epoch,
        timestamp_ms=written_ms(base_offset, epoch),
        attributes=Attribute.CONTROL,
    )


@dataclass(frozen=True)
class Batch:
    """A batch of the log. `last_offset` is inclusive."""

    base_offset: int
    last_offset: int
    epoch: int
    data: bytes
    voters: Ids | None = None
    """Voters, if the batch is a set of voters."""
    is_control: bool = False


@dataclass
class Node:
    """What one replica has on disk."""

    id: int
    """Id of a node and its directory, as of `node_id_of`."""
    batches: list[Batch] = field(default_factory=list)
    epoch: int = 0
    high_watermark: int = 0
    start: int = 0
    """Where its files begin; what was before is in a snapshot."""
    start_epoch: int = 0
    start_voters: Ids | None = None
    snapshots: dict[int, tuple[int, Ids]] = field(default_factory=dict)
    """By their end: the epoch of the last record, and the voters."""
    flushed_end: int = 0
    mark_end: int = 0
    """What its durable mark says: never more than was flushed."""
    torn: bytes = b""
    segments: list[int] = field(default_factory=lambda: [0])
    """Base offsets, ascending."""

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else self.start

    @property
    def committed(self) -> int:
        """All below it was committed, as its durable mark says."""
        return min(self.high_watermark, self.mark_end)

    @property
    def up_to_date(self) -> tuple[int, int]:
        """Last epoch and end, by which votes are granted."""
        return (self.batches[-1].epoch if self.batches else self.start_epoch), self.end

    def epoch_before(self, end: int) -> int | None:
        """Return the epoch of the record before an offset; None: the node does not have it."""
        if end == 0:
            return 0
        for each in self.batches:
            if each.base_offset < end <= each.last_offset + 1:
                return each.epoch
        return self.start_epoch if end == self.start else None

    def cut(self, end: int) -> None:
        """Truncate; the mark is lowered first."""
        self.batches = [each for each in self.batches if each.last_offset < end]
        self.torn = b""
        self.mark_end, self.flushed_end = min(self.mark_end, self.end), min(self.flushed_end, self.end)
        self.segments = [each for each in self.segments if each <= self.end] or [self.start]

    def drop_before(self, start: int, initial: Ids) -> None:
        """Delete the segments before one, of which a snapshot is."""
        if start <= self.start:
            return
        self.start_epoch, self.start_voters = self.epoch_before(start) or 0, self.voters(initial, start)
        self.batches = [each for each in self.batches if each.base_offset >= start]
        self.segments = [each for each in self.segments if each >= start]
        self.snapshots = {end: each for end, each in self.snapshots.items() if end >= start}
        self.start, self.flushed_end = start, max(self.flushed_end, start)
        self.mark_end = max(self.mark_end, start) if self.mark_end else 0

    def restore(self, end: int, snapshot: tuple[int, Ids]) -> None:
        """Replace the log by a leader's snapshot."""
        self.batches, self.torn, self.segments = [], b"", [end]
        self.start = self.flushed_end = self.mark_end = self.high_watermark = end
        self.start_epoch, self.start_voters = snapshot
        self.snapshots[end] = snapshot

    def voters(self, initial: Ids, end: int | None = None) -> Ids:
        """The set in force behind its log, or before an offset."""
        found = initial if self.start_voters is None else self.start_voters
        for each in self.batches:
            if each.voters is not None and (end is None or each.base_offset < end):
                found = each.voters
        return found


class Quorum:
    """Replicas, and whatever happens to them, drawn from a seed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.kind = chance.choice([LogKind.METADATA, LogKind.METADATA, LogKind.USER])
        self.is_dynamic = self.kind is LogKind.METADATA and chance.random() < 0.6
        self.initial: Ids = tuple(range(1, chance.choice([1, 2, 3, 3, 3, 3, 4, 5, 5]) + 1))
        self.nodes = {each: Node(each) for each in self.initial}
        if chance.random() < 0.2:
            observer = max(self.initial) + 1
            self.nodes[observer] = Node(observer)
        self.leader: Node | None = None
        self.epoch = self.own_start = self.committed = 0
        self.acknowledged: dict[int, int] = {}
        self.pending: int | None = None
        """The offset of a set of voters that is not committed yet."""
        self.copies: list[Node] = []
        """Copies of directories, taken while their nodes ran."""

    def run(self, steps: int) -> None:
        happenings: list[tuple[Callable[[], None], int]] = [
            (self.elect, 8),
            (self.append, 30),
            (self.replicate, 40),
            (self.flush, 6),
            (self.snapshot, 6),
            (self.crash, 3),
            (self.copy, 3),
            (self.reconfigure, 3),
            (self.write_mark, 5),
            (self.roll, 6),
        ]
        does = [each for each, _ in happenings]
        # Some worlds are mostly of elections, others of voters that come and go.
        weights = [weight * self.chance.choice(_OFTEN) for _, weight in happenings]
        for _ in range(steps):
            happening = self.elect if self.leader is None else self.chance.choices(does, weights)[0]
            happening()

    def any_node(self) -> Node:
        return self.chance.choice(list(self.nodes.values()))

    # --- what happens -------------------------------------------------------------------------------------------------

    def elect(self, candidate: Node | None = None) -> None:
        """A candidate that a majority of its voters finds up to date leads in an epoch of its own."""
        candidate = candidate or self.any_node()
        voters = candidate.voters(self.initial)
        if candidate.id not in voters:
            return
        candidate.torn = b""
        there = [self.nodes[each] for each in voters if each in self.nodes]  # the others' disks are gone
        granting = [
            each
            for each in there
            if each is candidate or (each.up_to_date <= candidate.up_to_date and self.chance.random() < 0.9)
        ]
        if len(granting) <= len(voters) // 2:
            return
        self.epoch = max(self.epoch, *(each.epoch for each in granting)) + self.chance.choice([1, 1, 1, 2])
        for each in granting:
            each.epoch = self.epoch
        self.leader, self.own_start = candidate, candidate.end
        self.pending, self.acknowledged = None, {}
        message = LeaderChangeMessage(version=1, leader_id=candidate.id)
        self._write(candidate, control_batch(candidate.end, message, self.epoch), 1, is_control=True)

    def append(self) -> None:
        assert self.leader is not None
        count = self.chance.choice(_BATCH_RECORDS)
        value = NO_OP if self.kind is LogKind.METADATA else b"v%d" % self.chance.randrange(3)
        end = self.leader.end
        data = KERNELS.encode_values(
            [value] * count, base_offset=end, leader_epoch=self.epoch, timestamp_ms=written_ms(end, self.epoch)
        )
        self._write(self.leader, data, count)

    def replicate(self, follower: Node | None = None, batches: int | None = None) -> None:
        """A follower or observer fetches: it cuts off what the leader does not have, or restores a snapshot."""
        assert self.leader is not None
        leader, follower = self.leader, follower or self.any_node()
        if follower is leader:
            return
        follower.epoch, follower.torn = max(follower.epoch, self.epoch), b""
        if follower.end < leader.start:
            end = max(leader.snapshots)
            follower.restore(end, leader.snapshots[end])
            return
        common = self._common_end(leader, follower)
        if common < follower.end:
            assert common >= follower.high_watermark, "the model truncates what is committed"
            follower.cut(common)
            if follower.end < leader.start:
                return  # a snapshot comes next
        missing = [each for each in leader.batches if each.base_offset >= follower.end]
        follower.batches += missing[: batches or self.chance.choice(_BATCHES_A_FETCH)]
        follower.flushed_end = self.acknowledged[follower.id] = follower.end
        self._commit()
        follower.high_watermark = max(follower.high_watermark, min(follower.end, self.committed))

    def flush(self) -> None:
        assert self.leader is not None
        self.leader.flushed_end = self.leader.end
        self._commit()

    def snapshot(self) -> None:
        """A node snapshots what is committed, and may delete the segments before."""
        node = self.any_node()
        ends = [each.last_offset + 1 for each in node.batches if each.last_offset < node.high_watermark]
        if self.kind is not LogKind.METADATA or not ends:
            return
        end = self.chance.choice(ends)
        self.snapshot_at(node, end)
        begins = [each for each in node.segments if each <= end]
        if begins and self.chance.random() < 0.5:
            node.drop_before(max(begins), self.initial)

    def snapshot_at(self, node: Node, end: int) -> None:
        node.snapshots[end] = (node.epoch_before(end) or 0, node.voters(self.initial, end))

    def crash(self) -> None:
        """A node stops inside of a write, and loses what it had not flushed: a part of it may be there, or zeros."""
        node = self.any_node()
        before = list(node.batches)
        node.cut(node.flushed_end)
        lost = [each for each in before if each.base_offset >= node.end]
        if node is self.leader:
            self.leader = None
        elif not lost and self.leader is not None and self._common_end(self.leader, node) == node.end:
            lost = [each for each in self.leader.batches if each.base_offset == node.end]
        if lost:
            node.torn = lost[0].data[: self.chance.randrange(1, len(lost[0].data))]
        elif self.chance.random() < 0.3:
            node.torn = bytes(self.chance.randrange(1, _TORN_BYTES_MAX))

    def copy(self) -> None:
        """A directory is copied while its node runs: the mark first, and then the log, in the middle of an append."""
        node = copy.deepcopy(self.any_node())
        if not node.torn and self.leader is not None and self._common_end(self.leader, node) == node.end:
            following = [each for each in self.leader.batches if each.base_offset == node.end]
            if following and self.chance.random() < 0.5:
                data = following[0].data
                node.torn = data[: self.chance.randrange(1, len(data))]
        self.copies.append(node)

    def reconfigure(self) -> None:
        """The leader adds or removes one voter, when the last change is committed."""
        leader = self.leader
        if leader is None or not self.is_dynamic or self.pending is not None or self.committed <= self.own_start:
            return
        voters = set(leader.voters(self.initial))
        if self.chance.random() < 0.5 and len(voters) < VOTERS_MAX:
            taken = {node_id_of(each) for each in voters}
            others = [each for each in self.nodes if node_id_of(each) not in taken]
            joining = self.chance.choice([*others, max(map(node_id_of, self.nodes)) + 1])
            self.nodes.setdefault(joining, Node(joining))
            voters.add(joining)
        elif len(voters) > 1:
            voters.discard(self.chance.choice(sorted(voters - {leader.id})))
        self.change_voters(voters)

    def change_voters(self, voters: set[int]) -> None:
        """The leader writes down a set that differs by one."""
        leader = self.leader
        assert leader is not None
        ids = tuple(sorted(voters))
        self.pending = leader.end
        self._write(leader, control_batch(leader.end, voters_record(voter_set(ids)), self.epoch), 1, ids)

    def write_mark(self) -> None:
        node = self.any_node()
        node.mark_end = node.flushed_end

    def roll(self) -> None:
        node = self.any_node()
        if node.end > node.segments[-1] and not node.torn:
            node.flushed_end = node.end
            node.segments.append(node.end)

    # --- what follows from it -----------------------------------------------------------------------------------------

    def _write(
        self, leader: Node, data: bytes, count: int, voters: Ids | None = None, *, is_control: bool = False
    ) -> None:
        end = leader.end
        is_control = is_control or voters is not None
        leader.batches.append(Batch(end, end + count - 1, self.epoch, data, voters, is_control))
        if self.chance.random() < 0.8:
            leader.flushed_end = leader.end
        self._commit()

    def _commit(self) -> None:
        leader = self.leader
        assert leader is not None
        self.acknowledged[leader.id] = leader.flushed_end
        voters = leader.voters(self.initial)
        ends = sorted((self.acknowledged.get(each, 0) for each in voters), reverse=True)
        end = ends[len(voters) // 2]
        if end > self.own_start:
            self.committed = max(self.committed, end)
        leader.high_watermark = max(leader.high_watermark, min(self.committed, leader.end))
        if self.pending is not None and self.committed > self.pending:
            self.pending = None

    @staticmethod
    def _common_end(leader: Node, other: Node) -> int:
        ends = {0, other.start, *(each.last_offset + 1 for each in other.batches)}
        for end in sorted(ends, reverse=True):
            epoch = leader.epoch_before(end)
            if end == 0 or (epoch is not None and other.epoch_before(end) == epoch):
                return end
        return 0
