"""Simulated callers: they append and read where they expect the leader, at any moment, and trust only answers."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fastquorum.errors import FastQuorumError, FatalError, RetriableError, UsageError
from fastquorum.sim.environment import SimEnvironment
from fastquorum.sim.invariants.clients import Ledger, TrackedAppend
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.types import Micros, Offset

INTERRUPTIONS: Final = 3
"""Calls in the middle of a replica's turn for each call that comes by itself."""


class CallerAppend:
    """Implements `node.ports.AppendTicket`."""

    def __init__(self, callers: "Callers", process: SimProcess, operation: TrackedAppend) -> None:
        self._callers = callers
        self._process = process
        self.operation = operation

    def committed(self, base_offset: Offset) -> None:
        self._process.observe()
        self._callers.ledger.acked(self.operation, base_offset, self._process.node_id)

    def failed(self, error: FastQuorumError) -> None:
        maybe = isinstance(error, FatalError) or bool(getattr(error, "maybe_committed", False))
        self._callers.ledger.failed(self.operation, maybe_committed=maybe, node_id=self._process.node_id)


class Barrier:
    """Implements `node.ports.BarrierTicket`."""

    def __init__(self, callers: "Callers", process: SimProcess) -> None:
        self._callers = callers
        self._process = process
        self._begun_at = callers.ledger.seen_end

    def passed(self, high_watermark: Offset) -> None:
        self._process.observe()
        self._callers.ledger.passed(self._begun_at, high_watermark, self._process.node_id)
        self._callers.read_back(self._process, high_watermark)

    def failed(self, error: FastQuorumError) -> None:
        pass


class Callers:
    """The callers of one simulated world."""

    def __init__(
        self, environment: SimEnvironment, processes: Sequence[SimProcess], ledger: Ledger, prng: Prng, *, appends: bool
    ) -> None:
        """Take `appends`: whether callers append and read; they only read where the log is the controllers'."""
        self.ledger = ledger
        self.is_active = False
        self._environment = environment
        self._processes = processes
        self._prng = prng
        self._interval_us: Micros = environment.swarm.append_interval_us
        self._appends = appends
        self._written = 0
        self._interruptions = 0

    def begin(self) -> None:
        self.is_active = True
        self._plan()

    def _plan(self) -> None:
        self._environment.scheduler.after(self._prng.heavy_tail(self._interval_us, 10 * self._interval_us), self._act)

    def _act(self) -> None:
        if not self.is_active:
            return
        self._interruptions = INTERRUPTIONS
        process = self._choose()
        if process is not None:
            for _ in range(1 + (self._prng.randrange(4) == 0) * self._prng.randrange(8)):
                self.call(process)
        self._plan()

    def _choose(self) -> SimProcess | None:
        running = [process for process in self._processes if process.is_running]
        leading = [process for process in running if process.is_leading]
        if leading and self._prng.randrange(10):
            return self._prng.pick(leading)
        return self._prng.pick(running) if running else None

    def interrupt(self, process: SimProcess) -> None:
        """Make a call between two steps of the replica's thread. The count is limited: each call makes more such
        moments."""
        if self._interruptions:
            self._interruptions -= 1
            self.call(process)

    def call(self, process: SimProcess) -> None:
        """Make one call from its own thread."""
        if not self.is_active or not process.takes_calls:
            return
        if self._appends and self._prng.randrange(4):
            process.as_caller(lambda: self.append(process))
        else:
            self.begin_barrier(process)

    def append(self, process: SimProcess) -> TrackedAppend:
        operation = self.ledger.begin(process.node_id, self._values())
        try:
            process.replica.shell.append(operation.values, CallerAppend(self, process, operation), process.now_us)
        except (RetriableError, UsageError):
            self.ledger.failed(operation, maybe_committed=False, node_id=process.node_id)
        except FatalError:
            self.ledger.failed(operation, maybe_committed=True, node_id=process.node_id)
        return operation

    def begin_barrier(self, process: SimProcess) -> None:
        """Begin a barrier in its own thread, if there is a replica to call."""

        def begin() -> None:
            with suppress(RetriableError, FatalError):
                process.replica.shell.begin_barrier(Barrier(self, process), process.now_us)

        if process.takes_calls:
            process.as_caller(begin)

    def _values(self) -> tuple[bytes, ...]:
        count = 1 if self._prng.randrange(3) else self._prng.between(2, 6)
        values = []
        for _ in range(count):
            self._written += 1
            size = (
                self._prng.between(400, 1500)
                if self._prng.chance(self._environment.swarm.big_values)
                else self._prng.randrange(60)
            )
            values.append(b"value-%d-" % self._written + b"x" * size)
        return tuple(values)

    def read_back(self, process: SimProcess, high_watermark: Offset) -> None:
        """Check that a linearizable read shows the committed log."""
        committed = self._environment.ghost.committed
        if not committed or high_watermark <= 0:
            return
        batch = self._prng.pick(committed)
        if batch.end > high_watermark or batch.base < process.replica.log.start_offset:
            return
        data = process.replica.reader.read(batch.base, 1, high_watermark)
        if data != batch.data:
            raise Violation("S16", f"a read at {batch.base} returns other bytes than committed", process.node_id)
