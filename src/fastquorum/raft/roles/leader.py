"""Leader: watches that a majority makes progress, and announces itself to voters that do not fetch.

Appends, Fetches and the high watermark are the lane's. Sources: KIP-595; KAFKA-15489 and KAFKA-15911 (check-quorum);
Kafka `LeaderState`.
"""

from typing import NamedTuple

from fastquorum.kernels.lane import LaneTimeouts, LeaderSession, PeerState
from fastquorum.raft import messages
from fastquorum.raft.core import Core, Role
from fastquorum.raft.doubles import Turns
from fastquorum.raft.effects import AppendControl
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.types import (
    NO_NODE,
    UNKNOWN_OFFSET,
    Micros,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
    VoterSet,
)
from fastquorum.wire import Message


class _Copying(NamedTuple):
    """The progress of a voter that copies a snapshot."""

    snapshot: OffsetAndEpoch
    position: int
    at_us: Micros


class Leader(Role):
    """Created when the election is won; its epoch begins with the control batch that `open_epoch` orders."""

    name = RoleName.LEADER

    def __init__(self, core: Core, granting: tuple[NodeId, ...]) -> None:
        self.since_us = core.now_us
        self.epoch_start = core.log_end
        self.granting = granting
        self.resign_cause: Cause | None = None
        self.preferred: NodeId = NO_NODE
        self._full_since_us: Micros = -1
        self._begin_at_us = core.now_us
        self._copying: dict[NodeId, _Copying] = {}
        self.reported_voters: dict[NodeId, Voter] = {}
        """What static voters have told this leader of themselves (`voter_updates`)."""
        self.turns = Turns()
        self._lane_voters = tuple(voter.key for voter in core.voters)

    def open_epoch(self, core: Core) -> None:
        """Order the epoch's first batch. At kraft.version 1 it also puts the voter set into the log, if it is not
        there as it is."""
        records: list[Message] = [messages.leader_change(core.key.id, core.voters, self.granting)]
        voters = _with_own_entry(core)
        if core.kraft_versions.last >= 1 and (core.voter_sets.last_offset < 0 or voters != core.voters):
            records.append(messages.kraft_version_record(core.kraft_versions.last))
            core.kraft_versions.append(self.epoch_start + 1, core.kraft_versions.last)
            records.append(messages.voters_record(voters))
            core.voter_sets.append(self.epoch_start + 2, voters)
        core.emit(AppendControl(core.epoch, tuple(records)))

    def resign(self, cause: Cause, preferred: NodeId = NO_NODE) -> None:
        """At the end of this step; the preferred successor first, if it is a voter."""
        self.resign_cause = cause
        self.preferred = preferred

    def grants_pre_vote(self, core: Core, is_up_to_date: bool) -> bool:
        return False

    def is_in_contact(self, core: Core) -> bool:
        """Would `poll` do no more than set the next deadline: nobody resigns, and nobody is to be told who leads?"""
        if core.is_disk_full or self._cause_to_end(core, self._quorum_deadline(core)) is not None:
            return False
        return core.now_us < self._begin_at_us or not self._silent_voters(core)

    def poll(self, core: Core) -> Cause | None:
        quorum_deadline = self._quorum_deadline(core)
        cause = self._cause_to_end(core, quorum_deadline)
        if cause is not None:
            return cause
        if core.is_disk_full:
            core.wake_at(core.now_us + core.config.retry_backoff_us)
        else:
            self._full_since_us = -1
        if quorum_deadline >= 0:
            core.wake_at(quorum_deadline)
        self._announce(core)
        return None

    def _cause_to_end(self, core: Core, quorum_deadline: Micros) -> Cause | None:
        if core.is_shutting_down:
            return Cause.SHUTDOWN
        if self.resign_cause is not None:
            return self.resign_cause
        if core.is_disk_full and self._may_give_up(core):
            return Cause.DISK_FULL
        if quorum_deadline >= 0 and core.is_silence(quorum_deadline):
            return Cause.QUORUM_LOST
        return None

    def _may_give_up(self, core: Core) -> bool:
        """Once another voter has all of the log: who lacks a part cannot be elected by this one, which has it and may
        not stand. Appends are refused meanwhile, so that it does not take long; nor is it waited for any longer."""
        if self._full_since_us < 0:
            self._full_since_us = core.now_us
        has_heir = any(peer.end_offset >= core.log_end for peer in voters_among(core) if peer.key != core.key)
        return has_heir or core.is_only_voter or core.now_us >= self._full_since_us + core.config.fetch_timeout_us

    def _quorum_deadline(self, core: Core) -> Micros:
        """When this replica must stop to lead, from the lane's contacts (lane rule 6); -1 never, for a sole voter.

        A voter counts from its last *progress*: one that fetches the same offset for ever is no help (KAFKA-15911).
        """
        others = core.voters.majority - (1 if core.is_voter else 0)
        if others == 0:
            return -1
        progress = [max(self._progress_of(core, node_id), self.since_us) for node_id in core.other_voters]
        return sorted(progress, reverse=True)[others - 1] + core.config.check_quorum_us

    def _progress_of(self, core: Core, node_id: NodeId) -> Micros:
        fetched = max((each.last_progress_us for each in voters_among(core) if each.key.id == node_id), default=-1)
        copying = self._copying.get(node_id)
        return fetched if copying is None else max(fetched, copying.at_us)

    def copies_snapshot(self, core: Core, peer: ReplicaKey, snapshot: OffsetAndEpoch, position: int) -> None:
        """A replica asks for a piece of a snapshot: while it gets on that is progress, as its Fetches would be."""
        before = self._copying.get(peer.id)
        has_moved = before is None or before.snapshot != snapshot or position > before.position
        if has_moved and core.voters.is_voter(peer):
            self._copying[peer.id] = _Copying(snapshot, position, core.now_us)

    def _announce(self, core: Core) -> None:
        """BeginQuorumEpoch, at once and then every half fetch timeout, to voters that have not fetched within it."""
        if core.now_us >= self._begin_at_us:
            self._begin_at_us = core.now_us + core.config.fetch_timeout_us // 2
            core.ask_voters(self._silent_voters(core), messages.begin_quorum_epoch_request(core))
        core.wake_at(self._begin_at_us)

    def _silent_voters(self, core: Core) -> list[NodeId]:
        period = core.config.fetch_timeout_us // 2
        # One whose Fetch is parked here waits for this leader, however long that lasts.
        parked = max(period, core.config.fetch_wait_us_max + period // 2)
        contacted = [
            each.key.id
            for each in voters_among(core)
            if 0 <= core.now_us - each.last_contact_us < (parked if each.connection >= 0 else period)
            and each.last_contact_us >= 0
        ]
        contacted += [node_id for node_id, copying in self._copying.items() if core.now_us - copying.at_us < period]
        return [node_id for node_id in core.other_voters if node_id not in contacted]

    def successors(self, core: Core) -> list[ReplicaKey]:
        """The other voters, the preferred one first, then by how much of the log they have; ids break ties."""
        ends = {each.key.id: each.end_offset for each in voters_among(core)}
        others = [voter.key for voter in core.voters if voter.key.id != core.key.id]
        return sorted(others, key=lambda key: (key.id != self.preferred, -ends.get(key.id, UNKNOWN_OFFSET), key.id))

    def high_watermark(self, core: Core) -> Offset:
        """This epoch's own, which begins unknown."""
        return core.lane.high_watermark if core.lane is not None else UNKNOWN_OFFSET

    def session(self, core: Core) -> LeaderSession:
        """Should static voters be given their directories in this epoch, the lane goes on to know them by their ids:
        raft/ says of every peer that it admits whether it is a voter, and none that is not was admitted before."""
        return LeaderSession(
            epoch=core.epoch,
            voters=self._lane_voters,
            epoch_start=self.epoch_start,
            high_watermark=UNKNOWN_OFFSET,
            timeouts=LaneTimeouts(core.config.fetch_wait_us_max),
            endpoint=core.endpoint_of(core.key.id),
        )


def voters_among(core: Core) -> list[PeerState]:
    """The admitted peers that are voters."""
    return [peer for peer in core.peers if core.voters.is_voter(peer.key)]


def _with_own_entry(core: Core) -> VoterSet:
    """The voter set with this replica's own, current endpoints and versions."""
    own = core.voters.get(core.key.id)
    if own is None or not core.listeners:
        return core.voters
    mine = Voter(own.key, core.listeners)
    return VoterSet([mine if voter.key.id == core.key.id else voter for voter in core.voters])
