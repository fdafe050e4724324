"""What all roles of one replica share: the election, the voters, the step under way and the effects it has ordered
so far; and what every role answers to that.

May not know which role follows which (`moves`), nor how requests are judged. Sources: KIP-595, KIP-853, KIP-996; Kafka
`EpochState`.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from fastquorum.config import QuorumConfig
from fastquorum.errors import ProtocolFatal
from fastquorum.kernels.lane import LaneMode, LaneState, PeerState
from fastquorum.raft.copying import SnapshotCopy
from fastquorum.raft.effects import CloseLane, Effect, PersistElection, SendRequest
from fastquorum.raft.election import ElectionState
from fastquorum.raft.in_flight import InFlight
from fastquorum.raft.ports import LogView, Random
from fastquorum.raft.tally import Tally
from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.raft.voter_epochs import VoterEpochs
from fastquorum.raft.voters import LogHistory, VoterSetHistory
from fastquorum.types import (
    LISTENER_NAME,
    NO_NODE,
    UNKNOWN_OFFSET,
    ZERO_UUID,
    Endpoint,
    Epoch,
    Micros,
    NodeId,
    Offset,
    ReplicaKey,
    VoterSet,
)
from fastquorum.wire import Message

EPOCH_MAX = 2**31 - 1

ForVoter = Callable[[ReplicaKey], Message]
"""A request to one voter, made from the voter's key."""


class Role:
    """Base of the six roles. A role holds only what ends with it; what outlives it is the core's."""

    name: ClassVar[RoleName]
    election_deadline_us: Micros = -1
    """When the next election may begin; -1 in roles that do not wait for one."""

    def poll(self, core: "Core") -> Cause | None:
        """Do what is due now, register the next wake-up with the core, and say why the role ends, if it does."""
        raise NotImplementedError

    def absorb(self, core: "Core") -> None:
        """Take over what the frozen lane saw (lane rule 6), before anything is decided."""

    def grants_pre_vote(self, core: "Core", is_up_to_date: bool) -> bool:
        """Would this replica's vote be given, as KIP-996 asks? Stores nothing."""
        return is_up_to_date

    def grants_vote(self, core: "Core", candidate: ReplicaKey, is_up_to_date: bool) -> bool:
        """Is this epoch's vote given to this candidate? The epoch is the current one.

        It may be given again, to whoever missed the answer. But a candidate that lost the end of its log in a crash
        asks with less than it was given the vote for: that must not be a vote for the shorter log (Raft section 5.4.1
        asks for both conditions; Kafka's `UnattachedState` looks at the log only the first time).
        """
        return False


class Core:
    """See the module. Everything here is plain state; `begin` and `take_effects` bracket a step."""

    role: Role

    def __init__(
        self,
        *,
        key: ReplicaKey,
        cluster_id: str,
        config: QuorumConfig,
        log: LogView,
        random: Random,
        voter_sets: VoterSetHistory,
        kraft_versions: LogHistory[int],
        bootstrap: tuple[Endpoint, ...],
        listeners: tuple[Endpoint, ...],
        tells_leaders: bool,
    ) -> None:
        self.key = key
        self.cluster_id = cluster_id
        self.config = config
        self.log = log
        self.random = random
        self.voter_sets = voter_sets
        self.kraft_versions = kraft_versions
        self.listeners = listeners
        self.tells_leaders = tells_leaders
        self.tally = Tally()
        self.voter_epochs = VoterEpochs(config.request_timeout_us)
        self.election = ElectionState()
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        """Where the leader of this epoch listens, as it or others told; empty if no leader is known."""
        self.high_watermark: Offset = UNKNOWN_OFFSET
        """The highest this replica ever knew in this life: what must never be truncated, whoever leads."""
        self.requests = InFlight(config.request_timeout_us, config.retry_backoff_us)
        self.attempt = 0
        self.strangers_barred_until_us: Micros = 0
        """Until then no request of a replica that is no voter here moves this one (`claims`)."""
        self.led_until_us: Micros = 0
        """When a leader was last heard, this replica led or started."""
        self.own_word_epoch: Epoch = -1
        """The epoch in which a replica that is not a voter here claimed to lead, and no other replica confirmed it; -1
        if none."""
        self.pre_voted_stranger: tuple[ReplicaKey, Epoch] | None = None
        """The stranger whose pre-vote, for this epoch, used up what strangers may do: its Vote needs no more of that
        (`claims`)."""
        self.copy: SnapshotCopy | None = None
        """The snapshot that is being fetched from this epoch's leader, also while this replica stands beside it."""
        self.is_link_spent = False
        """Lane and link to the leader were parted while a Fetch had no answer yet: nothing may be asked behind it (lane
        rule 7), so that the lane needs another link."""
        self.shutdown_deadline_us: Micros = -1
        self.causes: list[Cause] = []
        """Why roles ended since users last heard of who leads."""
        self.hands_over = False
        """It shuts down, and led when it was to: whoever leads next is waited for."""
        self.is_shut_down = False
        self.now_us: Micros = 0
        self.is_timers_turn = False
        self.lane: LaneState | None = None
        self.wake_at_us: Micros = -1
        self.had_session = False
        """The lane is open, or will be once the effects of the last step are carried out."""
        self.bootstrap = bootstrap
        self.next_bootstrap = random.randrange(max(len(bootstrap), len(self.voters), 1))
        """The index of the bootstrap server, or voter, to be asked next for the leader (`discovery`)."""
        self._learned: dict[NodeId, tuple[Endpoint, ...]] = {}
        self.is_disk_full = False
        """Whether the disk was full when the step began: a caller's append may find it full at any time."""
        self._stalled_flushed_end: Offset = UNKNOWN_OFFSET
        self._effects: list[Effect] = []
        self._is_unsaved = False
        self._is_lane_closed = False

    # --- the step -----------------------------------------------------------------------------------------------------

    def begin(self, lane: LaneState | None, now_us: Micros, *, is_timers_turn: bool) -> None:
        """A step begins. `lane` is what the frozen lane knows; only this and the log are decided from (lane rule 2)."""
        self.now_us = max(now_us, self.now_us)
        self.is_timers_turn = is_timers_turn
        self.lane = None if lane is None or lane.mode is LaneMode.CLOSED or lane.epoch != self.epoch else lane
        self._effects = []
        self._is_lane_closed = False
        self.is_disk_full = self.log.is_full
        if self.lane is not None:
            self.learn_high_watermark(self.lane.high_watermark)
            self.role.absorb(self)
        if self.log.flushed_end > self._stalled_flushed_end:
            self.disk_recovered()

    def emit(self, effect: Effect) -> None:
        """Order an effect. What was decided about the election becomes durable before anything that could tell of
        it."""
        if not isinstance(effect, CloseLane):
            self._save()
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        self._save()
        effects, self._effects = self._effects, []
        return effects

    def abandon(self) -> list[Effect]:
        """The replica must stop: what was ordered so far, without claims that are not yet durable."""
        effects, self._effects = self._effects, []
        return effects

    def elect(self, election: ElectionState) -> None:
        """Decide epoch, leader and vote. Durable before the next effect."""
        assert election.epoch >= self.election.epoch, f"epoch {self.election.epoch} cannot fall to {election.epoch}"
        if election.epoch > EPOCH_MAX:
            raise ProtocolFatal(
                f"epoch {self.election.epoch} is the last one there is, which no quorum reaches by elections: this "
                "node's election state is damaged, or a peer invented the epoch; if the other voters go on in a lower "
                "epoch, format this directory anew, else all of them, and append what the log holds"
            )
        if election.epoch > self.election.epoch:
            self.leader_endpoints = ()
            self.copy = None
        self._is_unsaved = self._is_unsaved or election != self.election
        self.resume(election)

    def resume(self, election: ElectionState) -> None:
        """This is durable, or about to be."""
        self.election = election
        for node_id in (election.leader_id, NO_NODE if election.voted_key is None else election.voted_key.id):
            voter = self.voters.get(node_id)
            if voter is not None:
                self.voter_epochs.note(voter.key, election.epoch, self.now_us)

    def _save(self) -> None:
        if self._is_unsaved:
            self._is_unsaved = False
            self._effects.append(PersistElection(self.election))

    def close_lane(self) -> None:
        """Nothing of the open session may leave any more: ordered before whatever ends it (lane rule 3)."""
        if self.had_session and not self._is_lane_closed:
            self._is_lane_closed = True
            self.is_link_spent |= self.lane is not None and self.lane.fetch_in_flight >= 0
            self.emit(CloseLane())

    @property
    def is_lane_closed(self) -> bool:
        """True if no lane is open at this point of the step."""
        return self._is_lane_closed or not self.had_session

    def wake_at(self, at_us: Micros) -> None:
        """Something will be due then. A time that has passed means as soon as possible."""
        at_us = max(at_us, self.now_us + 1)
        self.wake_at_us = at_us if self.wake_at_us < 0 else min(self.wake_at_us, at_us)

    def is_silence(self, until_us: Micros) -> bool:
        """Has nobody been heard for too long, the deadline being `until_us`?

        Decided in the timer's turn only. After a stall frames wait before it, and the first may be anybody's: the sign
        of life can be the one behind it, or the very Fetch that this step admits (lane rule 6).
        """
        return self.is_timers_turn and self.now_us >= until_us

    # --- who we are ---------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> Epoch:
        return self.election.epoch

    @property
    def leader_id(self) -> NodeId:
        """Leader of this epoch, -1 unknown. A resigned leader still names itself, as Kafka's do."""
        return self.election.leader_id

    @property
    def is_leader_unproven(self) -> bool:
        """Does nobody but itself say of the leader, which is no voter here, that it leads (`claims`)?"""
        is_own_claim = self.own_word_epoch == self.epoch and self.leader_id not in (NO_NODE, self.key.id)
        return is_own_claim and self.is_voter and self.voters.get(self.leader_id) is None

    @property
    def reported_leader_id(self) -> NodeId:
        """The leader, as far as others are to be told of it; -1: none."""
        return NO_NODE if self.is_leader_unproven else self.leader_id

    @property
    def voters(self) -> VoterSet:
        return self.voter_sets.last

    @property
    def is_voter(self) -> bool:
        return self.voters.is_voter(self.key)

    @property
    def is_only_voter(self) -> bool:
        return len(self.voters) == 1 and self.is_voter

    @property
    def other_voters(self) -> tuple[NodeId, ...]:
        return tuple(node_id for node_id in self.voters.ids if node_id != self.key.id)

    @property
    def is_shutting_down(self) -> bool:
        return self.shutdown_deadline_us >= 0

    @property
    def may_stand(self) -> bool:
        """A replica that stops, or whose disk takes nothing, must not become leader."""
        return not self.is_shutting_down and self.can_commit

    def is_same_replica(self, stored: ReplicaKey, other: ReplicaKey) -> bool:
        """Same id, and same directory where one was stored (kraft.version 0 stores none)."""
        return stored.id == other.id and stored.directory_id in (ZERO_UUID, other.directory_id)

    # --- the disk -----------------------------------------------------------------------------------------------------

    @property
    def can_commit(self) -> bool:
        """Does the disk sync, and has it room?"""
        return self._stalled_flushed_end < 0 and not self.is_disk_full

    def disk_stalled(self) -> None:
        self._stalled_flushed_end = self.log.flushed_end

    def disk_recovered(self) -> None:
        self._stalled_flushed_end = UNKNOWN_OFFSET

    # --- the log ------------------------------------------------------------------------------------------------------

    @property
    def log_end(self) -> Offset:
        """Unflushed bytes included; from the frozen lane where one was open (lane rule 2)."""
        return self.log.end_offset if self.lane is None else self.lane.log_end

    def learn_high_watermark(self, high_watermark: Offset) -> bool:
        """Monotone. True if it moved."""
        moved = high_watermark > self.high_watermark
        if moved:
            self.high_watermark = high_watermark
        return moved

    @property
    def peers(self) -> tuple[PeerState, ...]:
        """Leader: the peers that its lane has admitted in this epoch."""
        return self.lane.peers if self.lane is not None and self.lane.mode is LaneMode.LEADER else ()

    # --- time ---------------------------------------------------------------------------------------------------------

    def random_election_deadline(self) -> Micros:
        """T to 2T from now, so that voters rarely stand together."""
        timeout = self.config.election_timeout_us
        return self.now_us + timeout + self.random.randrange(max(timeout, 1))

    # --- whom to reach, and how ---------------------------------------------------------------------------------------

    def learn_endpoints(self, node_id: NodeId, endpoints: tuple[Endpoint, ...]) -> None:
        self._learned[node_id] = endpoints

    def endpoints_of(self, node_id: NodeId) -> tuple[Endpoint, ...]:
        """Where a replica listens, as far as known."""
        if node_id == self.key.id:
            return self.listeners
        if node_id == self.leader_id and self.leader_endpoints:
            return self.leader_endpoints
        if node_id in self._learned:
            return self._learned[node_id]
        voter = self.voters.get(node_id)
        return voter.endpoints if voter is not None else ()

    def endpoint_of(self, node_id: NodeId) -> Endpoint | None:
        """The quorum listener's endpoint, else the first one."""
        endpoints = self.endpoints_of(node_id)
        return next((each for each in endpoints if each.name == LISTENER_NAME), endpoints[0] if endpoints else None)

    def request(self, node_id: NodeId, endpoint: Endpoint, message: Message) -> None:
        self.emit(SendRequest(node_id, endpoint, self.requests.sent(node_id, self.now_us), message))

    def ask_voters(self, voter_ids: Iterable[NodeId], message: ForVoter) -> None:
        """Send to each of these voters that may be asked now; wake up when another may."""
        for node_id in voter_ids:
            ready_at = self.requests.ready_at(node_id, self.now_us)
            endpoint = self.endpoint_of(node_id)
            voter = self.voters.get(node_id)
            if endpoint is None or voter is None:
                continue
            if ready_at <= self.now_us:
                self.request(node_id, endpoint, message(voter.key))
                ready_at = self.requests.ready_at(node_id, self.now_us)
            self.wake_at(ready_at)
