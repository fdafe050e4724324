"""The parts of one simulated world: the quorum's nodes, its callers, the faults, and the users of its controllers.

Each part uses the environment and the parts before it; the reports of processes come together here.
"""

from typing import Final

from fastquorum.controller.image.counts import PartitionCounts
from fastquorum.sim.callers import Callers
from fastquorum.sim.cluster.brokers import SimBrokers
from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.cluster.members import Members
from fastquorum.sim.cluster.population import Population
from fastquorum.sim.environment import SimEnvironment
from fastquorum.sim.faults.nemesis import Nemesis
from fastquorum.sim.faults.strangers import Stranger
from fastquorum.sim.invariants.clients import Ledger
from fastquorum.sim.invariants.ghost import GhostBatch
from fastquorum.sim.network import Packet, endpoint_of
from fastquorum.sim.node.build import Twin, build_node
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.node.view import ProcessView
from fastquorum.sim.prng import Prng
from fastquorum.sim.producers import SimProducer
from fastquorum.sim.report import Violation
from fastquorum.sim.swarm import ClusterSwarm, Swarm
from fastquorum.sim.trace import SimTrace
from fastquorum.storage.log.checkpoint import data_values, read_checkpoint
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name, join
from fastquorum.types import Epoch, OffsetAndEpoch
from fastquorum.wire.messages.brokers import BrokerHeartbeatRequest

WATCHFUL: Final = 3
"""A producer whose patience is this number of election timeouts looks out for new leaders."""
SUCCESSION: Final = 500_000
"""Per million, with such a producer: nodes that stand still for so long that another may lead meanwhile."""
RECOVERY_CALLS_MAX: Final = 60
"""A crash in a recovery comes within this number of port calls."""


class World:
    """One simulated world, a `node.process.ProcessSurroundings`. `sim.phases` runs it."""

    def __init__(
        self,
        seed_prng: Prng,
        swarm: Swarm,
        twins: tuple[Twin, ...],
        trace: SimTrace,
        cluster: ClusterSwarm | None = None,
    ) -> None:
        """Build a world; with a cluster the nodes are its controllers, and brokers register with them."""
        self.environment = environment = SimEnvironment(swarm, trace, seed_prng.fork())
        self.prng = seed_prng.fork()
        """The random numbers of the world itself."""
        self.ledger = Ledger(environment.ghost)
        self.restarts = 0
        self.keeps_restarting = True
        self.processes: list[SimProcess] = []
        for node_id in range(1, swarm.voters + swarm.observers + 1):
            build = build_node(node_id, environment, twins, cluster)
            self.processes.append(SimProcess(environment, self, build, seed_prng.fork()))
            environment.network.add_host(endpoint_of(node_id), self.processes[-1])
        self.core = self.processes
        """The processes that must be well in the end; they are started again when they have died."""
        nemesis_prng, stranger_prng, callers_prng = (seed_prng.fork() for _ in range(3))
        self.stranger = Stranger(environment, stranger_prng)
        environment.network.add_host(endpoint_of(self.stranger.node_id), self.stranger)
        self.callers = Callers(environment, self.processes, self.ledger, callers_prng, appends=cluster is None)
        self.nemesis = Nemesis(
            environment, self.processes, nemesis_prng, self.stranger, self.callers, came_back=self.came_back
        )
        self.population: Population | None = None
        if cluster is not None:
            self._add_population(cluster, twins[0], seed_prng.fork())
        self.producer = self._with_producer(seed_prng.fork())

    def _with_producer(self, prng: Prng) -> SimProducer | None:
        """Give half of the quorums a named producer; a seed's other choices do not depend on it. One in four producers
        looks out for new leaders, and meets nodes that stood still until another led."""
        if self.population is not None or prng.randrange(2):
            return None
        timeouts = prng.between(1, 4)
        patience_us = timeouts * self.environment.swarm.config.election_timeout_us
        is_watchful = timeouts == WATCHFUL
        if is_watchful:
            self.environment.faults.succession = SUCCESSION
        return SimProducer(self.environment, self.processes, self.callers, prng, patience_us, is_watchful=is_watchful)

    def _add_population(self, cluster: ClusterSwarm, twin: Twin, prng: Prng) -> None:
        context = ClusterContext(self.environment, self.processes, twin.kernels, cluster.session_us)
        if cluster.members:
            self.population = Members(context, cluster, prng)
        else:
            self.population = SimBrokers(context, cluster.brokers, prng)
        for host in self.population.hosts:
            self.environment.network.add_host(endpoint_of(host.node_id), host)
        self.environment.ghost.on_written = context.metadata.written

    # --- what processes report ----------------------------------------------------------------------------------------

    def sent(self, process: ProcessView, connection: int, packet: Packet) -> None:
        self.environment.send(process, connection, packet)

    def committed(self, new: list[GhostBatch], process: ProcessView) -> None:
        if self.population is None:
            self.ledger.committed(new, process.build.kernels, process.node_id)
        else:
            self.population.context.metadata.committed(new)

    def leads(self, process: ProcessView, epoch: Epoch) -> None:
        if self.population is not None:
            self.population.context.metadata.registrations.leads(epoch)

    def got_heartbeat(self, process: ProcessView, heartbeat: BrokerHeartbeatRequest) -> None:
        if self.population is not None:
            self.population.context.metadata.registrations.arrived(process.node_id, heartbeat)

    def shows(self, process: ProcessView) -> None:
        """Check C16: the metadata image of a replica is the committed one, and so are its counts."""
        assert self.population is not None, "nobody shows an image"
        replay = process.replay
        if replay.image != self.population.context.metadata.image_at(replay.place.end_offset):
            raise Violation("C16", f"its image at {replay.place.end_offset} is another", process.node_id)
        if replay.counts != PartitionCounts.of(replay.image.topics):
            raise Violation("C16", f"it counts {replay.counts} of another image", process.node_id)

    def took_snapshot(self, process: ProcessView, snapshot: OffsetAndEpoch) -> None:
        """Check S24."""
        if self.population is None:
            return
        metadata, kernels = self.population.context.metadata, process.build.kernels
        name = join(LOG_DIRECTORY, checkpoint_name(snapshot))
        metadata.check_snapshot(process.node_id, snapshot.offset, data_values(process.disk, kernels, name))
        state = read_checkpoint(process.disk, kernels, name)
        metadata.quorum.check_snapshot(process.node_id, snapshot.offset, state)

    def interrupt(self, process: SimProcess) -> None:
        """Let callers and a producer call."""
        self.callers.interrupt(process)
        if self.producer is not None:
            self.producer.interrupt(process)

    def came_back(self, process: SimProcess) -> None:
        """Let a caller be first when a stopped process goes on, before it has looked at what came."""
        if self.producer is not None and self.producer.is_watchful:
            self.producer.interrupt(process)

    def ended(self, process: SimProcess) -> None:
        """Start a process again a while after it died."""
        self.ledger.lost_with(process.node_id)
        if self.keeps_restarting and process in self.core:
            rhythm = self.environment.swarm.config.election_timeout_us
            wait_us = self.prng.heavy_tail(rhythm // 2, 6 * rhythm)
            self.environment.scheduler.after(wait_us, lambda: self._restart(process))

    def _restart(self, process: SimProcess) -> None:
        if process.is_running or process not in self.core:
            return
        self.restarts += 1
        if self.prng.chance(self.environment.faults.recovery_crash):
            process.hazards.crash_soon(self.prng, RECOVERY_CALLS_MAX)
        process.start()
