"""The two threads of one simulated node: the replica's, turn by turn, and the lane's own, which goes on while Python is
busy with something else. In virtual time.

They decide when a turn comes; the process decides what happens in it, and what is checked after it.
"""

from collections import deque
from collections.abc import Callable

from fastquorum.errors import CorruptionError, FatalError
from fastquorum.kernels.lane import LaneMode
from fastquorum.sim.clock import Scheduler
from fastquorum.sim.hazards import ProcessDied
from fastquorum.sim.node.lock import SimLock
from fastquorum.sim.node.view import ProcessView
from fastquorum.types import Micros

MAINTENANCE_US = 1_000_000
NEVER_US: Micros = -(2**62)
AT_ONCE_US: Micros = 2
"""A timer that is due at once, one microsecond later by the node's own clock, fires within this, by the slowest clock
(`sim.swarm`)."""


class ReplicaThread:
    """The replica's thread. It outlives its process, as the disk does: `begin` is a new life."""

    def __init__(self, process: ProcessView, scheduler: Scheduler) -> None:
        self.is_frozen = False
        self.in_turn = False
        self.busy_until_us: Micros = 0
        self.back_at_us: Micros = 0
        """When it was last thawed."""
        self._process = process
        self._scheduler = scheduler
        self._backlog: deque[Callable[[], None]] = deque()
        self._drain_at_us: Micros = -1
        self._is_tick_due = False
        """Whether its timer has fired while it was away."""
        self._tick_at_us: Micros = -1
        self._at_once_since_us: Micros = NEVER_US
        """Since when its timer has been due at once after each turn."""
        self._blocked_us: Micros = 0

    def begin(self) -> None:
        self.is_frozen = self._is_tick_due = False
        self.busy_until_us = 0
        self._backlog.clear()
        self._drain_at_us = self._tick_at_us = -1

    @property
    def is_busy(self) -> bool:
        return self._scheduler.now_us < self.busy_until_us

    @property
    def _has_waiting(self) -> bool:
        """Whether an event waits for it that should have happened by now."""
        return bool(self._backlog) or self._is_tick_due

    @property
    def is_behind(self) -> bool:
        """Whether an event waits, or a timer that is due at once, but not one that would have fired before."""
        return self._has_waiting or self._scheduler.now_us - self._at_once_since_us <= AT_ONCE_US

    @property
    def _is_away(self) -> bool:
        """Whether it has something else to do first."""
        return self.is_frozen or self.is_busy or self._has_waiting

    # --- turns --------------------------------------------------------------------------------------------------------

    def post(self, action: Callable[[], None]) -> None:
        """Run an action, now or as soon as it can."""
        if not self._process.is_running:
            return
        if self._is_away:
            self.post_later(action)
        else:
            self.turn(action)

    def post_later(self, action: Callable[[], None]) -> None:
        """Run an action in a turn of its own, behind all that waits."""
        self._backlog.append(action)
        self._plan_drain()

    def turn(self, action: Callable[[], None]) -> None:
        """Run one call, and the checks after it."""
        self._blocked_us = 0
        self.in_turn = True
        role = self._process.role
        try:
            action()
            self.in_turn = False
            self._process.settle(role)
        except ProcessDied as death:
            self._process.died(death)
        finally:
            self.in_turn = False
        if self._blocked_us:
            self.busy_until_us = max(self.busy_until_us, self._scheduler.now_us + self._blocked_us)

    def blocked(self, duration_us: Micros) -> None:
        """Note that a call of its turn had to wait this long."""
        self._blocked_us += duration_us

    def plan_tick(self) -> None:
        """Plan the next firing of its timer, by what is due now."""
        now_us = self._scheduler.now_us
        wanted = max(min(self._process.due_us(), default=now_us + MAINTENANCE_US), now_us + 1)
        wanted = min(wanted, now_us + MAINTENANCE_US)
        if self._tick_at_us < 0 or wanted < self._tick_at_us:
            self._tick_at_us = wanted
            self._at(wanted, lambda: self._tick(wanted))

    def note_when_due(self) -> None:
        """Note after a turn whether the timer is due at once."""
        now_us = self._scheduler.now_us
        if not 0 <= self._tick_at_us <= now_us + AT_ONCE_US:
            self._at_once_since_us = NEVER_US
        elif self._at_once_since_us == NEVER_US:
            self._at_once_since_us = now_us

    def _tick(self, planned_us: Micros) -> None:
        if planned_us != self._tick_at_us:
            return
        self._tick_at_us = -1
        if self._is_away:
            # Its loop looks at the sockets first and at its timers then, however long it was away.
            self._is_tick_due = True
            self._at_once_since_us = NEVER_US  # what waited for its turn has not had it
            self._plan_drain()
        else:
            self.turn(self._process.on_tick)
        self._process.on_lane_tick()

    def _plan_drain(self) -> None:
        if self._drain_at_us >= 0 or self.is_frozen:
            return
        self._drain_at_us = max(self.busy_until_us, self._scheduler.now_us)
        self._at(self._drain_at_us, self._drain)

    def _drain(self) -> None:
        """Run the first waiting event: arrivals before timers."""
        self._drain_at_us = -1
        if self.is_frozen:
            return
        if not self.is_busy:
            if self._backlog:
                self.turn(self._backlog.popleft())
            elif self._is_tick_due:
                self._is_tick_due = False
                self.turn(self._process.on_tick)
        if self._has_waiting and self._process.is_running:
            self._plan_drain()

    def _at(self, at_us: Micros, action: Callable[[], None]) -> None:
        """Schedule an action that is dropped if this life ends before."""
        self._scheduler.in_life(self._process, at_us, action)

    # --- away ---------------------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Stop the thread, as SIGSTOP does."""
        self.is_frozen = True
        self._process.note("is frozen")

    def thaw(self) -> None:
        self.is_frozen = False
        self.back_at_us = self._scheduler.now_us
        self._process.note("is thawed")
        if self._has_waiting:
            self._plan_drain()

    def stall(self, duration_us: Micros) -> None:
        """Keep Python busy with something else; a lane thread goes on."""
        self.busy_until_us = max(self.busy_until_us, self._scheduler.now_us + duration_us)
        self._process.note(f"stalls for {duration_us}")


class LaneThread:
    """The lane's own thread. It never waits for the replica's; it latches failures for the replica to carry out."""

    def __init__(self, process: ProcessView, thread: ReplicaThread, lock: SimLock) -> None:
        """Make the lane thread of one life."""
        self._process = process
        self._thread = thread
        self._lock = lock

    @property
    def is_there(self) -> bool:
        return self._process.build.has_lane_thread and self._process.is_assembled

    @property
    def is_alone(self) -> bool:
        """Whether it runs while Python is busy with something else."""
        is_busy_only = self._process.is_running and self._thread.is_busy and not self._thread.is_frozen
        return is_busy_only and self.is_there

    @property
    def is_going(self) -> bool:
        """Whether neither a decision of raft/ nor the end is pending."""
        lane, shell = self._process.lane, self._process.replica.shell
        if lane.mode is LaneMode.CLOSED or lane.has_failed or shell.stopped:
            return False
        return not lane.is_frozen and not shell.handed_up

    def on_tick(self) -> None:
        if self.is_alone and self.is_going:
            process = self._process
            self.run(lambda: process.replica.shell.on_tick(process.now_us))

    def run(self, action: Callable[[], None]) -> None:
        process = self._process
        replica = process.replica
        try:
            with self._lock:
                action()
        except (FatalError, CorruptionError) as error:
            with self._lock:
                process.lane.on_flush_failed()
                replica.shell.error = error
        except ProcessDied as death:
            process.died_elsewhere(death)
            return
        process.observe()
        process.transport.wake()
        if not self._thread.in_turn:
            self._thread.plan_tick()
