"""What one replica's stream of effects may never break, checked effect by effect, across restarts.

Reliability's S2 to S5 and S11, as far as one replica can break them alone.
"""

from dataclasses import dataclass, field

from fastquorum.raft import effects as fx
from fastquorum.raft.election import ElectionState
from fastquorum.types import Epoch, NodeId, Offset, ReplicaKey
from fastquorum.wire import Message
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)

from .scenario import Replica


class BrokenPromise(AssertionError):
    """A replica did what no replica may do."""


def _keep(is_kept: bool, promise: str) -> None:
    if not is_kept:
        raise BrokenPromise(promise)


@dataclass
class Promises:
    """The ghost of one replica; `watch` every step's effects, in order, and tell it of requests and restarts."""

    key: ReplicaKey
    durable: ElectionState = field(default_factory=ElectionState)
    votes: dict[Epoch, NodeId] = field(default_factory=dict)
    """The candidate that got this replica's vote, by epoch; itself where it stood."""
    led: dict[Epoch, int] = field(default_factory=dict)
    """In which life it led the epoch."""
    life: int = 0
    request: Message | None = None

    def restarted(self) -> None:
        self.life += 1
        self.request = None

    def watch(self, replica: Replica, ordered: list[fx.Effect], high_watermark: Offset) -> None:
        """`high_watermark` is what the replica knew before the step."""
        for effect in ordered:
            match effect:
                case fx.PersistElection(state):
                    self._persisted(state)
                case fx.SendRequest(message=message):
                    self._sent(message)
                case fx.SendResponse(message=message):
                    self._answered(message)
                case fx.ConnectLeader(node_id):
                    _keep(self.durable.leader_id == node_id, "a follower knows its leader durably before it fetches")
                case fx.AppendControl(epoch):
                    self._begins_epoch(epoch)
                case fx.TruncateLog(end_offset):
                    _keep(end_offset >= high_watermark, "nothing committed is truncated")
                case _:
                    pass
        _keep(replica.raft.epoch >= self.durable.epoch, "the epoch in memory is not behind the durable one")
        _keep(replica.raft.election == self.durable, "after a step everything that was decided is durable")

    def _persisted(self, state: ElectionState) -> None:
        _keep(state.epoch >= self.durable.epoch, "the durable epoch never falls")
        if state.voted_key is not None:
            before = self.votes.setdefault(state.epoch, state.voted_key.id)
            _keep(before == state.voted_key.id, f"one vote in epoch {state.epoch}")
            _keep(state.epoch not in self.led or state.voted_key.id == self.key.id, "who led an epoch voted for itself")
        elif state.epoch == self.durable.epoch and self.durable.voted_key is not None:
            _keep(state.leader_id == self.key.id, "a vote is not forgotten within its epoch")
        self.durable = state

    def _begins_epoch(self, epoch: Epoch) -> None:
        _keep(self.durable == ElectionState(epoch, self.key.id), "a lead is durable before its first record")
        _keep(epoch not in self.led, f"epoch {epoch} is led once")
        _keep(self.votes.setdefault(epoch, self.key.id) == self.key.id, "a leader did not vote for somebody else")
        self.led[epoch] = self.life

    def _sent(self, message: Message) -> None:
        if isinstance(message, VoteRequest):
            vote = message.topics[0].partitions[0]
            _keep(vote.replica_epoch == self.durable.epoch, "a vote is asked for in the durable epoch")
            if not vote.pre_vote:
                _keep(self.durable.voted_key == self.key, "a candidate's own vote is durable before it asks")
        elif isinstance(message, BeginQuorumEpochRequest):
            begun = message.topics[0].partitions[0]
            _keep(self.durable == ElectionState(begun.leader_epoch, self.key.id), "a lead is durable before it is told")
            _keep(self.led.get(begun.leader_epoch) == self.life, "an epoch is led in one life only")
        elif isinstance(message, EndQuorumEpochRequest):
            _keep(message.topics[0].partitions[0].leader_epoch <= self.durable.epoch, "an ended epoch is durable")
        elif isinstance(message, FetchRequest):
            fetched = message.topics[0].partitions[0]
            _keep(fetched.current_leader_epoch == self.durable.epoch, "a Fetch claims the durable epoch")

    def _answered(self, message: Message) -> None:
        if isinstance(message, VoteResponse) and message.topics:
            answer = message.topics[0].partitions[0]
            _keep(answer.leader_epoch == self.durable.epoch, "an answer claims the durable epoch")
            assert isinstance(self.request, VoteRequest)
            vote = self.request.topics[0].partitions[0]
            if answer.vote_granted and not vote.pre_vote:
                voted = self.durable.voted_key
                _keep(voted is not None and voted.id == vote.replica_id, "a vote is durable before it is told")
