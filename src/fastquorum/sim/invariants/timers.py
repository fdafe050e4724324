"""Promises about elections and their timers: S22 (no epoch without a majority's pre-votes), S23 (a leader without
contact to a majority resigns), F20 (so does one whose disk does not sync), and lane rule 6 (a stalled Python neither
elects nor resigns by mistake: a follower stands early only if its leader's process seems to be gone)."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from fastquorum.config import QuorumConfig
from fastquorum.node.replica import Replica
from fastquorum.raft.election import ElectionState
from fastquorum.raft.transitions import RoleName
from fastquorum.sim.invariants.lanes import WatchedLane
from fastquorum.sim.network import Packet
from fastquorum.sim.report import Violation
from fastquorum.types import Epoch, Micros, NodeId
from fastquorum.wire.messages.quorum import EndQuorumEpochRequest, VoteResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest

RESIGN_SLACK_US: Final[Micros] = 50_000
STALL_SLACK_US: Final[Micros] = 100_000
REFUSALS_OF_THE_GONE: Final = 2
"""Attempts to fetch from a leader that end at once: this number means that its process is gone."""


@dataclass(slots=True)
class TimerEvents:
    """The messages to one node that concern its timers, and its elections."""

    pre_votes: dict[Epoch, dict[NodeId, None]] = field(default_factory=dict)
    ended_epochs: dict[Epoch, None] = field(default_factory=dict)
    candidacies: dict[Epoch, None] = field(default_factory=dict)
    attempts: dict[int, NodeId] = field(default_factory=dict)
    """Connections that it began without an answer yet, and the node at the other end."""
    failed_us: dict[NodeId, list[Micros]] = field(default_factory=dict)
    """When such connections ended, by node."""

    def begin(self) -> None:
        """Begin a new life. The epochs in which it stood are kept."""
        self.pre_votes.clear()
        self.ended_epochs.clear()
        self.attempts.clear()
        self.failed_us.clear()

    def ended(self, number: int, now_us: Micros, *, is_for_fetches: bool) -> None:
        """Note the end of a connection. Only those for Fetches count: others may never have been to the leader."""
        target = self.attempts.pop(number, None)
        if target is not None and is_for_fetches:
            self.failed_us.setdefault(target, []).append(now_us)

    def may_miss(self, leader_id: NodeId, since_us: Micros) -> bool:
        """Return whether it was refused often enough since then to consider the leader's process gone."""
        failed = sum(at_us > since_us for at_us in self.failed_us.get(leader_id, ()))
        return failed >= REFUSALS_OF_THE_GONE


class TimedProcess(Protocol):
    """A simulated process as these promises see it."""

    node_id: NodeId
    timer_events: TimerEvents
    replica: Replica
    lane: WatchedLane
    may_resign: bool
    is_disk_full: bool

    @property
    def voters(self) -> tuple[NodeId, ...]: ...
    @property
    def config(self) -> QuorumConfig: ...
    @property
    def now_us(self) -> Micros:
        """The node's own clock."""

    @property
    def is_behind(self) -> bool:
        """Whether an event waits for its thread that should have happened by now."""

    @property
    def stalled_us(self) -> Micros:
        """How long a sync has been overdue while its thread ran, in microseconds."""

    def peer_of(self, number: int) -> NodeId:
        """Return the node at the other end of a connection."""


def note_arrival(process: TimedProcess, number: int, packet: Packet) -> None:
    """Note what a frame that arrives lets its receiver do."""
    process.timer_events.attempts.pop(number, None)
    message = packet.message
    if isinstance(message, VoteResponse):
        if message.error_code:
            return
        partition = message.topics[0].partitions[0]
        if partition.vote_granted:
            granting = process.timer_events.pre_votes.setdefault(partition.leader_epoch, {})
            granting[process.peer_of(number)] = None
    elif isinstance(message, FetchSnapshotRequest):
        process.lane.copies_snapshot(message.replica_id, process.now_us)
    elif isinstance(message, EndQuorumEpochRequest):
        process.timer_events.ended_epochs[message.topics[0].partitions[0].leader_epoch] = None


def check_candidacy(process: TimedProcess, election: ElectionState) -> None:
    """Check S22 when a vote for oneself becomes durable."""
    voted, events = election.voted_key, process.timer_events
    if voted is None or voted.id != process.node_id or election.leader_id >= 0 or election.epoch in events.candidacies:
        return
    events.candidacies[election.epoch] = None
    granting = events.pre_votes.get(election.epoch - 1, {})
    others = sum(voter in granting for voter in process.voters if voter != process.node_id)
    if others + 1 < len(process.voters) // 2 + 1:
        raise Violation("S22", f"stands in {election.epoch} with pre-votes of {others} others", process.node_id)


def check(process: TimedProcess, role_before: RoleName) -> None:
    """Check a process after a turn."""
    raft, lane, now_us = process.replica.raft, process.lane, process.now_us
    config = process.config
    role = raft.role
    if role_before is RoleName.FOLLOWER and role in (RoleName.PROSPECTIVE, RoleName.CANDIDATE):
        silent_us = now_us - lane.leader_contact_us
        if (
            lane.leader_contact_us >= 0
            and silent_us < config.fetch_timeout_us
            and raft.epoch not in process.timer_events.ended_epochs
            and not process.timer_events.may_miss(raft.leader_id, lane.leader_contact_us)
        ):
            raise Violation("R6", f"stands {silent_us} us after its leader was heard", process.node_id)
    may_resign = process.may_resign or process.is_disk_full
    if role_before is RoleName.LEADER and role is RoleName.RESIGNED and not may_resign:
        _check_resignation(process, now_us - config.check_quorum_us)
    if role is RoleName.LEADER:
        process.may_resign = False
        if process.is_behind:
            return  # just back from a stall: its timer is in the queue, behind the frames that came meanwhile
        if process.stalled_us > STALL_SLACK_US:
            raise Violation("F20", f"leads though its disk has stalled for {process.stalled_us} us", process.node_id)
        contact_us = lane.majority_contact_us()
        if contact_us >= 0 and now_us - contact_us > config.check_quorum_us + RESIGN_SLACK_US:
            raise Violation("S23", f"leads though no majority was heard for {now_us - contact_us} us", process.node_id)


def _check_resignation(process: TimedProcess, since_us: Micros) -> None:
    """Check rule 6: no resignation while a majority made progress within the check-quorum time."""
    state = process.lane.last_state
    if state is None:
        return
    progressing = sum(
        peer.is_voter and peer.key.id != process.node_id and peer.last_progress_us > since_us for peer in state.peers
    )
    if progressing + 1 >= len(process.voters) // 2 + 1:
        raise Violation("R6", f"resigns though {progressing} other voters make progress", process.node_id)
