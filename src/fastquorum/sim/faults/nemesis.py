"""Makes the faults, in the seed's rhythm, and mends everything when the time for mending has come."""

from collections.abc import Callable, Sequence

from fastquorum.raft import events as ev
from fastquorum.sim.callers import Callers
from fastquorum.sim.environment import SimEnvironment
from fastquorum.sim.faults.strangers import Stranger
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.prng import Prng
from fastquorum.sim.swarm import FAULT_KINDS
from fastquorum.types import NO_NODE, Micros


class Nemesis:
    """The nemesis of one world. It counts its faults by kind."""

    def __init__(
        self,
        environment: SimEnvironment,
        processes: Sequence[SimProcess],
        prng: Prng,
        stranger: Stranger,
        callers: Callers,
        came_back: Callable[[SimProcess], None],
    ) -> None:
        """Take `came_back`, which is called when a stopped process goes on."""
        self._swarm = swarm = environment.swarm
        self.counts: dict[str, int] = dict.fromkeys(FAULT_KINDS, 0)
        self.is_active = False
        self._environment = environment
        self._scheduler = environment.scheduler
        self._network = environment.network
        self._processes = processes
        self._prng = prng
        self._callers = callers
        self._came_back = came_back
        self._rhythm = swarm.config.election_timeout_us
        self._at_large: dict[str, Callable[[], None]] = {
            "heal": self._heal,
            "split": self._split,
            "weather": self._weather,
        }
        self._on_victims: dict[str, Callable[[SimProcess], None]] = {
            "kill": self._kill,
            "power": self._power,
            "crash_point": self._crash_point,
            "crash_all": self._crash_all,
            "freeze": self._freeze,
            "stall": self._stall,
            "isolate": self._isolate,
            "relay": self._relay,
            "one_way": self._one_way,
            "clog": self._clog,
            "sync_error": self._sync_error,
            "disk_full": self._disk_full,
            "slow_disk": self._slow_disk,
            "hung_disk": self._hung_disk,
            "state_error": self._state_error,
            "transfer": self._transfer,
            "stop": self._stop,
            "refuse": self._refuse,
            "stranger": stranger.disturb,
            "delay": self._delay,
        }
        """The fault methods by the names of FAULT_KINDS: here those with a victim, below those without."""
        self._tickets = [kind for kind, weight in zip(FAULT_KINDS, swarm.weights, strict=True) for _ in range(weight)]

    def begin(self) -> None:
        self.is_active = True
        swarm, faults = self._swarm, self._network.faults
        faults.loss, faults.duplication = swarm.loss, swarm.duplication
        faults.reordering, faults.half_open = swarm.reordering, swarm.half_open
        self._plan()

    def end(self, core: list[SimProcess]) -> None:
        """Stop the faults, and mend what `core` needs."""
        self.is_active = False
        faults = self._network.faults
        faults.loss = faults.duplication = faults.reordering = 0
        faults.delay_us, faults.delay_us_max = 200, 2_000
        self._network.heal(500_000)
        self._network.take_connections()
        within = self._environment.faults
        within.recovery_crash = within.truncation_crash = 0
        for process in self._processes:
            process.hazards.crash_in = 0
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
        self._scheduler.after(interval_us, self._strike)

    def _strike(self) -> None:
        if not self.is_active or not self._tickets:
            return
        kind = self._prng.pick(self._tickets)
        process = self._victim()
        at_large = self._at_large.get(kind)
        if process is not None or at_large is not None:
            self.counts[kind] += 1
            self._environment.note(process.node_id if process is not None else -1, f"fault: {kind}")
        if at_large is not None:
            at_large()
        elif process is not None:
            self._on_victims[kind](process)
        self._plan()

    def _victim(self) -> SimProcess | None:
        """Return a running process; every other time the leader, if there is one."""
        running = [process for process in self._processes if process.is_running]
        leaders = [process for process in running if process.is_leading]
        if leaders and self._prng.randrange(2):
            return self._prng.pick(leaders)
        return self._prng.pick(running) if running else None

    def _duration(self) -> Micros:
        return self._prng.heavy_tail(self._rhythm, 12 * self._rhythm)

    def _absence(self) -> Micros:
        return self._successor_us() if self._prng.chance(self._environment.faults.succession) else self._duration()

    def _successor_us(self) -> Micros:
        """Return about how long the others need to elect a leader."""
        config = self._swarm.config
        return self._prng.between(1, 3) * (config.election_timeout_us + config.fetch_timeout_us)

    # --- processes ----------------------------------------------------------------------------------------------------

    def _kill(self, process: SimProcess) -> None:
        process.die(power=False)

    def _power(self, process: SimProcess) -> None:
        process.die(power=True)

    def _crash_point(self, process: SimProcess) -> None:
        process.hazards.crash_soon(self._prng)

    def _crash_all(self, process: SimProcess) -> None:
        power = self._prng.randrange(2) == 0
        for each in self._processes:
            each.die(power=power)

    def _freeze(self, process: SimProcess) -> None:
        incarnation = process.incarnation
        process.thread.freeze()

        def thaw() -> None:
            if process.is_running and process.incarnation == incarnation and process.thread.is_frozen:
                process.thread.thaw()
                self._came_back(process)

        self._scheduler.after(self._absence(), thaw)

    def _stall(self, process: SimProcess) -> None:
        process.thread.stall(self._absence())

    def _transfer(self, process: SimProcess) -> None:
        if process.is_leading:
            preferred = self._prng.pick((NO_NODE, *self._environment.ghost.voters))
            process.request(ev.ResignRequested(preferred, process.replica.raft.epoch))

    def _stop(self, process: SimProcess) -> None:
        process.request(ev.ShutdownRequested())

    # --- the network --------------------------------------------------------------------------------------------------

    def _isolate(self, process: SimProcess) -> None:
        self._cut_off(process, ways=self._prng.randrange(3))

    def _cut_off(self, process: SimProcess, ways: int = 0) -> None:
        """Cut a process off: 0: both ways; 1: it cannot send; 2: it cannot receive."""
        for other in self._processes:
            if other is not process:
                if ways != 2:
                    self._network.block(process.node_id, other.node_id)
                if ways != 1:
                    self._network.block(other.node_id, process.node_id)

    def _relay(self, process: SimProcess) -> None:
        """Cut a leader off until others have elected one; bring it back just when that one is cut off."""
        self._cut_off(process)
        cut_us = self._successor_us()

        def relay() -> None:
            if not self.is_active:
                return
            leaders = [each for each in self._processes if each.is_leading and each is not process]
            self._network.heal(self._prng.randrange(1_000_000))
            if leaders:
                self._cut_off(leaders[-1])

        self._scheduler.after(cut_us, relay)

    def _split(self) -> None:
        sides = [self._prng.randrange(2) for _ in self._processes]
        for a, process_a in enumerate(self._processes):
            for b, process_b in enumerate(self._processes):
                if sides[a] != sides[b]:
                    self._network.block(process_a.node_id, process_b.node_id)

    def _one_way(self, process: SimProcess) -> None:
        for other in self._processes:
            if other is not process and self._prng.randrange(2):
                self._network.block(process.node_id, other.node_id)

    def _clog(self, process: SimProcess) -> None:
        other = self._prng.pick(self._processes)
        if other is process:
            return
        self._network.block(process.node_id, other.node_id)
        self._scheduler.after(self._prng.between(self._rhythm // 20, self._rhythm), self._heal)

    def _delay(self, process: SimProcess) -> None:
        """Delay what a voter sends to the leader until the voter has given the leader up. Before that no other voter
        reaches the leader, and a caller begins a read there: the late frames must not confirm it."""
        network, after = self._network, self._scheduler.after
        leader = next((each for each in self._processes if each.is_leading), None)
        voters = self._environment.ghost.voters
        others = [each for each in self._processes if each.node_id in voters and each is not leader]
        if leader is None or not others:
            return
        late = process if process in others else self._prng.pick(others)
        network.block(late.node_id, leader.node_id)

        def cut_off_the_others() -> None:
            for other in self._processes:
                if self.is_active and other not in (late, leader):
                    network.block(other.node_id, leader.node_id)
            after(1, lambda: self._callers.begin_barrier(leader))

        timeout_us = self._swarm.config.fetch_timeout_us
        alone_us = self._prng.between(timeout_us, 2 * timeout_us)
        late_us = alone_us + self._prng.between(self._rhythm // 20, self._rhythm // 2)
        after(alone_us, cut_off_the_others)
        after(late_us, lambda: network.release(late.node_id, leader.node_id))
        after(late_us + self._rhythm, self._heal)

    def _heal(self) -> None:
        if self.is_active:
            self._network.heal(self._prng.randrange(1_000_000))

    def _weather(self) -> None:
        faults = self._network.faults
        faults.delay_us = self._prng.pick((100, 200, 1_000, self._rhythm // 50))
        faults.delay_us_max = self._prng.pick((2_000, 20_000, self._rhythm // 2))

    def _refuse(self, process: SimProcess) -> None:
        until_us = self._environment.now_us + self._duration()
        self._network.refuse(process.node_id, until_us, accepts=self._prng.randrange(2) == 0)

    # --- disks --------------------------------------------------------------------------------------------------------

    def _sync_error(self, process: SimProcess) -> None:
        if self._prng.randrange(3):
            process.disk.faults.failing_flushes = 1
        else:
            process.disk.faults.failing_syncs = 1

    def _disk_full(self, process: SimProcess) -> None:
        process.disk.faults.is_full = True

        def free() -> None:
            process.disk.faults.is_full = False

        self._scheduler.after(self._duration(), free)

    def _slow_disk(self, process: SimProcess) -> None:
        disk = process.disk.faults
        disk.sync_us = self._prng.pick((100, 1_000, self._rhythm // 20))
        disk.sync_us_max = self._prng.pick((1_000, 20_000, self._rhythm))

    def _hung_disk(self, process: SimProcess) -> None:
        """Hang a disk, now and then for longer than the watchdog allows."""
        limit_us = self._swarm.config.disk_stall_us_max if self._prng.randrange(2) else 0
        process.disk.faults.hung_until_us = self._environment.now_us + limit_us + self._duration()

    def _state_error(self, process: SimProcess) -> None:
        process.states.failing_saves = 1
