"""Makes the faults, in the seed's rhythm, and mends everything when the time for mending has come."""

from typing import TYPE_CHECKING

from fastquorum.raft import events as ev
from fastquorum.sim.node.process import Process
from fastquorum.sim.prng import Prng
from fastquorum.sim.swarm import FAULT_KINDS, Swarm
from fastquorum.types import NO_NODE, Micros

if TYPE_CHECKING:
    from fastquorum.sim.world import World


class Nemesis:
    """See the module. Counts what it does by kind."""

    def __init__(self, world: "World", swarm: Swarm, prng: Prng) -> None:
        self.counts: dict[str, int] = dict.fromkeys(FAULT_KINDS, 0)
        self.is_active = False
        self._world = world
        self._swarm = swarm
        self._prng = prng
        self._rhythm = swarm.config.election_timeout_us
        self._tickets = [kind for kind, weight in zip(FAULT_KINDS, swarm.weights, strict=True) for _ in range(weight)]

    def begin(self) -> None:
        self.is_active = True
        swarm, faults = self._swarm, self._world.network.faults
        faults.loss, faults.duplication = swarm.loss, swarm.duplication
        faults.reordering, faults.half_open = swarm.reordering, swarm.half_open
        self._plan()

    def end(self, core: list[Process]) -> None:
        """No new faults; what `core` needs is mended."""
        self.is_active = False
        world = self._world
        faults = world.network.faults
        faults.loss = faults.duplication = faults.reordering = 0
        faults.delay_us, faults.delay_us_max = 200, 2_000
        world.network.heal(500_000)
        world.network.take_connections()
        world.faults.recovery_crash = world.faults.truncation_crash = 0
        for process in world.processes:
            process.crash_in = 0
            disk = process.disk.faults
            disk.failing_syncs, disk.failing_flushes, disk.is_full, disk.hung_until_us = 0, 0, False, -1
            disk.sync_us, disk.sync_us_max = 100, 1_000
            process.states.failing_saves = 0
            if process not in core:
                if self._prng.randrange(2) and process.is_running:
                    process.die(power=self._prng.randrange(2) == 0)
                else:
                    self._cut_off(process)
            elif process.thread.is_frozen:
                process.thread.thaw()

    def _plan(self) -> None:
        interval_us = self._prng.heavy_tail(self._swarm.fault_interval_us, 8 * self._swarm.fault_interval_us)
        self._world.scheduler.after(interval_us, self._strike)

    def _strike(self) -> None:
        if not self.is_active or not self._tickets:
            return
        kind = self._prng.pick(self._tickets)
        process = self._victim()
        if process is not None or kind in ("heal", "weather", "split"):
            self.counts[kind] += 1
            self._world.note(process.node_id if process is not None else -1, f"fault: {kind}")
            getattr(self, f"_{kind}")(process)
        self._plan()

    def _victim(self) -> Process | None:
        """A running process; the leader every other time, if there is one."""
        running = [process for process in self._world.processes if process.is_running]
        leaders = [process for process in running if process.is_leading]
        if leaders and self._prng.randrange(2):
            return self._prng.pick(leaders)
        return self._prng.pick(running) if running else None

    def _duration(self) -> Micros:
        return self._prng.heavy_tail(self._rhythm, 12 * self._rhythm)

    def _absence(self) -> Micros:
        return self._successor_us() if self._prng.chance(self._world.faults.succession) else self._duration()

    def _successor_us(self) -> Micros:
        """About when the others have elected a leader."""
        config = self._swarm.config
        return self._prng.between(1, 3) * (config.election_timeout_us + config.fetch_timeout_us)

    # --- processes ----------------------------------------------------------------------------------------------------

    def _kill(self, process: Process) -> None:
        process.die(power=False)

    def _power(self, process: Process) -> None:
        process.die(power=True)

    def _crash_point(self, process: Process) -> None:
        process.crash_in = self._prng.between(1, 40)
        process.crash_loses_power = self._prng.randrange(3) > 0

    def _crash_all(self, process: Process) -> None:
        power = self._prng.randrange(2) == 0
        for each in self._world.processes:
            each.die(power=power)

    def _freeze(self, process: Process) -> None:
        incarnation = process.incarnation
        process.thread.freeze()

        def thaw() -> None:
            if process.is_running and process.incarnation == incarnation and process.thread.is_frozen:
                process.thread.thaw()
                self._world.came_back(process)

        self._world.scheduler.after(self._absence(), thaw)

    def _stall(self, process: Process) -> None:
        process.thread.stall(self._absence())

    def _transfer(self, process: Process) -> None:
        if process.is_leading:
            preferred = self._prng.pick((NO_NODE, *self._world.ghost.voters))
            process.request(ev.ResignRequested(preferred, process.replica.raft.epoch))

    def _stop(self, process: Process) -> None:
        process.request(ev.ShutdownRequested())

    # --- the network --------------------------------------------------------------------------------------------------

    def _isolate(self, process: Process) -> None:
        self._cut_off(process, ways=self._prng.randrange(3))

    def _cut_off(self, process: Process, ways: int = 0) -> None:
        """0: both ways; 1: it is not heard; 2: it does not hear."""
        for other in self._world.processes:
            if other is not process:
                if ways != 2:
                    self._world.network.block(process.node_id, other.node_id)
                if ways != 1:
                    self._world.network.block(other.node_id, process.node_id)

    def _relay(self, process: Process) -> None:
        """Cut off until others have elected a leader; back just when that one is cut off."""
        self._cut_off(process)
        cut_us = self._successor_us()

        def relay() -> None:
            if not self.is_active:
                return
            leaders = [each for each in self._world.processes if each.is_leading and each is not process]
            self._world.network.heal(self._prng.randrange(1_000_000))
            if leaders:
                self._cut_off(leaders[-1])

        self._world.scheduler.after(cut_us, relay)

    def _split(self, process: Process | None) -> None:
        sides = [self._prng.randrange(2) for _ in self._world.processes]
        for a, process_a in enumerate(self._world.processes):
            for b, process_b in enumerate(self._world.processes):
                if sides[a] != sides[b]:
                    self._world.network.block(process_a.node_id, process_b.node_id)

    def _one_way(self, process: Process) -> None:
        for other in self._world.processes:
            if other is not process and self._prng.randrange(2):
                self._world.network.block(process.node_id, other.node_id)

    def _clog(self, process: Process) -> None:
        other = self._prng.pick(self._world.processes)
        if other is process:
            return
        network = self._world.network
        network.block(process.node_id, other.node_id)
        self._world.scheduler.after(self._prng.between(self._rhythm // 20, self._rhythm), lambda: self._heal(None))

    def _delay(self, process: Process) -> None:
        """What a voter sends to the leader arrives, but only when it has given the leader up. Before it does, nobody
        else is heard, and somebody asks the leader whether it leads: what came late must not confirm it."""
        world, network, after = self._world, self._world.network, self._world.scheduler.after
        leader = next((each for each in world.processes if each.is_leading), None)
        others = [each for each in world.processes if each.node_id in world.ghost.voters and each is not leader]
        if leader is None or not others:
            return
        late = process if process in others else self._prng.pick(others)
        network.block(late.node_id, leader.node_id)

        def cut_off_the_others() -> None:
            for other in world.processes:
                if self.is_active and other not in (late, leader):
                    network.block(other.node_id, leader.node_id)
            after(1, lambda: world.callers.begin_barrier(leader))

        timeout_us = self._swarm.config.fetch_timeout_us
        alone_us = self._prng.between(timeout_us, 2 * timeout_us)
        late_us = alone_us + self._prng.between(self._rhythm // 20, self._rhythm // 2)
        after(alone_us, cut_off_the_others)
        after(late_us, lambda: network.release(late.node_id, leader.node_id))
        after(late_us + self._rhythm, lambda: self._heal(None))

    def _heal(self, process: Process | None) -> None:
        if self.is_active:
            self._world.network.heal(self._prng.randrange(1_000_000))

    def _weather(self, process: Process | None) -> None:
        faults = self._world.network.faults
        faults.delay_us = self._prng.pick((100, 200, 1_000, self._rhythm // 50))
        faults.delay_us_max = self._prng.pick((2_000, 20_000, self._rhythm // 2))

    def _refuse(self, process: Process) -> None:
        until_us = self._world.now_us + self._duration()
        self._world.network.refuse(process.node_id, until_us, accepts=self._prng.randrange(2) == 0)

    def _stranger(self, process: Process) -> None:
        self._world.stranger.disturb(process)

    # --- disks --------------------------------------------------------------------------------------------------------

    def _sync_error(self, process: Process) -> None:
        if self._prng.randrange(3):
            process.disk.faults.failing_flushes = 1
        else:
            process.disk.faults.failing_syncs = 1

    def _disk_full(self, process: Process) -> None:
        process.disk.faults.is_full = True

        def free() -> None:
            process.disk.faults.is_full = False

        self._world.scheduler.after(self._duration(), free)

    def _slow_disk(self, process: Process) -> None:
        disk = process.disk.faults
        disk.sync_us = self._prng.pick((100, 1_000, self._rhythm // 20))
        disk.sync_us_max = self._prng.pick((1_000, 20_000, self._rhythm))

    def _hung_disk(self, process: Process) -> None:
        """Now and then for longer than the watchdog bears."""
        limit_us = self._swarm.config.disk_stall_us_max if self._prng.randrange(2) else 0
        process.disk.faults.hung_until_us = self._world.now_us + limit_us + self._duration()

    def _state_error(self, process: Process) -> None:
        process.states.failing_saves = 1
