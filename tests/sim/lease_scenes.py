"""Members on the simulator in scenes: two processes want to be one broker, and the controller that one of them hears is
replaced behind its back. What a seed does by chance is done here on purpose."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fastquorum.config import SECOND, QuorumConfig
from fastquorum.kernels import load
from fastquorum.kernels.lane import load_lane
from fastquorum.lease import LeasePromise
from fastquorum.sim.cluster.member import SimMember
from fastquorum.sim.cluster.members import Members
from fastquorum.sim.node.build import Twin
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.prng import MILLION, Prng
from fastquorum.sim.swarm import HARDSHIPS, draw, draw_members, spared
from fastquorum.sim.trace import SimTrace
from fastquorum.sim.world import World
from fastquorum.types import Micros

SESSION_US = 9 * SECOND
LEASE = LeasePromise.of(SESSION_US)


class Scene:
    """Three controllers and two members of one id, one of which acts; no fault but those of the scene."""

    def __init__(
        self,
        seed: int = 1,
        *,
        native: bool = False,
        metadata_heartbeats: bool = False,
        has_no_ops: bool = True,
        is_skewed: bool = False,
        beats_often: bool = False,
    ) -> None:
        """`is_skewed`: the members' clocks are slow, and the controllers' are fast, as far as the slack allows.
        `beats_often`: members do so within the time in which a controller acknowledges by what it heard."""
        name = "native" if native else "pure"
        prng = Prng(seed)
        idle_us = SECOND // 2 if has_no_ops else 0
        config = QuorumConfig(
            fetch_timeout_us=4 * SECOND, segment_bytes=65536, preallocate_bytes=0, idle_us_max=idle_us
        )
        swarm = replace(
            spared(draw(prng, 3), HARDSHIPS),
            observers=0,
            config=config,
            lane_threads=(True,) * 5,
            native=(native,) * 5,
            clock_rates=(MILLION + is_skewed * MILLION // 10,) * 5,
        )
        cluster = draw_members(prng)._replace(
            members=2,
            session_us=SESSION_US,
            metadata_heartbeats=metadata_heartbeats,
            retention_bytes=0,
            calm_fetch_us=0,
        )
        twin = Twin(load(name), load_lane(name))  # type: ignore[arg-type]
        self.world = World(prng, cluster.applied(swarm), (twin,), SimTrace(None), cluster)
        assert isinstance(self.world.population, Members)
        self.members = self.world.population
        for member in self.members.processes:
            member.clock._rate = MILLION - is_skewed * MILLION // 10
            if beats_often:
                member._config = replace(member._config, heartbeat_interval_us=LEASE.confirmed_us // 2)
        for process in self.world.processes:
            process.start()
        self.members.begin()
        self.until(lambda: any(each.is_acting for each in self.members.processes), "a member acts")
        self.run(SESSION_US)

    def run(self, duration_us: Micros) -> None:
        """Raises Violation."""
        self.world.environment.run_for(duration_us)

    def until(self, condition: Callable[[], bool], what: str, limit_us: Micros = 10 * SESSION_US) -> None:
        end_us = self.world.environment.now_us + limit_us
        while not condition():
            assert self.world.environment.now_us < end_us, f"not in time: {what}"
            self.run(10_000)

    @property
    def leader(self) -> SimProcess:
        return max((each for each in self.world.processes if each.is_leading), key=lambda each: each.replica.raft.epoch)

    @property
    def acting(self) -> SimMember | None:
        return next((each for each in self.members.processes if each.is_acting), None)

    def holder_and_other(self) -> tuple[SimMember, SimMember]:
        holder = self.acting
        assert holder is not None
        return holder, next(each for each in self.members.processes if each is not holder)

    def cut(self, *, resets: bool) -> tuple[SimMember, SimMember]:
        """The leader and the member that acts on the one side, all others on the other."""
        holder, other = self.holder_and_other()
        self.members.separate({self.leader.node_id, holder.node_id}, resets=resets)
        return holder, other


def hand_over(scene: Scene, *, resets: bool = False, hangs: bool = False) -> None:
    former = scene.leader
    if hangs:
        former.thread.stall(3 * SESSION_US)
    began_us = scene.world.environment.now_us
    holder, other = scene.cut(resets=resets)
    scene.until(lambda: not holder.is_acting, "who is cut off gives up", 4 * SESSION_US)
    assert scene.world.environment.now_us - began_us <= LEASE.confirmed_us + LEASE.lease_us + 2 * SECOND, (
        "and no later than it must"
    )
    scene.until(lambda: other.is_acting, "the other is let in", 3 * SESSION_US)
    assert other.epoch > holder.epoch
    assert scene.leader is not former


def stop_the_leader(scene: Scene) -> None:
    """The voters' last Fetches lie in its sockets when the leader goes on, and it was replaced long ago."""
    former = scene.leader
    holder, other = scene.holder_and_other()
    end = former.ghost.end
    while former.ghost.end == end:
        scene.world.environment.step()
    former.thread.freeze()  # a no-op has just left, and is to be answered by a Fetch
    scene.run(20_000)
    scene.members.separate({former.node_id, holder.node_id})
    scene.until(lambda: any(each.is_leading and each is not former for each in scene.world.processes), "a successor")
    scene.run(SESSION_US - 2 * SECOND)  # the successor is about to let somebody in
    waiting = len(former.thread._backlog)
    scene.until(lambda: len(former.thread._backlog) > waiting, "the member asks it again")
    former.thread.thaw()
    scene.until(lambda: other.is_acting, "the other is let in", 3 * SESSION_US)


def lose_the_answer(way: str) -> None:
    """What fenced it is committed, its answer is lost with the controller, and it acts as long as its lease lasts."""
    scene = Scene()
    holder, other = scene.holder_and_other()
    former = scene.leader
    scene.world.environment.network.block(former.node_id, holder.node_id)
    if way == "leaves":
        holder.stop(3 * SESSION_US)
    else:
        holder.set_ready(False)
    scene.until(
        lambda: scene.members.context.metadata.image.brokers[holder.broker_id].fenced, "it is fenced", SESSION_US
    )
    former.die(power=False)
    for process in scene.world.processes:
        scene.world.environment.network.block(process.node_id, holder.node_id)
    assert holder.is_acting
    scene.until(lambda: other.is_acting, "the other is let in", 3 * SESSION_US)


SCENES: Final[dict[str, Callable[[], None]]] = {
    "C17-native": lambda: hand_over(Scene(), resets=True),
    "C17-python": lambda: hand_over(Scene(has_no_ops=False), resets=True),
    "C17-lease": lambda: hand_over(Scene(), resets=True),
    "C17-slack": lambda: hand_over(Scene(is_skewed=True), resets=True),
    "C17-session": lambda: hand_over(Scene(), resets=True),
    "C17-clock": lambda: stop_the_leader(Scene(4, beats_often=True)),  # a heartbeat waits, in most seeds
    "C17-fenced": lambda: lose_the_answer("leaves"),
}
"""By the mutant that each is for."""
