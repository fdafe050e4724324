"""Processes that share one broker id, as replicas of a program would that may not act twice; what happens to them and
to the controllers beneath them, and the promise that is theirs: C17, at most one of them acts at a time.

Nobody else is in such a cluster: whatever is registered there is registered to act.
"""

from typing import TYPE_CHECKING, Final

from fastquorum.broker.settings import MemberConfig
from fastquorum.config import MS
from fastquorum.controller.image.image import Image
from fastquorum.kernels import Kernels
from fastquorum.sim.clock import LocalClock
from fastquorum.sim.cluster.member import SimMember
from fastquorum.sim.cluster.metadata import Metadata
from fastquorum.sim.prng import MILLION, Prng
from fastquorum.sim.report import Violation
from fastquorum.types import Micros, NodeId
from fastquorum.wire import ApiKey, Message, decode_request
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest
from fastquorum.wire.messages.controller_heartbeat import BrokerState, MetadataHeartbeatRequest

if TYPE_CHECKING:
    from fastquorum.sim.swarm import ClusterSwarm
    from fastquorum.sim.world import World

NODE_IDS_FROM: Final = 3000
"""Of members, as hosts of the network."""
BROKER_ID: Final = 50
"""That all of them want to be."""
CLOCK_ERROR: Final = 100_000
"""Per million by which a clock may run fast or slow, as those of the nodes do."""
KINDS: Final = ("crash", "bounce", "freeze", "cut_off", "leave", "unready", "lost", *4 * ("side",))


class Members:
    """Implements `population.Population`."""

    def __init__(
        self,
        world: "World",
        kernels: Kernels,
        prng: Prng,
        cluster_id: str,
        cluster: "ClusterSwarm",
    ) -> None:
        session_us = cluster.session_us
        self.world = world
        self.cluster_id = cluster_id
        self.session_us = session_us
        self.metadata = Metadata(world, kernels, session_us)
        self.metadata.on_committed = self._check_registrations
        self.counts: dict[str, int] = {}
        self.admissions = 0
        """How often one of them began to act."""
        self._prng = prng.fork()
        self.is_active = False
        config = MemberConfig(
            heartbeat_interval_us=session_us * prng.between(2, 8) // 32,
            session_timeout_us=session_us,
            request_timeout_us=min(session_us // 4, 2_000 * MS),
            metadata_heartbeats=cluster.metadata_heartbeats,
        )
        self.processes = [self._member(number, config, kernels, prng.fork()) for number in range(cluster.members)]

    def _member(self, number: int, config: MemberConfig, kernels: Kernels, prng: Prng) -> SimMember:
        rate = MILLION + (prng.between(-CLOCK_ERROR, CLOCK_ERROR) if prng.randrange(2) else 0)
        clock = LocalClock(self.world.scheduler, prng.randrange(1000 * MILLION), rate)
        return SimMember(self.world, self, NODE_IDS_FROM + number, BROKER_ID, config, kernels, clock, prng)

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
        self.is_active = True
        self._plan()

    def end_faults(self) -> None:
        self.is_active = False
        for member in self.processes:
            if not member.is_running:
                member.start()
            if member.is_frozen:
                member.thaw()
            member.set_ready(True)

    def missing(self) -> str:
        if any(process.thread.is_busy for process in self.world.processes if process.is_running):
            return "L8: a controller's Python hangs"
        return "" if any(each.is_acting for each in self.processes) else "L8: no member acts"

    # --- what they do -------------------------------------------------------------------------------------------------

    def heartbeat_in(self, frame: bytes) -> BrokerHeartbeatRequest | None:
        """What a frame says, if the checks look into it: a heartbeat, in KIP-631's words."""
        if int.from_bytes(frame[:2], "big") not in (ApiKey.BROKER_HEARTBEAT, ApiKey.METADATA_HEARTBEAT):
            return None
        return _heartbeat(decode_request(frame)[1])

    def sends(self, message: Message) -> None:
        """One sends this."""
        heartbeat = _heartbeat(message)
        if heartbeat is not None:
            self.metadata.beats(heartbeat)

    def changed(self, member: SimMember) -> None:
        """C17: when one of them begins to act nobody else does."""
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
        """It went, in good order or not; another process takes its place."""
        self._start_after(member, self._duration())

    def _check_registrations(self, before: Image, after: Image) -> None:
        """C17: whoever is let in finds nobody who acts with an earlier token."""
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
        every_us = self.session_us
        self.world.scheduler.after(self._prng.heavy_tail(every_us, 4 * every_us), self._strike)

    def _strike(self) -> None:
        if not self.is_active:
            return
        kind = self._prng.pick(KINDS)
        running = [each for each in self.processes if each.is_running and not each.is_frozen]
        if running:
            acting = [each for each in running if each.is_acting]
            victim = self._prng.pick(acting or running)
            self.counts[f"member {kind}"] = self.counts.get(f"member {kind}", 0) + 1
            victim.note(f"fault: {kind}")
            getattr(self, f"_{kind}")(victim)
        self._plan()

    def _duration(self) -> Micros:
        """Around a session timeout: sometimes the controllers notice, sometimes they do not."""
        return self._prng.heavy_tail(self.session_us, 4 * self.session_us)

    def _start_after(self, member: SimMember, wait_us: Micros) -> None:
        def start() -> None:
            if not member.is_running:
                member.start()

        self.world.scheduler.after(wait_us, start)

    def _crash(self, member: SimMember) -> None:
        member.die(power=self._prng.randrange(2) == 0)
        self._start_after(member, self._duration())

    def _bounce(self, member: SimMember) -> None:
        member.die()
        self._start_after(member, self._prng.between(1, self.session_us // 3))

    def _freeze(self, member: SimMember) -> None:
        member.freeze()

        def thaw() -> None:
            if member.is_frozen:
                member.thaw()

        member.later(self._duration(), thaw)

    def _cut_off(self, member: SimMember) -> None:
        """From some of the controllers, one way or both."""
        for process in self.world.processes:
            if self._prng.randrange(2):
                self.world.network.block(member.node_id, process.node_id)
            if self._prng.randrange(2):
                self.world.network.block(process.node_id, member.node_id)

    def _side(self, member: SimMember) -> None:
        """It and the leader on the one side, all others on the other; now and then that leader's Python hangs."""
        leaders = [each for each in self.world.processes if each.is_leading]
        if not leaders:
            return
        leader = self._prng.pick(leaders)
        if self._prng.randrange(2):
            leader.thread.stall(self._prng.between(self.session_us // 2, 3 * self.session_us // 2))
        self.separate({leader.node_id, member.node_id}, resets=self._prng.randrange(3) == 0)
        self.world.scheduler.after(self._prng.between(1, 4) * self.session_us, self._heal)

    def separate(self, side: set[NodeId], *, resets: bool = False) -> None:
        """These hosts on the one side, all others on the other: silently, or so that connections end."""
        network = self.world.network
        hosts = [each.node_id for each in self.world.processes] + [each.node_id for each in self.processes]
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
        member.stop(self.session_us)

    def _unready(self, member: SimMember) -> None:
        member.set_ready(False)
        member.later(self._duration(), lambda: member.set_ready(True))

    def _lost(self, member: SimMember) -> None:
        """It asks to be fenced, or to go; the leader does not come to answer, and the next one does not know it."""
        leaders = [each for each in self.world.processes if each.is_leading]
        if not leaders:
            return
        leader = self._prng.pick(leaders)
        self.world.network.block(leader.node_id, member.node_id)
        if self._prng.randrange(2):
            self._leave(member)
        else:
            self._unready(member)

        def replace_leader() -> None:
            if not self.is_active:
                return
            leader.die(power=False)
            for process in self.world.processes:
                self.world.network.block(process.node_id, member.node_id)

        self.world.scheduler.after(self._prng.randrange(self.session_us // 4), replace_leader)
        self.world.scheduler.after(self._prng.between(1, 3) * self.session_us, self._heal)

    def _heal(self) -> None:
        if self.is_active:
            self.world.network.heal(self._prng.randrange(MILLION))


def _heartbeat(message: Message) -> BrokerHeartbeatRequest | None:
    """One of KIP-343 does not say how far its member has read: it counts as having read everything."""
    if isinstance(message, MetadataHeartbeatRequest):
        return BrokerHeartbeatRequest(
            broker_id=message.broker_id,
            broker_epoch=message.incarnation_id,
            current_metadata_offset=1 << 62,
            want_fence=message.target_state == BrokerState.INACTIVE,
            want_shut_down=message.target_state == BrokerState.STOPPING,
        )
    return message if isinstance(message, BrokerHeartbeatRequest) else None
