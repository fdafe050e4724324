"""A watched lane: it wraps the real one of either twin, and checks every call against the seven rules from outside.

It looks at calls and outputs only, so its checks hold for the pure lane and the native one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.lane import (
    BarrierDone,
    Connection,
    FetchAdmission,
    FollowerSession,
    HandUp,
    Lane,
    LaneIdentity,
    LaneLog,
    LaneMode,
    LaneState,
    LeaderSession,
    Output,
    Send,
)
from fastquorum.raft.election import ElectionState
from fastquorum.sim.report import Violation
from fastquorum.types import ZERO_UUID, Epoch, Micros, NodeId, Offset, ReplicaKey


@dataclass(slots=True)
class PeerExchange:
    """One peer's connection to a leader."""

    peer: ReplicaKey
    is_voter: bool


@dataclass(slots=True)
class Lead:
    """Facts of one lead."""

    session: LeaderSession
    since_us: Micros
    exchanges: dict[Connection, PeerExchange] = field(default_factory=dict)
    contacts: dict[NodeId, Micros] = field(default_factory=dict)
    """For each voter, when its last valid Fetch came."""
    confirmed: dict[NodeId, Micros] = field(default_factory=dict)
    """For each voter, when the latest of its Fetches was sent, in world time."""
    barriers: dict[int, Micros] = field(default_factory=dict)
    """For each barrier, when it began, in world time."""


class WatchedLane:
    """Implements `kernels.lane.Lane`. `durable` is the node's persisted election; `sent_us` says when a request was
    sent that came on a connection, by its correlation id, in the world time that `world_us` tells."""

    def __init__(
        self,
        identity: LaneIdentity,
        log: LaneLog,
        kernels: Kernels,
        batch_bytes_max: int,
        *,
        lane_class: Callable[..., Lane],
        durable: Callable[[], ElectionState | None],
        keep: Callable[["WatchedLane"], None],
        world_us: Callable[[], Micros],
        sent_us: Callable[[Connection, int], Micros],
    ) -> None:
        keep(self)
        self._world_us = world_us
        self._sent_us = sent_us
        self._lane: Lane = lane_class(identity, log, kernels, batch_bytes_max)
        self._key = identity.key
        self._log = log
        self._durable = durable
        self._lead: Lead | None = None
        self._frozen_end: Offset = -1
        self._accepted_end: Offset = -1
        """The end of the appends that this lead accepted; -1: none."""
        self.served: dict[Connection, None] = {}
        """Connections whose frames the lane serves now: its own thread may read them."""
        self._fetch: tuple[Connection, bytes] | None = None
        self.leader_contact_us: Micros = -1
        """When the leader last sent a valid answer to a Fetch of the lane, in any session; -1: never."""
        self.last_state: LaneState | None = None
        self.closed_epoch: Epoch = -1
        """The last closed epoch: nothing of it, or an earlier one, may leave any more."""
        self._flush_failed = False

    @property
    def mode(self) -> LaneMode:
        return self._lane.mode

    @property
    def is_frozen(self) -> bool:
        return self._lane.is_frozen

    @property
    def has_failed(self) -> bool:
        return self._lane.has_failed

    @property
    def high_watermark(self) -> Offset:
        return self._lane.high_watermark

    @property
    def deadline_us(self) -> Micros:
        return self._lane.deadline_us

    @property
    def confirmed_us(self) -> Micros:
        return self._lane.confirmed_us

    @property
    def gathered_bytes(self) -> int:
        return self._lane.gathered_bytes

    def majority_contact_us(self) -> Micros:
        """Return since when a leader has had no contact with a majority of voters, itself included; -1 if it alone is a
        majority."""
        lead = self._lead
        if lead is None:
            return -1
        needed = len(lead.session.voters) // 2 + 1 - self._is_voter(self._key)
        if needed == 0:
            return -1
        contacts = sorted((at for node_id, at in lead.contacts.items() if node_id != self._key.id), reverse=True)
        return contacts[needed - 1] if len(contacts) >= needed else lead.since_us

    def copies_snapshot(self, node_id: NodeId, now_us: Micros) -> None:
        """Count a voter's copy of a snapshot as contact, as a leader's raft/ does."""
        if self._lead is not None and any(voter.id == node_id for voter in self._lead.session.voters):
            self._lead.contacts[node_id] = now_us

    # --- raft's side --------------------------------------------------------------------------------------------------

    def open_leader(self, session: LeaderSession, now_us: Micros) -> list[Output]:
        durable = self._durable()
        if durable is None or durable.epoch != session.epoch or durable.leader_id != self._key.id:
            self._broken(1, f"the lane opens as leader of {session.epoch}, durable is {durable}")
        if self._log.last_epoch != session.epoch or session.epoch_start >= self._log.end_offset:
            self._broken(1, f"the lane opens as leader of {session.epoch} without a record of it in the log")
        self._lead = Lead(session, now_us)
        self._accepted_end = -1
        self._frozen_end = -1
        return self._out(self._lane.open_leader(session, now_us))

    def open_follower(self, session: FollowerSession, now_us: Micros) -> list[Output]:
        durable = self._durable()
        if durable is None or durable.epoch != session.epoch:
            self._broken(1, f"the lane follows in {session.epoch}, durable is {durable}")
        self._frozen_end = -1
        self._fetch = None
        return self._out(self._lane.open_follower(session, now_us))

    def attach_leader(self, connection: Connection, api_version: int, now_us: Micros) -> list[Output]:
        self.served = {connection: None}
        return self._out(self._lane.attach_leader(connection, api_version, now_us))

    def detach(self, connection: Connection, now_us: Micros) -> list[Output]:
        self.served.pop(connection, None)
        if self._lead is not None:
            self._lead.exchanges.pop(connection, None)
        return self._out(self._lane.detach(connection, now_us))

    def admit(self, fetch: FetchAdmission, now_us: Micros) -> list[Output]:
        assert self._lead is not None
        exchanges = self._lead.exchanges
        for connection in [each for each, seen in exchanges.items() if seen.peer == fetch.peer]:
            if connection != fetch.connection:
                self.served.pop(connection, None)
                del exchanges[connection]
        seen = exchanges.get(fetch.connection)
        if seen is None or seen.peer != fetch.peer:
            seen = exchanges[fetch.connection] = PeerExchange(fetch.peer, self._is_voter(fetch.peer))
        self.served[fetch.connection] = None
        self._fetched(fetch.connection, seen, fetch.correlation_id, now_us)
        return self._out(self._lane.admit(fetch, now_us))

    def freeze(self, now_us: Micros) -> LaneState:
        state = self._lane.freeze(now_us)
        if state.log_end != self._log.end_offset:
            self._broken(2, f"the frozen lane says the log ends at {state.log_end}, it ends at {self._log.end_offset}")
        if state.log_end < self._accepted_end and not self._flush_failed:
            self._broken(2, f"the frozen log ends at {state.log_end}, appends up to {self._accepted_end} were accepted")
        self._frozen_end = self._log.end_offset
        return state

    def resume(self, now_us: Micros) -> list[Output]:
        self._frozen_end = -1
        return self._out(self._lane.resume(now_us))

    def close(self, now_us: Micros) -> tuple[LaneState, list[Output]]:
        state, outputs = self._lane.close(now_us)
        for output in outputs:
            if isinstance(output, Send) or (isinstance(output, BarrierDone) and output.high_watermark >= 0):
                self._broken(3, f"closing the lane lets {type(output).__name__} out")
        self.closed_epoch = max(self.closed_epoch, state.epoch)
        self._lead = None
        self._accepted_end = -1
        self._fetch = None
        self._frozen_end = -1
        self.last_state = state
        self.served.clear()
        return state, outputs

    # --- the shell's side ---------------------------------------------------------------------------------------------

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> list[Output]:
        answers = self._fetch == (connection, frame[:4])
        mode = self.mode
        before = self._log.end_offset
        outputs = self._lane.on_frame(connection, frame, now_us)
        if any(isinstance(output, HandUp) for output in outputs):
            if self._log.end_offset != before and mode is LaneMode.FOLLOWER:
                self._broken(2, "a frame was handed up after it was acted upon")
            if not self._lane.is_frozen:
                self._broken(2, "a frame was handed up by a lane that goes on")
            self.served.pop(connection, None)
        elif mode is LaneMode.FOLLOWER and answers:
            self._fetch = None
            self.leader_contact_us = now_us
        elif mode is LaneMode.LEADER and self._lead is not None and connection in self._lead.exchanges:
            self._fetched(connection, self._lead.exchanges[connection], int.from_bytes(frame[4:8], "big"), now_us)
        return self._out(outputs)

    def on_flushed(self, generation: int, end: Offset, now_us: Micros) -> list[Output]:
        return self._out(self._lane.on_flushed(generation, end, now_us))

    def on_flush_failed(self) -> None:
        self._flush_failed = True
        self._lane.on_flush_failed()

    def on_tick(self, now_us: Micros) -> list[Output]:
        return self._out(self._lane.on_tick(now_us))

    def await_observers(self, ids: Sequence[NodeId], offset: Offset) -> bool:
        return self._lane.await_observers(ids, offset)

    # --- the callers' side --------------------------------------------------------------------------------------------

    def append(
        self, values: Sequence[Buffer], timestamp_ms: int, now_us: Micros, gathers: bool = False
    ) -> tuple[int, list[Output]]:
        frozen = self.is_frozen
        offset, outputs = self._lane.append(values, timestamp_ms, now_us, gathers)
        self._check_append(offset, len(values), frozen)
        return offset, self._out(outputs)

    def push(self, now_us: Micros) -> list[Output]:
        return self._out(self._lane.push(now_us))

    def append_encoded(
        self, batch: bytearray, record_count: int, timestamp_ms: int, now_us: Micros
    ) -> tuple[int, list[Output]]:
        frozen = self.is_frozen
        offset, outputs = self._lane.append_encoded(batch, record_count, timestamp_ms, now_us)
        self._check_append(offset, record_count, frozen)
        return offset, self._out(outputs)

    def begin_barrier(self, now_us: Micros) -> tuple[int, list[Output]]:
        begun_us = self._world_us()
        barrier, outputs = self._lane.begin_barrier(now_us)
        if barrier >= 0 and self._lead is not None:
            self._lead.barriers[barrier] = begun_us
        return barrier, self._out(outputs)

    # --- the rules ----------------------------------------------------------------------------------------------------

    def _broken(self, rule: int, detail: str) -> None:
        raise Violation(f"R{rule}", detail, self._key.id)

    def _check_append(self, offset: int, count: int, frozen: bool) -> None:
        if offset < 0:
            return
        self._accepted_end = offset + count
        if frozen or self._frozen_end >= 0:
            self._broken(2, f"an append got offset {offset} while raft/ was deciding")
        if self._flush_failed:
            self._broken(5, f"an append got offset {offset} after a sync had failed")

    def _out(self, outputs: list[Output]) -> list[Output]:
        """Check the outputs of a call; every output passes here."""
        for output in outputs:
            if isinstance(output, Send):
                if self._frozen_end >= 0:
                    self._broken(2, "the lane sends while raft/ is deciding")
                if self._flush_failed:
                    self._broken(5, "the lane sends after a sync had failed")
                self._sent(output)
            elif isinstance(output, BarrierDone) and output.high_watermark >= 0:
                self._check_barrier(output)
        return outputs

    def _sent(self, output: Send) -> None:
        if self._lead is None:
            self._fetch = (output.connection, bytes(output.frame[4:8]))

    def _check_barrier(self, done: BarrierDone) -> None:
        lead = self._lead
        if lead is None:
            self._broken(7, f"barrier {done.barrier} passed on a closed lane")
            return
        begun_us = lead.barriers.pop(done.barrier, self._world_us())
        confirming = sum(at_us >= begun_us for at_us in lead.confirmed.values()) + self._is_voter(self._key)
        if confirming < len(lead.session.voters) // 2 + 1:
            self._broken(7, f"barrier {done.barrier} passed with {confirming} of {len(lead.session.voters)} voters")
        if done.high_watermark <= lead.session.epoch_start:
            self._broken(7, f"barrier {done.barrier} passed at {done.high_watermark}, before the epoch's first commit")

    def _is_voter(self, key: ReplicaKey) -> bool:
        assert self._lead is not None
        return any(
            voter.id == key.id and voter.directory_id in (ZERO_UUID, key.directory_id)
            for voter in self._lead.session.voters
        )

    def _fetched(self, connection: Connection, seen: PeerExchange, correlation_id: int, now_us: Micros) -> None:
        assert self._lead is not None
        if not seen.is_voter:
            return
        self._lead.contacts[seen.peer.id] = now_us
        if seen.peer.id != self._key.id:
            sent_us = self._sent_us(connection, correlation_id)
            self._lead.confirmed[seen.peer.id] = max(self._lead.confirmed.get(seen.peer.id, -1), sent_us)
