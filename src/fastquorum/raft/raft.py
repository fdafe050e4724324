"""One replica's consensus, sans-IO: an event and what the frozen lane knows go in, effects as values come out, in
order.

This is the facade; the roles have modules of their own (`unattached`, `prospective`, `candidate`, `leader`, `follower`,
`resigned`), `transitions` is the table that leads from one to the next. No clock, no threads, no randomness but the
injected generator's. Sources: KIP-595, KIP-853 (voter keys), KIP-996 (pre-vote).
"""

from typing import NamedTuple

from fastquorum.config import QuorumConfig
from fastquorum.errors import FatalError
from fastquorum.kernels.lane import LaneSession, LaneState, same_session
from fastquorum.raft import answers, describe, fetches, moves, requests, voter_updates
from fastquorum.raft.core import Core
from fastquorum.raft.effects import Effect, Halt, LeadershipChanged, ShutdownComplete
from fastquorum.raft.election import ElectionState
from fastquorum.raft.events import (
    DiskRecovered,
    DiskStalled,
    EndpointsChanged,
    Event,
    FetchResponseReceived,
    KRaftVersionRaised,
    LeaderConnection,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    RoomChanged,
    ShutdownRequested,
    SnapshotInstalled,
    Started,
    TimerFired,
)
from fastquorum.raft.ports import LogView, Random
from fastquorum.raft.roles.follower import Follower
from fastquorum.raft.roles.leader import Leader
from fastquorum.raft.roles.resigned import Resigned
from fastquorum.raft.tally import Elections, LeadershipChanges
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.raft.voters import LogHistory, VoterSetHistory
from fastquorum.types import NO_NODE, Endpoint, Epoch, Micros, NodeId, Offset, ReplicaKey, VoterSet
from fastquorum.wire import Message
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, UpdateRaftVoterRequest
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest

CAUSES_MAX = 4
"""Most causes that a change of leadership is told with."""
SHUTDOWN_US_MAX: Micros = 3_000_000
"""A graceful stop ends after this long, whether or not another leader is known."""


class Description(NamedTuple):
    """A replica's state for status displays."""

    node_id: NodeId
    role: str
    is_voter: bool
    epoch: Epoch
    leader_id: NodeId
    voted_key: ReplicaKey | None
    voters: VoterSet
    kraft_version: int
    high_watermark: Offset
    voters_offset: Offset
    """Offset of the record that the voters come from; -1 if they do not come from the log."""
    unreachable_voters: int
    """Voters, this replica not counted, of which no endpoint is known."""
    elections: Elections
    leadership_changes: LeadershipChanges


class Raft:
    """See the module."""

    def __init__(
        self,
        *,
        key: ReplicaKey,
        cluster_id: str,
        config: QuorumConfig,
        log: LogView,
        random: Random,
        election: ElectionState | None,
        voters: VoterSet,
        voters_offset: Offset = -1,
        kraft_version: int = 0,
        later_voter_sets: tuple[tuple[Offset, VoterSet], ...] = (),
        later_kraft_versions: tuple[tuple[Offset, int], ...] = (),
        tells_leaders: bool = False,
        bootstrap: tuple[Endpoint, ...] = (),
        listeners: tuple[Endpoint, ...] = (),
    ) -> None:
        """
        Args:
            election: what was last persisted; None if nothing ever was.
            voters: the static voter set, or the one of the (0, 0) checkpoint.
            voters_offset: offset of the record that `voters` comes from; -1 if it does not come from the log.
            later_voter_sets: the voter sets that recovery found in the log, by offset; likewise the versions.
            tells_leaders: a static voter tells every leader what it is, so that kraft.version can be raised.
            bootstrap: servers to ask for the leader; empty: the voters.
            listeners: where this replica itself can be reached.
        """
        voter_sets = VoterSetHistory(voters, voters_offset)
        for offset, later in later_voter_sets:
            voter_sets.append(offset, later)
        kraft_versions = LogHistory(kraft_version)
        for offset, version in later_kraft_versions:
            kraft_versions.append(offset, version)
        self._core = Core(
            key=key,
            cluster_id=cluster_id,
            config=config,
            log=log,
            random=random,
            voter_sets=voter_sets,
            kraft_versions=kraft_versions,
            tells_leaders=tells_leaders,
            bootstrap=bootstrap,
            listeners=listeners,
        )
        self._is_started = False
        self._is_halted = False
        self._announced: LeadershipChanged | None = None
        moves.initial_role(self._core, election)

    # --- what may be asked --------------------------------------------------------------------------------------------

    @property
    def key(self) -> ReplicaKey:
        return self._core.key

    @property
    def role(self) -> RoleName:
        return self._core.role.name

    @property
    def epoch(self) -> Epoch:
        return self._core.epoch

    @property
    def leader_id(self) -> NodeId:
        """Leader of this epoch, -1 unknown. A resigned leader still names itself."""
        return self._core.leader_id

    @property
    def voters(self) -> VoterSet:
        return self._core.voters

    @property
    def is_voter(self) -> bool:
        return self._core.is_voter

    @property
    def high_watermark(self) -> Offset:
        """The highest that raft/ has learned in this life; the lane's own may be ahead of it."""
        return self._core.high_watermark

    @property
    def election(self) -> ElectionState:
        return self._core.election

    @property
    def deadline_us(self) -> Micros:
        """When TimerFired is due; -1 never."""
        return -1 if self._is_over else self._core.wake_at_us

    def endpoint_of(self, node_id: NodeId) -> Endpoint | None:
        """Where a replica can be reached, if that is known."""
        return self._core.endpoint_of(node_id)

    def describe(self) -> Description:
        core = self._core
        return Description(
            node_id=core.key.id,
            role=str(core.role.name) if core.is_voter else "observer",
            is_voter=core.is_voter,
            epoch=core.epoch,
            leader_id=core.leader_id,
            voted_key=core.election.voted_key,
            voters=core.voters,
            kraft_version=core.kraft_versions.last,
            high_watermark=core.high_watermark,
            voters_offset=core.voter_sets.last_offset,
            unreachable_voters=sum(core.endpoint_of(node_id) is None for node_id in core.other_voters),
            elections=core.tally.so_far(),
            leadership_changes=core.tally.changes_so_far(),
        )

    @property
    def latest_causes(self) -> tuple[Cause, ...]:
        """Why leadership changed last, in order; empty before any change. Any thread may look."""
        return self._core.tally.latest_causes

    def quorum_at(self, end_offset: Offset) -> tuple[VoterSet, int]:
        """The voters and the kraft.version in force behind the last record below a committed offset."""
        return self._core.voter_sets.at(end_offset), self._core.kraft_versions.at(end_offset)

    def fault_of_raising(self, kraft_version: int) -> str:
        """Why kraft.version cannot be raised to this one, as of the last step; empty if it can."""
        return voter_updates.fault_of_raising(self._core, kraft_version)

    def raising_records(self, kraft_version: int) -> tuple[Message, ...]:
        """What would be appended to raise it, as of the last step; none if it cannot be."""
        return voter_updates.raising_records(self._core, kraft_version)

    def lane_session(self) -> LaneSession | None:
        """What the lane is to be opened with once the step's effects are carried out; None: it stays closed."""
        role = self._core.role
        if self._is_over or not self._is_started:
            return None
        if isinstance(role, Leader):
            return role.session(self._core)
        return role.session(self._core) if isinstance(role, Follower) and role.is_fetching(self._core) else None

    # --- the step -----------------------------------------------------------------------------------------------------

    def step(self, event: Event, lane: LaneState | None, now_us: Micros) -> list[Effect]:
        """Decide what follows from the event. `lane` is the frozen lane's state, None if none was open."""
        if self._is_over:
            return []
        core = self._core
        before = self.lane_session()
        core.had_session = before is not None
        core.begin(lane, now_us, is_timers_turn=isinstance(event, TimerFired))
        try:
            self._handle(event)
            moves.run(core)
        except FatalError as error:
            self._is_halted = True
            core.close_lane()
            return [*core.abandon(), Halt(error)]
        self._announce_leadership()
        self._complete_shutdown()
        after = self.lane_session()
        assert core.is_lane_closed or same_session(before, after), "the lane's session changed without CloseLane"
        return core.take_effects()

    def renew(self, lane: LaneState, now_us: Micros) -> bool:
        """The timer's turn of a leader that its voters fetch from: True if it decides nothing, and `deadline_us` is
        the next one. Else nothing has been decided, and `TimerFired` is for `step`.

        `lane` need not be frozen: it goes on meanwhile, but contacts only become newer, so that whoever is heard now is
        no silence (lane rule 6).
        """
        core = self._core
        if self._is_over or not isinstance(core.role, Leader):
            return False
        core.begin(lane, now_us, is_timers_turn=True)
        if core.lane is None or not core.role.is_in_contact(core):
            return False
        moves.run(core)
        assert not core.take_effects(), "a turn that decides nothing has effects"
        return True

    def answer(self, event: RequestReceived, lane: LaneState, now_us: Micros) -> list[Effect]:
        """A leader's answer to a request that asks how things stand, or for a piece of a snapshot; no effects if the
        request is for `step`. Nothing is decided: `lane` need not be frozen, as for `renew`.
        """
        core, message = self._core, event.message
        if self._is_over or not isinstance(core.role, Leader):
            return []
        if not isinstance(message, DescribeQuorumRequest | FetchSnapshotRequest):
            return []
        core.begin(lane, now_us, is_timers_turn=False)
        if core.lane is None:
            return []
        self._on_request(event)
        return core.take_effects()

    @property
    def _is_over(self) -> bool:
        return self._is_halted or self._core.is_shut_down

    def _handle(self, event: Event) -> None:
        core = self._core
        match event:
            case RequestReceived():
                self._on_request(event)
            case ResponseReceived():
                answers.on_response(core, event)
            case FetchResponseReceived():
                answers.on_fetch_response(core, event)
            case SnapshotInstalled():
                if isinstance(core.role, Follower):
                    core.role.on_installed(core, event)
            case RequestFailed():
                answers.on_failure(core, event)
            case LeaderConnection(node_id, is_connected):
                if isinstance(core.role, Follower) and core.role.leader_id == node_id:
                    core.role.on_connection(core, is_connected)
            case TimerFired():
                pass  # what is due is done after every event; but who fell silent is decided only now
            case RoomChanged():
                pass  # as the log says
            case Started():
                self._is_started = True
                moves.begin(core)
            case DiskStalled():
                core.disk_stalled()
                if isinstance(core.role, Leader):
                    core.role.resign(Cause.DISK_STALLED)
            case DiskRecovered():
                core.disk_recovered()
            case ResignRequested(preferred, epoch, cause):
                if isinstance(core.role, Leader) and epoch == core.epoch:
                    core.role.resign(cause, preferred)
            case KRaftVersionRaised():
                voter_updates.on_raised(core, event)
            case ShutdownRequested():
                if not core.is_shutting_down:
                    core.hands_over = isinstance(core.role, Leader | Resigned)
                    core.shutdown_deadline_us = core.now_us + SHUTDOWN_US_MAX
            case EndpointsChanged(node_id, endpoints):
                core.learn_endpoints(node_id, endpoints)

    def _on_request(self, event: RequestReceived) -> None:
        core, message = self._core, event.message
        core.voter_epochs.serve(event.connection)
        pending = requests.PendingRequest(event.token, event.api_version)
        match message:
            case VoteRequest():
                requests.on_vote(core, pending, message)
            case BeginQuorumEpochRequest():
                requests.on_begin_quorum_epoch(core, pending, message)
            case EndQuorumEpochRequest():
                requests.on_end_quorum_epoch(core, pending, message)
            case FetchRequest():
                fetches.on_fetch(core, event, message)
            case FetchSnapshotRequest():
                fetches.on_fetch_snapshot(core, event, message)
            case DescribeQuorumRequest():
                describe.on_describe_quorum(core, event, message)
            case UpdateRaftVoterRequest():
                voter_updates.on_update_raft_voter(core, event, message)
            case _:
                raise AssertionError(f"{type(message).__name__} is not a request of the quorum")

    def _announce_leadership(self) -> None:
        """Users hear of every change, of their own replica's lead only while it may append."""
        core = self._core
        is_self = isinstance(core.role, Leader)
        leader_id = core.leader_id if is_self or core.leader_id != core.key.id else NO_NODE
        endpoint = core.endpoint_of(leader_id) if leader_id != NO_NODE else None
        now = LeadershipChanged(core.epoch, leader_id, endpoint, is_self, _latest(core.causes))
        if now != self._announced:
            was_led = self._announced is not None and self._announced.leader_id != NO_NODE
            if was_led or leader_id != NO_NODE:  # else another epoch without a leader: that hides no earlier cause
                core.tally.leadership_changed(now.causes, was_led=was_led)
            self._announced = now
            core.causes.clear()
            core.emit(now)

    def _complete_shutdown(self) -> None:
        """Done when others can go on without this replica, or at the deadline (Kafka `KafkaRaftClient`). Whoever does
        not lead has nothing to hand over: others are elected without it, or not for long."""
        core = self._core
        if not core.is_shutting_down:
            return
        role = core.role
        has_other_leader = isinstance(role, Follower)
        is_needless = not core.is_voter or core.is_only_voter or not core.hands_over
        is_hopeless = isinstance(role, Resigned) and role.has_no_successor(core)
        if has_other_leader or is_needless or is_hopeless or core.now_us >= core.shutdown_deadline_us:
            core.close_lane()
            core.is_shut_down = True
            core.emit(ShutdownComplete())
        else:
            core.wake_at(core.shutdown_deadline_us)


def _latest(causes: list[Cause]) -> tuple[Cause, ...]:
    """The last few: elections that nobody wins may go on for days."""
    del causes[:-CAUSES_MAX]
    return tuple(causes)
