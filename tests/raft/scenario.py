"""One replica's raft/ on a fake log and lane, and a short language to set it up and talk to it.

`replica(1).voters(1, 2, 3).leader(epoch=5).log("1:10 5:3")` is replica 1 of three, which leads epoch 5 and whose log
has ten records of epoch 1 and three of epoch 5. Nothing is built before the first question to it.
"""

import copy
import random
from typing import Any, Self, TypeVar

from fastquorum.config import MS, QuorumConfig
from fastquorum.kernels.lane import PeerState
from fastquorum.raft import effects as fx
from fastquorum.raft import events as ev
from fastquorum.raft.claims import ELECTIONS
from fastquorum.raft.election import ElectionState
from fastquorum.raft.raft import Raft
from fastquorum.raft.transitions import RoleName
from fastquorum.types import (
    NO_NODE,
    Endpoint,
    Epoch,
    Micros,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    VoterSet,
)
from fastquorum.wire import Message
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse

from .fakes import FakeLane, FakeLog, epochs_of
from .wire_messages import CLUSTER, endpoint, key, vote_response, voter_set

CONFIG = QuorumConfig()
START_US = 10_000 * MS
WAIT_US = CONFIG.fetch_timeout_us + ELECTIONS * CONFIG.election_timeout_us
"""A voter without a leader waits so long before a stranger has a say."""
EPOCH_MS = 1_700_000_000_000
M = TypeVar("M", bound=Message)


class Replica:
    """The builder until it is first asked something; then the driver, which carries effects out and keeps them."""

    def __init__(self, node_id: NodeId) -> None:
        self.id = node_id
        self.key = key(node_id)
        self.config = CONFIG
        self._now_us = START_US
        self.fake_log = FakeLog([])
        self.lane = FakeLane()
        self.stored: ElectionState | None = None
        self.effects: list[fx.Effect] = []
        """Everything ordered since the set-up, or the last `forget`."""
        self._voters = voter_set(1, 2, 3)
        self._later_voters: tuple[tuple[Offset, VoterSet], ...] = ()
        self._voters_offset = 0
        self._kraft_version = 1
        self._later_kraft_versions: tuple[tuple[Offset, int], ...] = ()
        self._tells_leaders = False
        self._bootstrap: tuple[Endpoint, ...] = ()
        self._target = ""
        self._target_epoch = 0
        self._target_leader = NO_NODE
        self._raft: Raft | None = None
        self._last_requests: dict[NodeId, fx.SendRequest] = {}
        self._tokens = 0
        self._seed = 0

    # --- the set-up ---------------------------------------------------------------------------------------------------

    def voters(self, *ids: NodeId) -> Self:
        """kraft.version 1, the voter set being in the log."""
        self._voters = voter_set(*ids)
        return self

    def static_voters(self, *ids: NodeId) -> Self:
        """kraft.version 0: no directory ids."""
        self._voters = voter_set(*ids, with_directories=False)
        self._voters_offset = -1
        self._kraft_version = 0
        return self

    def checkpoint_voters(self, *ids: NodeId) -> Self:
        """kraft.version 1, and no KRAFT_VOTERS record in the log yet."""
        self._voters_offset = -1
        return self.voters(*ids)

    def with_endpoints(self, node_id: NodeId, *endpoints: Endpoint) -> Self:
        """What the voter set says of one voter's addresses."""
        self._voters = VoterSet([v._replace(endpoints=endpoints) if v.key.id == node_id else v for v in self._voters])
        return self

    def snapshot(self, offset: Offset, epoch: Epoch, size_bytes: int = 1000, *, starts: bool = False) -> Self:
        """A finished snapshot at hand; `starts`: the log begins there."""
        self.fake_log.snapshots.sizes[OffsetAndEpoch(offset, epoch)] = size_bytes
        if starts:
            self.fake_log.start_offset = offset
        return self

    def voters_at(self, offset: Offset, *ids: NodeId) -> Self:
        """A KRAFT_VOTERS record that recovery found."""
        self._later_voters = (*self._later_voters, (offset, voter_set(*ids)))
        return self

    def kraft_version_at(self, offset: Offset, kraft_version: int) -> Self:
        """A KRAFT_VERSION record that recovery found."""
        self._later_kraft_versions = (*self._later_kraft_versions, (offset, kraft_version))
        return self

    def telling_leaders(self) -> Self:
        """What it is, by UpdateRaftVoter, while voters are static."""
        self._tells_leaders = True
        return self

    def bootstrap(self, *endpoints: Endpoint) -> Self:
        self._bootstrap = endpoints
        return self

    def configured(self, config: QuorumConfig) -> Self:
        self.config = config
        return self

    def seeded(self, seed: int) -> Self:
        self._seed = seed
        return self

    def log(self, text: str) -> Self:
        self.fake_log = FakeLog(epochs_of(text))
        return self

    def persisted(self, epoch: Epoch, *, leader: NodeId = NO_NODE, voted: ReplicaKey | None = None) -> Self:
        self.stored = ElectionState(epoch, leader, voted)
        return self

    def unattached(self, epoch: Epoch, *, leader: NodeId = NO_NODE, voted: NodeId = NO_NODE) -> Self:
        return self._aim("unattached", epoch, leader, voted)

    def prospective(self, epoch: Epoch, *, leader: NodeId = NO_NODE, voted: NodeId = NO_NODE) -> Self:
        return self._aim("prospective", epoch, leader, voted)

    def candidate(self, epoch: Epoch) -> Self:
        return self._aim("candidate", epoch, NO_NODE, self.id)

    def follower(self, epoch: Epoch, *, of: NodeId, voted: NodeId = NO_NODE) -> Self:
        return self._aim("follower", epoch, of, voted)

    def leader(self, epoch: Epoch) -> Self:
        return self._aim("leader", epoch, NO_NODE, NO_NODE)

    def resigned(self, epoch: Epoch) -> Self:
        return self._aim("resigned", epoch, NO_NODE, NO_NODE)

    def _aim(self, target: str, epoch: Epoch, leader: NodeId, voted: NodeId) -> Self:
        self._target, self._target_epoch, self._target_leader = target, epoch, leader
        self.stored = ElectionState(epoch, leader, key(voted) if voted >= 0 else None)
        if target == "leader":
            self.stored = ElectionState(epoch - 1)
        elif target == "resigned":
            self.stored = ElectionState(epoch, self.id)
        elif target == "prospective" and leader < 0 and voted < 0:
            self.stored = ElectionState(epoch)
        return self

    # --- its life -----------------------------------------------------------------------------------------------------

    @property
    def raft(self) -> Raft:
        if self._raft is None:
            epochs = self.fake_log.epochs
            own = epochs.count(self._target_epoch) if self._target == "leader" else 0
            del epochs[len(epochs) - own :]
            self._start()
            self._reach()
            epochs += [self._target_epoch] * (own - 1)
            self.forget()
        assert self._raft is not None
        return self._raft

    def starts(self) -> Self:
        """Start from what is persisted, and keep the effects."""
        self._start()
        return self

    def _start(self) -> None:
        self._raft = Raft(
            key=self.key,
            cluster_id=CLUSTER,
            config=self.config,
            log=self.fake_log,
            random=random.Random(self._seed),
            election=self.stored,
            voters=self._voters,
            voters_offset=self._voters_offset,
            kraft_version=self._kraft_version,
            later_voter_sets=self._later_voters,
            later_kraft_versions=self._later_kraft_versions,
            tells_leaders=self._tells_leaders,
            bootstrap=self._bootstrap,
            listeners=(endpoint(self.id),),
        )
        self.step(ev.Started())

    def long_alone(self) -> Self:
        """Pretend that it has had no contact for long: strangers may move it."""
        core = self.raft._core
        core.strangers_barred_until_us = 0
        core.led_until_us = -WAIT_US
        return self

    def restarts(self) -> Self:
        """A crash: what is in memory is gone, what is durable stays."""
        self.lane = FakeLane()
        self.effects = []
        later = tuple((offset, voters) for offset, voters in self._later_voters if offset < self.fake_log.end_offset)
        self._later_voters = later
        return self.starts()

    def _reach(self) -> None:
        """Drive a started replica to the role that the set-up names."""
        if self._target == "leader":
            self.elect_itself()
        elif self._target == "prospective":
            self.pass_deadline(until=RoleName.PROSPECTIVE)
        if self._target:
            assert self.role == self._target, f"set up as {self.role}, not {self._target}"
            assert self.epoch == self._target_epoch

    def elect_itself(self) -> None:
        if self.role == RoleName.LEADER:
            return
        self.pass_deadline(until=RoleName.PROSPECTIVE)
        for role in (RoleName.CANDIDATE, RoleName.LEADER):
            for other in self.raft.voters.ids:
                if other != self.id and self.role != role and self.role != RoleName.LEADER:
                    self.answer_vote(other, granted=True)
        assert self.role == RoleName.LEADER

    def pass_deadline(self, until: RoleName) -> None:
        for _ in range(100):
            if self.role == until:
                return
            self.elapse_to_deadline()
        raise AssertionError(f"still {self.role}, not {until}")

    def step(self, event: ev.Event) -> list[fx.Effect]:
        raft = self._raft if self._raft is not None else self.raft
        ordered = raft.step(event, self.lane.state(self.fake_log), self._now_us)
        for effect in ordered:
            self._carry_out(effect)
        self.effects += ordered
        if not any(isinstance(each, fx.Halt) for each in ordered):
            self.lane.settle(raft.lane_session())
        return ordered

    def _carry_out(self, effect: fx.Effect) -> None:
        match effect:
            case fx.PersistElection(state):
                self.stored = state
            case fx.CloseLane():
                self.lane = FakeLane()
            case fx.AppendControl(epoch, records):
                self.fake_log.epochs += [epoch] * len(records)
            case fx.AppendSpan(span):
                self.fake_log.epochs += [span.last_epoch] * (span.next_offset - span.first_offset)
            case fx.TruncateLog(end_offset):
                self.fake_log.truncate(end_offset)
            case fx.InstallSnapshot(snapshot):
                self.fake_log.begin_anew(snapshot)
            case fx.SendRequest(destination):
                self._last_requests[destination] = effect
            case _:
                pass

    def forget(self) -> None:
        self.effects = []

    @property
    def now_us(self) -> Micros:
        _ = self.raft
        return self._now_us

    @now_us.setter
    def now_us(self, now_us: Micros) -> None:
        """Time passes, and the process does not notice: no timer fires."""
        _ = self.raft
        self._now_us = now_us

    # --- time ---------------------------------------------------------------------------------------------------------

    def elapse(self, ms: int) -> Self:
        """Time passes; timers fire when they are due."""
        end_us = self.now_us + ms * MS
        while 0 <= self.raft.deadline_us <= end_us:
            self._now_us = max(self.raft.deadline_us, self._now_us)
            self.step(ev.TimerFired())
        self._now_us = end_us
        return self

    def renewed(self) -> Raft | None:
        """A copy whose timer's turn, now, decided nothing; None if there is something to decide."""
        lane, renewed = self.lane.state(self.fake_log), copy.deepcopy(self.raft)
        return renewed if lane is not None and renewed.renew(lane, self._now_us) else None

    def renews(self) -> bool:
        return self.renewed() is not None

    def elapse_to_deadline(self) -> None:
        assert self.raft.deadline_us >= 0, "no timer is set"
        self._now_us = max(self.raft.deadline_us, self._now_us)
        self.step(ev.TimerFired())

    # --- talking to it ------------------------------------------------------------------------------------------------

    def receives(self, message: Message, version: int = -1, *, connection: int = 7) -> Message:
        """The answer to a request."""
        self._tokens += 1
        latest = type(message).__wire__.versions.last
        ordered = self.step(
            ev.RequestReceived(
                token=self._tokens,
                api_version=latest if version < 0 else version,
                message=message,
                connection=connection,
                correlation_id=70,
                wall_clock_ms=EPOCH_MS,
            )
        )
        answers = [each for each in ordered if isinstance(each, fx.SendResponse) and each.token == self._tokens]
        assert len(answers) == 1, f"{len(answers)} answers"
        return answers[0].message

    def admits(self, message: FetchRequest, version: int = 18) -> fx.AdmitFetch:
        """The Fetch goes to the lane."""
        self._tokens += 1
        ordered = self.step(ev.RequestReceived(self._tokens, version, message, 7, 70, EPOCH_MS))
        (admitted,) = [each for each in ordered if isinstance(each, fx.AdmitFetch)]
        return admitted

    def ordered(self, kind: type[Any]) -> list[Any]:
        """Effects of this kind since the last `forget`."""
        _ = self.raft
        return [each for each in self.effects if isinstance(each, kind)]

    def requests(self, kind: type[M]) -> list[tuple[NodeId, M]]:
        """Requests of this kind since the last `forget`, with whom they went to."""
        return [(each.destination, each.message) for each in self.ordered(fx.SendRequest) if type(each.message) is kind]

    def last_request(self, node_id: NodeId) -> fx.SendRequest:
        """What the peer would answer now."""
        _ = self.raft
        return self._last_requests[node_id]

    def answers(self, node_id: NodeId, message: Message, *, correlation_id: int = -1) -> list[fx.Effect]:
        """The peer answers the last request it got."""
        _ = self.raft
        if correlation_id < 0:
            correlation_id = self.last_request(node_id).correlation_id
        if isinstance(message, FetchResponse):
            return self.step(ev.FetchResponseReceived(node_id, correlation_id, message, None))
        return self.step(ev.ResponseReceived(node_id, correlation_id, message))

    def answer_vote(
        self, node_id: NodeId, *, granted: bool, epoch: Epoch = -1, leader: NodeId = -1, error: int = 0
    ) -> list[fx.Effect]:
        epoch = self.raft.epoch if epoch < 0 else epoch
        return self.answers(node_id, vote_response(epoch, granted=granted, leader=leader, error=error))

    def fails(self, node_id: NodeId, *, unsupported: bool = False) -> list[fx.Effect]:
        _ = self.raft
        return self.step(ev.RequestFailed(node_id, self.last_request(node_id).correlation_id, unsupported))

    def lane_hands_up(self, message: FetchResponse, span: ev.RecordSpan | None = None) -> list[fx.Effect]:
        """The lane's Fetch was answered with something that is not the steady state."""
        source = self.raft.leader_id
        return self.step(ev.FetchResponseReceived(source, -1, message, span))

    # --- what its lane sees -------------------------------------------------------------------------------------------

    def hears_leader(self) -> Self:
        """Good Fetch answers have come, up to now; raft/ is not told."""
        _ = self.raft
        self.lane.leader_contact_us = self._now_us
        return self

    def fetched_by(self, *ids: NodeId, end: Offset = -1, progress: bool = True, caught_up: bool = True) -> Self:
        """These peers' Fetches came in just now; raft/ is not told."""
        _ = self.raft
        for node_id in ids:
            before = self.lane.peers.get(key(node_id))
            self.lane.peers[key(node_id)] = PeerState(
                key=key(node_id),
                is_voter=self.raft.voters.is_voter(key(node_id)),
                connection=100 + node_id,
                end_offset=self.fake_log.end_offset if end < 0 else end,
                last_contact_us=self._now_us,
                last_progress_us=self._now_us if progress else (before.last_progress_us if before else -1),
                last_caught_up_us=self._now_us if caught_up else -1,
            )
        return self

    def committed(self, high_watermark: Offset) -> Self:
        """The lane's high watermark moved."""
        _ = self.raft
        self.lane.high_watermark = high_watermark
        return self

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def role(self) -> RoleName:
        return self.raft.role

    @property
    def epoch(self) -> Epoch:
        return self.raft.epoch

    @property
    def leader_id(self) -> NodeId:
        return self.raft.leader_id

    @property
    def voted(self) -> NodeId:
        """Whom the vote of this epoch went to, as persisted."""
        _ = self.raft
        return self.stored.voted_key.id if self.stored and self.stored.voted_key else NO_NODE


def replica(node_id: NodeId) -> Replica:
    return Replica(node_id)
