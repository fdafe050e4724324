"""Processes that share one broker id, as replicas of a program of which one may act at a time; their faults and those
of the controllers beneath them; and their promise C17: at most one of them acts at a time.

Such a cluster has no other brokers: each registration there is meant to act.
"""

from collections.abc import Callable
from typing import Final

from fastquorum.broker.settings import MemberConfig
from fastquorum.config import MS
from fastquorum.controller.image.image import Image
from fastquorum.sim.clock import LocalClock
from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.cluster.heartbeats import heartbeat_of
from fastquorum.sim.cluster.member import SimMember
from fastquorum.sim.host_ids import MEMBERS_FROM
from fastquorum.sim.prng import MILLION, Prng
from fastquorum.sim.report import Violation
from fastquorum.sim.swarm import ClusterSwarm
from fastquorum.types import Micros, NodeId
from fastquorum.wire import Message

BROKER_ID: Final = 50
"""The broker id that all of them share."""
CLOCK_ERROR: Final = 100_000
"""How much a clock may run fast or slow, per million, as those of the nodes do."""


class Members:
    """Implements `population.Population`, and `member.MemberWatcher`."""

    def __init__(self, context: ClusterContext, cluster: ClusterSwarm, prng: Prng) -> None:
        self.context = context
        context.metadata.on_committed = self._check_registrations
        self.admissions = 0
        """The number of times that one of them began to act."""
        self._environment = context.environment
        self._session_us = session_us = context.session_us
        self._prng = prng.fork()
        config = MemberConfig(
            heartbeat_interval_us=session_us * prng.between(2, 8) // 32,
            session_timeout_us=session_us,
            request_timeout_us=min(session_us // 4, 2_000 * MS),
            metadata_heartbeats=cluster.metadata_heartbeats,
        )
        self.processes = [self._member(number, config, prng.fork()) for number in range(cluster.members)]
        self._faults: tuple[tuple[str, Callable[[SimMember], None]], ...] = (
            ("crash", self._crash),
            ("bounce", self._bounce),
            ("freeze", self._freeze),
            ("cut_off", self._cut_off),
            ("leave", self._leave),
            ("unready", self._unready),
            ("lost", self._lost),
            *4 * (("side", self._side),),
        )
        """The kinds of faults, as often as they are likely, and the methods."""

    def _member(self, number: int, config: MemberConfig, prng: Prng) -> SimMember:
        rate = MILLION + (prng.between(-CLOCK_ERROR, CLOCK_ERROR) if prng.randrange(2) else 0)
        clock = LocalClock(self._environment.scheduler, prng.randrange(1000 * MILLION), rate)
        kernels = self.context.kernels
        return SimMember(self._environment, self, MEMBERS_FROM + number, BROKER_ID, config, kernels, clock, prng)

    @property
    def size(self) -> int:
        return len(self.processes)

    @property
    def hosts(self) -> tuple[SimMember, ...]:
        return tuple(self.processes)

    # --- phases -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        for member in self.processes:
            member.start()

    def begin_faults(self) -> None:
        self.context.has_faults = True
        self._plan()

    def end_faults(self) -> None:
        self.context.has_faults = False
        for member in self.processes:
            if not member.is_running:
                member.start()
            if member.is_frozen:
                member.thaw()
            member.set_ready(True)

    def missing(self) -> str:
        if any(process.thread.is_busy for process in self.context.processes if process.is_running):
            return "L8: a controller's Python hangs"
        return "" if any(each.is_acting for each in self.processes) else "L8: no member acts"

    # --- what they do -------------------------------------------------------------------------------------------------

    def sends(self, member: SimMember, message: Message) -> None:
        heartbeat = heartbeat_of(message)
        if heartbeat is not None:
            self.context.metadata.registrations.beats(heartbeat)

    def changed(self, member: SimMember) -> None:
        """Check C17: when one of them begins to act, no other does."""
        if not member.is_acting:
            return
        self.admissions += 1
        for other in self.processes:
            if other is not member and other.is_acting:
                left_us = other.agent.view.lease_until_us - other.clock.now_us
                text = (
                    f"it acts with token {member.epoch}, and {other.node_id} with {other.epoch}, for {left_us} us yet"
                )
                raise Violation("C17", text, member.node_id)

    def ended(self, member: SimMember) -> None:
        """Start another process in its place."""
        self._start_after(member, self._duration())

    def _check_registrations(self, before: Image, after: Image) -> None:
        """Check C17: when one is admitted, no other acts with an earlier token."""
        former, now = before.brokers.get(BROKER_ID), after.brokers.get(BROKER_ID)
        if former is None or now is None or now.epoch == former.epoch:
            return
        for member in self.processes:
            if member.is_acting and member.epoch < now.epoch:
                left_us = member.agent.view.lease_until_us - member.clock.now_us
                text = f"it acts with token {member.epoch} for {left_us} us yet, and {now.epoch} is given out"
                raise Violation("C17", text, member.node_id)

    # --- faults -------------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        every_us = self._session_us
        self._environment.scheduler.after(self._prng.heavy_tail(every_us, 4 * every_us), self._strike)

    def _strike(self) -> None:
        if not self.context.has_faults:
            return
        kind, act = self._prng.pick(self._faults)
        running = [each for each in self.processes if each.is_running and not each.is_frozen]
        if running:
            acting = [each for each in running if each.is_acting]
            victim = self._prng.pick(acting or running)
            self.context.counts[f"member {kind}"] += 1
            victim.note(f"fault: {kind}")
            act(victim)
        self._plan()

    def _duration(self) -> Micros:
        """Return a time around a session timeout: the controllers notice some of these silences only."""
        return self._prng.heavy_tail(self._session_us, 4 * self._session_us)

    def _start_after(self, member: SimMember, wait_us: Micros) -> None:
        def start() -> None:
            if not member.is_running:
                member.start()

        self._environment.scheduler.after(wait_us, start)

    def _crash(self, member: SimMember) -> None:
        member.die(power=self._prng.randrange(2) == 0)
        self._start_after(member, self._duration())

    def _bounce(self, member: SimMember) -> None:
        member.die()
        self._start_after(member, self._prng.between(1, self._session_us // 3))

    def _freeze(self, member: SimMember) -> None:
        member.freeze()

        def thaw() -> None:
            if member.is_frozen:
                member.thaw()

        member.later(self._duration(), thaw)

    def _cut_off(self, member: SimMember) -> None:
        self.context.cut_off_partly(member.node_id, self._prng)

    def _side(self, member: SimMember) -> None:
        """Separate a member and the leader from all others; now and then that leader's Python hangs."""
        leaders = self.context.leaders()
        if not leaders:
            return
        leader = self._prng.pick(leaders)
        if self._prng.randrange(2):
            leader.thread.stall(self._prng.between(self._session_us // 2, 3 * self._session_us // 2))
        self.separate({leader.node_id, member.node_id}, resets=self._prng.randrange(3) == 0)
        self._environment.scheduler.after(self._prng.between(1, 4) * self._session_us, self._heal)

    def separate(self, side: set[NodeId], *, resets: bool = False) -> None:
        """Separate these hosts from all others: silently, or so that connections end."""
        network = self._environment.network
        hosts = [each.node_id for each in self.context.processes] + [each.node_id for each in self.processes]
        for a in sorted(side):
            for b in hosts:
                if b in side:
                    continue
                if resets:
                    network.reset(a, b)
                else:
                    network.block(a, b)
                    network.block(b, a)

    def _leave(self, member: SimMember) -> None:
        member.stop(self._session_us)

    def _unready(self, member: SimMember) -> None:
        member.set_ready(False)
        member.later(self._duration(), lambda: member.set_ready(True))

    def _lost(self, member: SimMember) -> None:
        """Let a member ask to be fenced, or to stop; the leader cannot answer, and the next one does not know of it."""
        leaders = self.context.leaders()
        if not leaders:
            return
        leader = self._prng.pick(leaders)
        self._environment.network.block(leader.node_id, member.node_id)
        if self._prng.randrange(2):
            self._leave(member)
        else:
            self._unready(member)

        def replace_leader() -> None:
            if not self.context.has_faults:
                return
            leader.die(power=False)
            for process in self.context.processes:
                self._environment.network.block(process.node_id, member.node_id)

        self._environment.scheduler.after(self._prng.randrange(self._session_us // 4), replace_leader)
        self._environment.scheduler.after(self._prng.between(1, 3) * self._session_us, self._heal)

    def _heal(self) -> None:
        if self.context.has_faults:
            self._environment.network.heal(self._prng.randrange(MILLION))
