"""A whole quorum in one thread: its nodes, its network, its callers, and the phases that a seed goes through.

Warm-up; faults; then the faults stop, a majority is mended, and progress is demanded within bounded virtual time;
at last the logs are compared, every disk loses power, and what recovery finds is compared again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from fastquorum.config import SECOND
from fastquorum.controller.image.counts import PartitionCounts
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import Lane
from fastquorum.node.assembly import Member
from fastquorum.raft import claims
from fastquorum.sim.callers import Callers
from fastquorum.sim.clock import LocalClock, Scheduler
from fastquorum.sim.cluster.herd import SETTLE_SESSIONS, Herd
from fastquorum.sim.cluster.members import Members
from fastquorum.sim.cluster.population import Population
from fastquorum.sim.faults.nemesis import Nemesis
from fastquorum.sim.faults.strangers import Stranger
from fastquorum.sim.invariants.clients import Ledger, Operation
from fastquorum.sim.invariants.ghost import Ghost, GhostBatch, GhostNode
from fastquorum.sim.network import Network, Packet, endpoint_of
from fastquorum.sim.node.process import Build, Process
from fastquorum.sim.prng import Prng
from fastquorum.sim.producers import SimProducer
from fastquorum.sim.report import Violation
from fastquorum.sim.storage.disk import SimDisk
from fastquorum.sim.storage.watched_log import WatchedLog
from fastquorum.sim.swarm import ClusterSwarm, Swarm
from fastquorum.sim.trace import Trace
from fastquorum.storage.identity import LogKind
from fastquorum.types import ZERO_UUID, Micros, NodeId, Offset, ReplicaKey, Uuid, Voter, VoterSet

CLUSTER_ID = "simulated-quorum-0000A"
EVENTS_MAX = 400_000
"""More than this in one run is a message loop."""
WATCHFUL = 3
"""A producer that would wait for an answer for just so many election timeouts looks out for new leaders."""
SUCCESSION = 500_000
"""Per million, where a producer does: nodes that stand still for so long that another may lead meanwhile."""


@dataclass(slots=True)
class Faults:
    """What goes wrong inside processes."""

    interleaving: int = 0
    recovery_crash: int = 0
    truncation_crash: int = 0
    """How likely a truncation is the last that a process does, or nearly so."""
    succession: int = 0
    """How likely a process that stands still does so until another may lead in its place."""


class Twin(NamedTuple):
    """What a node can be built of: pure or native, both of the same kind."""

    kernels: Kernels
    lane_class: Callable[..., Lane]


class World:
    """See the module. `run` goes through all phases or raises Violation."""

    def __init__(
        self,
        seed_prng: Prng,
        swarm: Swarm,
        twins: tuple[Twin, ...],
        trace: Trace,
        cluster: ClusterSwarm | None = None,
    ) -> None:
        """With a cluster the nodes are its controllers, and brokers register with them."""
        self.swarm = swarm
        self._cluster = cluster
        self.trace = trace
        self.scheduler = Scheduler()
        self.ghost = Ghost(tuple(range(1, swarm.voters + 1)))
        self.ledger = Ledger(self.ghost)
        self.faults = Faults()
        self.network = Network(self.scheduler, seed_prng.fork(), self.note)
        self.restarts = 0
        self._prng = seed_prng.fork()
        self._twins = twins
        self.processes: list[Process] = []
        for node_id in range(1, swarm.voters + swarm.observers + 1):
            self.processes.append(Process(self, self._build(node_id), seed_prng.fork()))
        for process in self.processes:
            self.network.add_host(endpoint_of(process.node_id), process)
        self.nemesis = Nemesis(self, swarm, seed_prng.fork())
        self.stranger = Stranger(self, seed_prng.fork())
        self.network.add_host(endpoint_of(self.stranger.node_id), self.stranger)
        self.callers = Callers(self, self.ledger, seed_prng.fork(), swarm.append_interval_us, swarm.big_values)
        self.population: Population | None = None
        if cluster is not None:
            self._add_population(cluster, seed_prng.fork())
        self._producer = self._with_producer(seed_prng.fork())
        self._keeps_restarting = True
        self._core: list[Process] = self.processes

    def _with_producer(self, prng: Prng) -> SimProducer | None:
        """Half of the quorums have a named producer; what else a seed decides does not depend on it. One in four
        looks out for new leaders, and meets nodes that stood still until they were succeeded."""
        if self.population is not None or prng.randrange(2):
            return None
        timeouts = prng.between(1, 4)
        producer = SimProducer(
            self,
            self.ledger,
            prng,
            self.swarm.append_interval_us,
            timeouts * self.swarm.config.election_timeout_us,
            is_watchful=timeouts == WATCHFUL,
        )
        if producer.is_watchful:
            self.faults.succession = SUCCESSION
        return producer

    def _add_population(self, cluster: ClusterSwarm, prng: Prng) -> None:
        kernels = self._twins[0].kernels
        population: Population
        if cluster.members:
            population = Members(self, kernels, prng, CLUSTER_ID, cluster)
        else:
            population = Herd(self, kernels, prng, CLUSTER_ID, cluster.brokers, cluster.session_us)
        for host in population.hosts:
            self.network.add_host(endpoint_of(host.node_id), host)
        self.ghost.on_written = population.metadata.written
        self.population = population

    @property
    def now_us(self) -> Micros:
        return self.scheduler.now_us

    def note(self, node_id: NodeId, text: str) -> None:
        self.trace.add(self.scheduler.now_us, node_id, text)

    def _build(self, node_id: NodeId) -> Build:
        swarm = self.swarm
        at = node_id - 1
        voters = VoterSet(
            [
                Voter(ReplicaKey(voter, _directory(voter) if swarm.kraft_version else ZERO_UUID), (endpoint_of(voter),))
                for voter in self.ghost.voters
            ]
        )
        member = Member(
            key=ReplicaKey(node_id, _directory(node_id)),
            cluster_id=CLUSTER_ID,
            voters=voters,
            kraft_version=swarm.kraft_version,
            log_kind=LogKind.USER if self._cluster is None else LogKind.METADATA,
            topic_name="quorum",
            listeners=(endpoint_of(node_id),),
            bootstrap=tuple(endpoint_of(voter) for voter in self.ghost.voters) if node_id > swarm.voters else (),
            first_records=() if self._cluster is None else self._cluster.first_records,
            controller=None if self._cluster is None else self._cluster.settings(CLUSTER_ID),
        )
        twin = self._twins[-1 if swarm.native[at] else 0]
        return Build(
            member=member,
            config=swarm.config,
            kernels=twin.kernels,
            lane_class=twin.lane_class,
            clock=LocalClock(self.scheduler, swarm.clock_zeros[at], swarm.clock_rates[at]),
            has_lane_thread=swarm.lane_threads[at],
        )

    # --- what processes tell ------------------------------------------------------------------------------------------

    def add_ghost(self, node_id: NodeId, disk: SimDisk) -> GhostNode:
        node = self.ghost.nodes[node_id] = GhostNode(node_id, disk)
        return node

    def sent(self, process: Process, connection: int, packet: Packet) -> None:
        self.trace.add_frame(self.scheduler.now_us, process.node_id, connection, packet.frame)
        self.network.send(process, connection, packet)

    def committed(self, new: list[GhostBatch], process: Process) -> None:
        """A leader was seen to have committed these."""
        if self.population is None:
            self.ledger.committed(new, process.build.kernels, process.node_id)
        else:
            self.population.metadata.committed(new)

    def shows(self, process: Process) -> None:
        """C16: what a replica shows of the metadata now is what was committed, and so is what it has counted of it."""
        assert self.population is not None, "nobody shows an image"
        replay = process.replay
        if replay.image != self.population.metadata.image_at(replay.place.end_offset):
            raise Violation("C16", f"its image at {replay.place.end_offset} is another", process.node_id)
        if replay.counts != PartitionCounts.of(replay.image.topics):
            raise Violation("C16", f"it counts {replay.counts} of another image", process.node_id)

    def process_ended(self, process: Process) -> None:
        self.ledger.lost_with(process.node_id)
        if self._keeps_restarting and process in self._core:
            rhythm = self.swarm.config.election_timeout_us
            self.scheduler.after(self._prng.heavy_tail(rhythm // 2, 6 * rhythm), lambda: self._restart(process))

    def _restart(self, process: Process) -> None:
        if process.is_running or process not in self._core:
            return
        self.restarts += 1
        if self._prng.chance(self.faults.recovery_crash):
            process.crash_in = self._prng.between(1, 60)
            process.crash_loses_power = self._prng.randrange(3) > 0
        process.start()

    def interrupt(self, process: Process) -> None:
        """Other threads call, between two steps of the replica's."""
        self.callers.interrupt(process)
        if self._producer is not None:
            self._producer.interrupt(process)

    def came_back(self, process: Process) -> None:
        """It was stopped, and goes on: a thread that calls may be first, before it has looked at what came."""
        if self._producer is not None and self._producer.is_watchful:
            self._producer.interrupt(process)

    # --- phases -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self._run_for(0)
        for process in self.processes:
            self.scheduler.after(self._prng.randrange(200_000), process.start)
        rhythm = self.swarm.config.election_timeout_us
        self.callers.begin()
        if self._producer is not None:
            self._producer.begin()
        if self.population is not None:
            self.population.begin()
        self._run_for(self._prng.between(2, 6) * rhythm)
        self.faults.interleaving = self.swarm.interleaving
        self.faults.recovery_crash = self.faults.truncation_crash = self.swarm.recovery_crash
        self.nemesis.begin()
        self.stranger.pester(self.processes, self.swarm.config.election_timeout_us)
        if self.population is not None:
            self.population.begin_faults()
        self.note(-1, "phase: faults")
        self._run_for(self.swarm.faults_us)
        if self.stranger.pesters:
            self._part_all()
        self._mend()
        self._demand_progress()
        self._end()

    def _run_for(self, duration_us: Micros) -> None:
        end_us = self.scheduler.now_us + duration_us
        while 0 <= self.scheduler.next_us <= end_us:
            self._step()
        self.scheduler.now_us = max(self.scheduler.now_us, end_us)

    def _step(self) -> None:
        self.scheduler.run_next()
        if self.scheduler.events > EVENTS_MAX:
            raise Violation("L12", f"more than {EVENTS_MAX} events: a message loop")

    def _part_all(self) -> None:
        """No node reaches another, for so long that strangers have a say."""
        self.note(-1, "phase: parted")
        for one, other in permutations(self.processes, 2):
            self.network.block(one.node_id, other.node_id)
        config = self.swarm.config
        self._run_for(config.fetch_timeout_us + (claims.ELECTIONS + 1) * config.election_timeout_us)

    def _mend(self) -> None:
        self.note(-1, "phase: mending")
        voters = [process for process in self.processes if process.node_id <= self.swarm.voters]
        core = list(self.processes)
        if self.swarm.core_only:
            core = sorted(self._prng.shuffled(voters)[: self.ghost.majority], key=lambda process: process.node_id)
        self.callers.is_active = False
        self._core = core
        self.nemesis.end(core)
        if self.population is not None:
            self.population.end_faults()
        for process in core:
            if not process.is_running:
                self.process_ended(process)

    def _demand_progress(self) -> None:
        """L1 a leader, L2 every append settled, L3 all mended nodes equal - and all that soon."""
        config = self.swarm.config
        limit_us = self.scheduler.now_us + 30 * (config.election_timeout_us + config.fetch_timeout_us) + 10 * SECOND
        if self.population is not None:
            limit_us += SETTLE_SESSIONS * self.population.session_us
        probe: Operation | None = None
        missing = "L1"
        while self.scheduler.now_us < limit_us:
            self._run_for(config.election_timeout_us // 4)
            leaders = [process for process in self._core if process.is_leading]
            missing = "L1"
            if not leaders or not all(process.is_running for process in self._core):
                continue
            if self.population is not None:
                missing = "L8"
                if not self._missing(self.population) and self._is_equal(self.population.metadata.end_offset):
                    self.note(-1, "phase: converged")
                    return
                continue
            missing = "L2"
            if probe is None or probe.outcome in ("failed", "unknown"):
                leader = max(leaders, key=lambda process: process.replica.raft.epoch)
                if leader.takes_calls:
                    probe = self.callers.append(leader)
                continue
            if probe.outcome != "acked" or any(each.outcome == "pending" for each in self.ledger.operations):
                continue
            missing = "L3"
            if self._is_equal(probe.base_offset + len(probe.values)):
                self.note(-1, "phase: converged")
                return
        what = {
            "L1": "no leader, or a node does not come back",
            "L2": "appends are not settled",
            "L3": "the mended nodes' logs are not equal",
            "L8": self._missing(self.population) if self.population is not None else "",
        }[missing]
        state = ", ".join(process.describe() for process in self._core)
        raise Violation(missing, f"{what}: {state}")

    def _missing(self, population: Population) -> str:
        """What is not well yet; empty: nothing."""
        for process in self._core:
            if not process.is_registered:
                return f"L8: controller {process.node_id} is not registered"
        return population.missing()

    def _is_equal(self, end: Offset) -> bool:
        nodes = [process.ghost for process in self._core]
        return all(
            node.end == self._core[0].ghost.end
            and process.replica.high_watermark == node.end >= end
            and node.durable_end == node.end
            for node, process in zip(nodes, self._core, strict=True)
        )

    def _end(self) -> None:
        """L4: quiet. Then the logs, on the disks too."""
        config = self.swarm.config
        self._keeps_leader(3 * config.fetch_timeout_us, "L4", "without a reason")
        if self.population is None:
            self._restart_beside_a_leader()
        self.ledger.check_whole()
        if self.population is not None:
            self._check_versions(self.population)
        self._until_equal()
        chains = {process.ghost.chain_at(self.ghost.committed_end) for process in self._core}
        if chains != {self.ghost.committed_chains[self.ghost.committed_end]}:
            raise Violation("S10", "the mended nodes' logs differ from the committed one")
        self._keeps_restarting = False
        for process in self.processes:
            process.die(power=True)
            self._recover(process)

    def _restart_beside_a_leader(self) -> None:
        """L13: a voter that comes back deposes nobody, though a stranger asks it for its vote at once."""
        config = self.swarm.config
        voters = [each for each in self._core if each.node_id <= self.swarm.voters and not each.is_leading]
        if not voters:
            return
        process = self._prng.pick(voters)
        process.die(power=False)
        process.start()
        self.stranger.beset(process, self.now_us + config.election_timeout_us // 2, config.election_timeout_us // 200)
        self._keeps_leader(2 * config.fetch_timeout_us, "L13", f"because node {process.node_id} came back")

    def _keeps_leader(self, duration_us: Micros, invariant: str, why: str) -> None:
        """Nobody new leads for so long."""
        leaders = dict(self.ghost.leaders)
        self._run_for(duration_us)
        if self.ghost.leaders != leaders:
            raise Violation(invariant, f"a new leader {why}: {sorted(set(self.ghost.leaders) - set(leaders))}")

    def _until_equal(self) -> None:
        """A controller's no-op may be committed, and not yet be with the slowest: it has a fetch timeout's time."""
        end_us = self.scheduler.now_us + self.swarm.config.fetch_timeout_us
        while not self._is_equal(self.ghost.committed_end):
            if not 0 <= self.scheduler.next_us <= end_us:
                raise Violation("L3", "the mended nodes' logs are equal no more")
            self._step()

    def _check_versions(self, population: Population) -> None:
        """What a replica holds its voters for, and of which kraft.version, is what was committed."""
        for process in self._core:
            quorum = process.replica.raft.describe()
            population.metadata.quorum.check_node(process.node_id, quorum.kraft_version, quorum.voters)

    def _recover(self, process: Process) -> None:
        """What is on the disk, seen by the real recovery."""
        log = WatchedLog.open(process.disk, process.build.kernels, process.build.config, process.flusher)
        self.ghost.recovered(process.ghost, log)
        if process in self._core and process.ghost.end < self.ghost.committed_end:
            raise Violation("S25", f"keeps {process.ghost.end} of {self.ghost.committed_end}", process.node_id)
        self.note(process.node_id, f"holds {process.ghost.end} {process.ghost.chain.hex()}")


def _directory(node_id: NodeId) -> Uuid:
    return Uuid(node_id.to_bytes(16, "big"))
