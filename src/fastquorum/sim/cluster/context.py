"""The services that all users of the controllers of one simulated cluster share."""

from collections import Counter
from collections.abc import Sequence

from fastquorum.kernels import Kernels
from fastquorum.sim.cluster.metadata import Metadata
from fastquorum.sim.cluster.quorum import QuorumHistory
from fastquorum.sim.environment import SimEnvironment
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.prng import Prng
from fastquorum.types import Micros, NodeId


class ClusterContext:
    """The controllers, and the metadata that the simulator knows of them from outside."""

    def __init__(
        self, environment: SimEnvironment, processes: Sequence[SimProcess], kernels: Kernels, session_us: Micros
    ) -> None:
        self.environment = environment
        self.processes = processes
        """The controllers."""
        self.kernels = kernels
        self.session_us = session_us
        """How long a broker may be silent, in microseconds."""
        swarm = environment.swarm
        voters = [process.build.member.key for process in processes[: swarm.voters]]
        quorum = QuorumHistory(kernels, swarm.kraft_version, voters)
        self.metadata = Metadata(environment.scheduler, kernels, session_us, quorum)
        self.counts: Counter[str] = Counter()
        """The number of faults of the controllers' users, by kind."""
        self.has_faults = False
        """Whether this is the phase of faults."""

    def leaders(self) -> list[SimProcess]:
        """Return the controllers that consider themselves leader."""
        return [process for process in self.processes if process.is_leading]

    def cut_off_partly(self, node_id: NodeId, prng: Prng) -> None:
        """Cut a host off from some of the controllers, one way or both."""
        network = self.environment.network
        for process in self.processes:
            if prng.randrange(2):
                network.block(node_id, process.node_id)
            if prng.randrange(2):
                network.block(process.node_id, node_id)
