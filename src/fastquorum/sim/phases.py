"""The phases that a seed goes through, in one thread.

Warm-up; faults; then the faults stop, a majority is mended, and progress is required within bounded virtual time; at
last the logs are compared, every disk loses power, and the recovered logs are compared again.
"""

from itertools import permutations

from fastquorum.config import SECOND
from fastquorum.raft import claims
from fastquorum.sim.cluster.population import SETTLE_SESSIONS, Population
from fastquorum.sim.invariants.clients import TrackedAppend
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.report import Violation
from fastquorum.sim.storage.watched_log import WatchedLog
from fastquorum.sim.world import World
from fastquorum.types import Micros, Offset


class Phases:
    """The phases of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._environment = world.environment
        self._swarm = world.environment.swarm
        self._ghost = world.environment.ghost
        self._prng = world.prng
        self._population = world.population

    def run(self) -> None:
        """Run all phases, or raise Violation."""
        self._environment.run_for(0)
        for process in self._world.processes:
            self._environment.scheduler.after(self._prng.randrange(200_000), process.start)
        rhythm = self._swarm.config.election_timeout_us
        self._world.callers.begin()
        if self._world.producer is not None:
            self._world.producer.begin()
        if self._population is not None:
            self._population.begin()
        self._environment.run_for(self._prng.between(2, 6) * rhythm)
        self._environment.faults.interleaving = self._swarm.interleaving
        self._environment.faults.recovery_crash = self._environment.faults.truncation_crash = self._swarm.recovery_crash
        self._world.nemesis.begin()
        self._world.stranger.pester(self._world.processes, self._swarm.config.election_timeout_us)
        if self._population is not None:
            self._population.begin_faults()
        self._environment.note(-1, "phase: faults")
        self._environment.run_for(self._swarm.faults_us)
        if self._world.stranger.pesters:
            self._part_all()
        self._mend()
        self._demand_progress()
        self._end()

    def _part_all(self) -> None:
        """Separate all nodes for so long that strangers may have an effect."""
        self._environment.note(-1, "phase: parted")
        for one, other in permutations(self._world.processes, 2):
            self._environment.network.block(one.node_id, other.node_id)
        config = self._swarm.config
        self._environment.run_for(config.fetch_timeout_us + (claims.ELECTIONS + 1) * config.election_timeout_us)

    def _mend(self) -> None:
        self._environment.note(-1, "phase: mending")
        voters = [process for process in self._world.processes if process.node_id <= self._swarm.voters]
        core = list(self._world.processes)
        if self._swarm.core_only:
            core = sorted(self._prng.shuffled(voters)[: self._ghost.majority], key=lambda process: process.node_id)
        self._world.callers.is_active = False
        self._world.core = core
        self._world.nemesis.end(core)
        if self._population is not None:
            self._population.end_faults()
        for process in core:
            if not process.is_running:
                self._world.ended(process)

    def _demand_progress(self) -> None:
        """Require L1 (a leader), L2 (every append settled), L3 (all mended nodes equal), and all that soon."""
        config = self._swarm.config
        limit_us = self._environment.now_us + 30 * (config.election_timeout_us + config.fetch_timeout_us) + 10 * SECOND
        if self._population is not None:
            limit_us += SETTLE_SESSIONS * self._population.context.session_us
        probe: TrackedAppend | None = None
        missing = "L1"
        while self._environment.now_us < limit_us:
            self._environment.run_for(config.election_timeout_us // 4)
            leaders = [process for process in self._world.core if process.is_leading]
            missing = "L1"
            if not leaders or not all(process.is_running for process in self._world.core):
                continue
            if self._population is not None:
                missing = "L8"
                if not self._missing(self._population) and self._is_equal(self._population.context.metadata.end_offset):
                    self._environment.note(-1, "phase: converged")
                    return
                continue
            missing = "L2"
            if probe is None or probe.outcome in ("failed", "unknown"):
                leader = max(leaders, key=lambda process: process.replica.raft.epoch)
                if leader.takes_calls:
                    probe = self._world.callers.append(leader)
                continue
            if probe.outcome != "acked" or any(each.outcome == "pending" for each in self._world.ledger.operations):
                continue
            missing = "L3"
            if self._is_equal(probe.base_offset + len(probe.values)):
                self._environment.note(-1, "phase: converged")
                return
        what = {
            "L1": "no leader, or a node does not come back",
            "L2": "appends are not settled",
            "L3": "the mended nodes' logs are not equal",
            "L8": self._missing(self._population) if self._population is not None else "",
        }[missing]
        state = ", ".join(process.describe() for process in self._world.core)
        raise Violation(missing, f"{what}: {state}")

    def _missing(self, population: Population) -> str:
        """Return what is not well yet; empty if all is well."""
        for process in self._world.core:
            if not process.is_registered:
                return f"L8: controller {process.node_id} is not registered"
        return population.missing()

    def _is_equal(self, end: Offset) -> bool:
        nodes = [process.ghost for process in self._world.core]
        return all(
            node.end == self._world.core[0].ghost.end
            and process.replica.high_watermark == node.end >= end
            and node.durable_end == node.end
            for node, process in zip(nodes, self._world.core, strict=True)
        )

    def _end(self) -> None:
        """Check L4 (quiet), then the logs, on the disks too."""
        config = self._swarm.config
        self._keeps_leader(3 * config.fetch_timeout_us, "L4", "without a reason")
        if self._population is None:
            self._restart_beside_a_leader()
        self._world.ledger.check_whole()
        if self._population is not None:
            self._check_versions(self._population)
        self._until_equal()
        chains = {process.ghost.chain_at(self._ghost.committed_end) for process in self._world.core}
        if chains != {self._ghost.committed_chains[self._ghost.committed_end]}:
            raise Violation("S10", "the mended nodes' logs differ from the committed one")
        self._world.keeps_restarting = False
        for process in self._world.processes:
            process.die(power=True)
            self._recover(process)

    def _restart_beside_a_leader(self) -> None:
        """Check L13: a returning voter deposes no leader, though a stranger asks it for its vote at once."""
        config = self._swarm.config
        voters = [each for each in self._world.core if each.node_id <= self._swarm.voters and not each.is_leading]
        if not voters:
            return
        process = self._prng.pick(voters)
        process.die(power=False)
        process.start()
        self._world.stranger.beset(
            process, self._environment.now_us + config.election_timeout_us // 2, config.election_timeout_us // 200
        )
        self._keeps_leader(2 * config.fetch_timeout_us, "L13", f"because node {process.node_id} came back")

    def _keeps_leader(self, duration_us: Micros, invariant: str, why: str) -> None:
        """Check that no new leader comes during this time."""
        leaders = dict(self._ghost.leaders)
        self._environment.run_for(duration_us)
        if self._ghost.leaders != leaders:
            raise Violation(invariant, f"a new leader {why}: {sorted(set(self._ghost.leaders) - set(leaders))}")

    def _until_equal(self) -> None:
        """Wait up to a fetch timeout until the logs are equal: a controller's no-op may not have reached the slowest
        yet."""
        end_us = self._environment.now_us + self._swarm.config.fetch_timeout_us
        while not self._is_equal(self._ghost.committed_end):
            if not 0 <= self._environment.scheduler.next_us <= end_us:
                raise Violation("L3", "the mended nodes' logs are equal no more")
            self._environment.step()

    def _check_versions(self, population: Population) -> None:
        """Check that each replica's voters and kraft.version are the committed ones."""
        for process in self._world.core:
            quorum = process.replica.raft.describe()
            population.context.metadata.quorum.check_node(process.node_id, quorum.kraft_version, quorum.voters)

    def _recover(self, process: SimProcess) -> None:
        """Check the disk as the real recovery finds it."""
        log = WatchedLog.open(process.disk, process.build.kernels, process.build.config, process.flusher)
        self._ghost.recovered(process.ghost, log)
        if process in self._world.core and process.ghost.end < self._ghost.committed_end:
            raise Violation("S25", f"keeps {process.ghost.end} of {self._ghost.committed_end}", process.node_id)
        self._environment.note(process.node_id, f"holds {process.ghost.end} {process.ghost.chain.hex()}")
