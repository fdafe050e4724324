"""Bugs put back on purpose, for the simulator to catch: one for each rule of the lane, and the known bugs of other
systems.

raft's and the lane's own mutants are reused; those here need the storage and node cores around them.
`MUTANTS[name].apply(patcher)` plants one until the patcher is undone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from fastquorum.kernels.lane import Lane as AnyLane
from fastquorum.kernels.lane import LeaderSession, Output
from fastquorum.kernels.pure.lane import Lane
from fastquorum.kernels.pure.lane.follower import FollowerLane
from fastquorum.node.lane.callers import LaneCallers
from fastquorum.node.lane.shell_base import ShellBase
from fastquorum.node.records.control_appends import ControlAppends
from fastquorum.node.replica import Replica
from fastquorum.raft import claims, moves
from fastquorum.raft import effects as fx
from fastquorum.raft.core import Core, Role
from fastquorum.raft.election import ElectionState
from fastquorum.raft.roles import follower
from fastquorum.raft.roles.follower import Follower
from fastquorum.raft.roles.leader import Leader
from fastquorum.raft.transitions import Cause
from fastquorum.raft.voting import Voting
from fastquorum.sim import runs
from fastquorum.sim.faults.nemesis import Nemesis
from fastquorum.sim.invariants.ghost import GhostBatch
from fastquorum.sim.network import Packet
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.storage.disk import SimFile
from fastquorum.sim.world import World
from fastquorum.storage.log.flushing import FlushResult
from fastquorum.storage.log.log import Log
from fastquorum.storage.log.marking import Marking
from fastquorum.types import NO_NODE, Micros, NodeId, Offset, ReplicaKey
from fastquorum.wire.messages.quorum import VoteRequest
from tests.lane import mutants as lane
from tests.raft import mutants as raft
from tests.raft.mutants import Patcher


class Mutant(NamedTuple):
    """One bug: what it is, and how to plant it."""

    story: str
    apply: Callable[[Patcher], None]


class Patches:
    """Plants like pytest's MonkeyPatch, for use without pytest."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []

    def setattr(self, target: Any, name: str, value: Any, /) -> None:
        self._undo.append((target, name, target.__dict__[name]))
        setattr(target, name, value)

    def __enter__(self) -> "Patches":
        return self

    def __exit__(self, *_: object) -> None:
        for target, name, value in reversed(self._undo):
            setattr(target, name, value)
        self._undo.clear()


def _lane(broken: type[AnyLane]) -> Callable[[Patcher], None]:
    def apply(patcher: Patcher) -> None:
        patcher.setattr(runs, "load_lane", lambda name: broken)

    return apply


def _k10(patcher: Patcher) -> None:
    """raft's own, with a memory and a disk that agree."""
    first_role, contradicts = moves._first_role, moves.contradicts

    def forget_the_lead(core: Core) -> Role:
        if core.leader_id == core.key.id:
            core.elect(ElectionState(core.epoch))
        return first_role(core)

    def contradicts_others(core: Core, epoch: int, leader_id: int) -> bool:
        return leader_id != core.key.id and contradicts(core, epoch, leader_id)

    patcher.setattr(moves, "_first_role", forget_the_lead)
    patcher.setattr(moves, "contradicts", contradicts_others)


class ConfirmsBeforeTheEpochsStart(Lane):
    """Answers with the high watermark of now, whatever it is."""

    def open_leader(self, session: LeaderSession, now_us: Micros) -> list[Output]:
        out = super().open_leader(session, now_us)
        leader, barriers = self._leader, self._context.barriers
        assert leader is not None

        def complete(out: list[Output]) -> None:
            barriers.complete(max(leader.high_watermark, 0), out)

        leader._complete_barriers = complete  # type: ignore[method-assign]
        return out


def _rule_1(patcher: Patcher) -> None:
    carry_out = Replica._carry_out

    def lead_before_it_is_durable(replica: Replica, effect: fx.Effect, now_us: Micros) -> None:
        if not (isinstance(effect, fx.PersistElection) and effect.state.leader_id == replica.raft.key.id):
            carry_out(replica, effect, now_us)

    patcher.setattr(Replica, "_carry_out", lead_before_it_is_durable)


def _rule_1_leader_change(patcher: Patcher) -> None:
    def append_later(appends: ControlAppends, records: Any, epoch: int) -> None:
        pass

    patcher.setattr(ControlAppends, "append", append_later)


def _rule_4(patcher: Patcher) -> None:
    flush_done = Log.flush_done

    def sample_after_the_sync(log: Log, token: int, errno: int) -> FlushResult | None:
        ticket = log._flushing.ticket
        if ticket is not None and ticket.generation == log.generation:
            log._flushing.ticket = ticket._replace(at=log._written_end())
        return flush_done(log, token, errno)

    patcher.setattr(Log, "flush_done", sample_after_the_sync)


def _k18(patcher: Patcher) -> None:
    """Our followers fetch only when all is flushed, so a truncation, which a Fetch's answer orders, meets no sync under
    way: the bug needs a sync that nobody asked for. Such a sync is harmless by itself (`_needless_syncs`)."""
    _needless_syncs(patcher)
    flush_done = Log.flush_done

    def apply_after_truncation(log: Log, token: int, errno: int) -> FlushResult | None:
        ticket = log._flushing.ticket
        if ticket is not None:
            log._flushing.ticket = ticket._replace(generation=log.generation)
        return flush_done(log, token, errno)

    patcher.setattr(Log, "flush_done", apply_after_truncation)


def _needless_syncs(patcher: Patcher) -> None:
    """No bug: a follower that fetches has its log synced once more meanwhile."""
    fetch = FollowerLane.fetch

    def fetch_and_sync(follower: FollowerLane, now_us: Micros, out: list[Output]) -> None:
        fetch(follower, now_us, out)
        log = cast(Log, follower._log)
        if out and not log.is_flushing and log.end_offset:
            log._flushing.submit(log.generation, log._written_end(), [log._segments[-1].file])

    patcher.setattr(FollowerLane, "fetch", fetch_and_sync)


def _k15(patcher: Patcher) -> None:
    truncate_to, zero_fill, sync = Log.truncate_to, SimFile.zero_fill, SimFile.sync
    truncating: list[Offset] = []

    def truncate_in_memory(log: Log, end_offset: Offset) -> Offset:
        truncating.append(end_offset)
        try:
            return truncate_to(log, end_offset)
        finally:
            truncating.clear()

    def leave(file: SimFile, start: int, end: int) -> None:
        if not truncating:
            zero_fill(file, start, end)

    def sync_unless_truncating(file: SimFile) -> None:
        if not truncating:
            sync(file)

    patcher.setattr(Log, "truncate_to", truncate_in_memory)
    patcher.setattr(SimFile, "zero_fill", leave)
    patcher.setattr(SimFile, "sync", sync_unless_truncating)


def _f20(patcher: Patcher) -> None:
    resign = Leader.resign

    def stay(leader: Leader, cause: Cause, preferred: NodeId = NO_NODE) -> None:
        if cause is not Cause.DISK_STALLED:
            resign(leader, cause, preferred)

    patcher.setattr(Leader, "resign", stay)


def _rule_5(patcher: Patcher) -> None:
    _lane(lane.ForgetsAFailedSync)(patcher)

    def may_send(shell: LaneCallers) -> bool:
        return not shell.stopped

    patcher.setattr(LaneCallers, "may_send", may_send)


def _k8(patcher: Patcher) -> None:
    patcher.setattr(Log, "flushed_end", property(lambda log: log.end_offset))


def _k5(patcher: Patcher) -> None:
    carry_out = Replica._carry_out

    def ignore_a_failed_save(replica: Replica, effect: fx.Effect, now_us: Micros) -> None:
        try:
            carry_out(replica, effect, now_us)
        except OSError:
            if not isinstance(effect, fx.PersistElection):
                raise

    patcher.setattr(Replica, "_carry_out", ignore_a_failed_save)


def _forgets_votes(patcher: Patcher) -> None:
    carry_out = Replica._carry_out

    def keep_the_epoch_only(replica: Replica, effect: fx.Effect, now_us: Micros) -> None:
        if isinstance(effect, fx.PersistElection) and effect.state.leader_id == NO_NODE:
            effect = fx.PersistElection(effect.state._replace(voted_key=None))
        carry_out(replica, effect, now_us)

    patcher.setattr(Replica, "_carry_out", keep_the_epoch_only)


BEYOND_THE_FAULTS = (
    "K11",
    "K31",
    "moved-by-strangers",
    "waits-for-strangers",
    "waits-for-their-leads",
    "disturbs-the-lost",
)
"""Mutants of raft that only a lost disk, or a follower that fails on every answer, would show, or strangers that send
requests without a pause, which makes too many events."""


def _unsynced_candidates_lose_power(patcher: Patcher) -> None:
    """No bug, but rare: as long as there are faults, a leader is killed when one of its followers has not synced what
    is committed, nor does so soon; who stands then loses its power as it has asked for votes."""
    sent, committed = World.sent, World.committed

    def and_hangs(world: World, new: list[GhostBatch], leader: SimProcess) -> None:
        committed(world, new, leader)
        if not world.nemesis.is_active or world.environment.scheduler.now_us % 8:
            return
        for each in world.processes:
            if each is not leader and each.is_running and each.flusher._sync is not None:
                each.disk.faults.hung_until_us = (
                    world.environment.scheduler.now_us + 2 * world.environment.swarm.config.election_timeout_us
                )
                world.environment.scheduler.after(1, lambda: leader.die(power=False))
                return

    def and_then_dies(world: World, process: SimProcess, connection: int, packet: Packet) -> None:
        sent(world, process, connection, packet)
        if not isinstance(packet.message, VoteRequest) or not world.nemesis.is_active:
            return
        vote = packet.message.topics[0].partitions[0]
        if not vote.pre_vote and vote.replica_epoch % 2:
            world.environment.scheduler.after(1, lambda: process.die(power=True))

    patcher.setattr(World, "sent", and_then_dies)
    patcher.setattr(World, "committed", and_hangs)


def _votes_for_less(patcher: Patcher) -> None:
    """Only a candidate that loses its power with records that it has not synced shows it, and those are rare."""
    _unsynced_candidates_lose_power(patcher)

    def whatever_is_left_of_its_log(role: Voting, core: Core, candidate: ReplicaKey, is_up_to_date: bool) -> bool:
        voted = core.election.voted_key
        if voted is not None:
            return core.is_same_replica(voted, candidate)
        return core.leader_id < 0 and is_up_to_date

    patcher.setattr(Voting, "grants_vote", whatever_is_left_of_its_log)


def _one_refusal(patcher: Patcher) -> None:
    patcher.setattr(follower, "REFUSALS_OF_THE_GONE", 1)


def _lost_connection(patcher: Patcher) -> None:
    on_connection = Follower.on_connection

    def gone_with_its_connection(role: Follower, core: Core, is_connected: bool) -> None:
        on_connection(role, core, is_connected)
        if not is_connected and role.has_fetched and role._gone_at_us < 0:
            role._gone_at_us = core.now_us + core.random.randrange(core.config.election_timeout_us // 4)

    patcher.setattr(Follower, "on_connection", gone_with_its_connection)


def _delays_alone(patcher: Patcher) -> None:
    """No bug, but rare: every fault is a voter's Fetch that comes late."""
    strike = Nemesis._strike

    def delay(nemesis: Nemesis) -> None:
        nemesis._tickets = ["delay"]
        strike(nemesis)

    patcher.setattr(Nemesis, "_strike", delay)


def _fetches_twice(patcher: Patcher) -> None:
    """It shows where four of five voters are heard by the one that is late, and refuse it at once."""
    _delays_alone(patcher)
    patcher.setattr(ShellBase, "may_fetch_on", lambda shell, connection: True)


def _calls_all_committed(patcher: Patcher) -> None:
    def note(log: Log, _: Offset) -> None:
        log._marking.committed = log.end_offset

    patcher.setattr(Log, "note_committed", note)


def _forgets_what_is_committed(patcher: Patcher) -> None:
    begin = Marking.__init__

    def forget(marking: Marking, *arguments: Any) -> None:
        begin(marking, *arguments)
        marking.committed = 0

    patcher.setattr(Marking, "__init__", forget)


def _believes_strangers(patcher: Patcher) -> None:
    def believe(core: Core, epoch: int, *_: object, **__: object) -> bool:
        return True

    for name in ("believes_vote", "believes_leader"):
        patcher.setattr(claims, name, believe)


MUTANTS: dict[str, Mutant] = {
    **{
        name: Mutant(mutant.story, mutant.apply)
        for name, mutant in raft.MUTANTS.items()
        if name not in BEYOND_THE_FAULTS
    },
    # SOFAJRaft #1243
    "K5": Mutant("a failed save of the vote is ignored", _k5),
    # KAFKA-10533
    "K8": Mutant("what is appended counts as flushed", _k8),
    # KAFKA-10661
    "K10": Mutant(raft.MUTANTS["K10"].story, _k10),
    # etcd #22442
    "K15": Mutant("what was truncated is left on the disk", _k15),
    # Redpanda #3114, #16105
    "K18": Mutant("a sync from before a truncation counts after it", _k18),
    # hashicorp/raft #503, #614
    "F20": Mutant("a leader whose disk has stalled leads on", _f20),
    "votes-forgotten": Mutant("the epoch is persisted, the vote is not", _forgets_votes),
    "R1-durable": Mutant("the lane opens before the lead is durable", _rule_1),
    "R1-leader-change": Mutant("the lane opens before the epoch's first record is in the log", _rule_1_leader_change),
    "R2-freeze": Mutant("a hand-up does not freeze the lane", _lane(lane.HandsUpWithoutFreezing)),
    "R2-log-end": Mutant("a frozen lane forgets what gathered", _lane(lane.FreezesWithoutWritingWhatGathered)),
    "R2-send": Mutant("the lane sends while raft/ decides", _lane(lane.SendsWhileFrozen)),
    "R3-close": Mutant("the lane goes on after it was closed", _lane(lane.GoesOnAfterClose)),
    "R4-sample": Mutant("the end is sampled after the sync", _rule_4),
    "R5": Mutant("a failed sync stops nothing", _rule_5),
    "R6": Mutant("raft/ is not told whom the lane heard", _lane(lane.TellsTheContactsOfTheOpening)),
    "R7-under-way": Mutant("a barrier counts Fetches that were under way", _lane(lane.CountsFetchesUnderWay)),
    "R7-twice": Mutant("a follower has two Fetches under way on one connection", _fetches_twice),
    "R7-epoch-start": Mutant("a barrier passes before the epoch's first commit", _lane(ConfirmsBeforeTheEpochsStart)),
    "lane-unflushed-leader": Mutant("a leader counts what it has not synced", _lane(lane.CountsItsUnflushedEnd)),
    "gone-after-one-refusal": Mutant("a follower stands after one attempt that failed", _one_refusal),
    "gone-with-its-connection": Mutant("a follower stands when its connection ends", _lost_connection),
    "mark-claims": Mutant("the mark calls committed what is only synced", _calls_all_committed),
    "mark-forgets": Mutant("a start forgets what was known to be committed", _forgets_what_is_committed),
    "believes-strangers": Mutant("an epoch is believed of everybody", _believes_strangers),
    "votes-for-less": Mutant("a vote is given again to a log that has lost its end", _votes_for_less),
}
