"""A simulated named producer: several appends under way, sent to the present leader until they are acknowledged; new
instances of it that fence the former ones, and former ones that go on appending.

A repeated append holds the same values, so that a double one is found (S14); a final refusal must have a reason (S31).
"""

import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fastquorum.errors import (
    FastQuorumError,
    FatalError,
    OutOfOrderSequence,
    ProducerFenced,
    RetriableError,
    SequenceReused,
    UnknownProducer,
    UsageError,
)
from fastquorum.kernels.producers import BATCHES_KEPT, sequence_after, stamp_of
from fastquorum.node.lane.fences import FENCE_NUMBERS, fence_batch
from fastquorum.node.lane.producer_states import NAMED
from fastquorum.sim.callers import Callers
from fastquorum.sim.environment import SimEnvironment
from fastquorum.sim.invariants.clients import TrackedAppend
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.storage.identity import LogKind
from fastquorum.types import NO_NODE, Epoch, Micros, NodeId, Offset

PRODUCER_ID: Final = NAMED | 1


@dataclass(eq=False, slots=True)
class ProducerAppend:
    """One append, with its place among the producer's records."""

    number: int
    """The number of the producer's earlier appends."""
    operation: TrackedAppend
    sequence: int
    sent_us: Micros = -1
    """When it was sent last, in microseconds; -1: it has to be sent."""
    sent_to: tuple[NodeId, int] | None = None
    """The node that it was sent to, and which of its lives."""
    sent_epoch: Epoch = -1
    """The epoch of that node then."""


class ProducerAttempt:
    """One sending of one append, a `node.ports.AppendTicket`."""

    def __init__(self, producer: "SimProducer", process: SimProcess, append: ProducerAppend, epoch: int) -> None:
        self._producer = producer
        self._process = process
        self._append = append
        self._epoch = epoch

    def committed(self, base_offset: Offset) -> None:
        self._process.observe()
        self._producer.acked(self._append, base_offset, self._process.node_id)

    def failed(self, error: FastQuorumError) -> None:
        self._producer.refused(self._append, self._epoch, error, self._process)


class Fence:
    """The batch that opens an instance, a `node.ports.AppendTicket`."""

    def __init__(self, producer: "SimProducer", process: SimProcess, epoch: int, batch: bytes) -> None:
        self.epoch = epoch
        self.batch = batch
        self._producer = producer
        self._process = process

    def committed(self, base_offset: Offset) -> None:
        self._process.observe()
        self._producer.opened(self)

    def failed(self, error: FastQuorumError) -> None:
        self._producer.not_opened(self, error)


class Former:
    """An append of a fenced instance, a `node.ports.AppendTicket`."""

    def __init__(self, process: SimProcess) -> None:
        self._process = process

    def committed(self, base_offset: Offset) -> None:
        raise Violation("S31", f"a fenced producer's append is acknowledged at {base_offset}", self._process.node_id)

    def failed(self, error: FastQuorumError) -> None:
        pass


class SimProducer:
    """The named producer of one simulated world."""

    def __init__(
        self,
        environment: SimEnvironment,
        processes: Sequence[SimProcess],
        callers: Callers,
        prng: Prng,
        patience_us: Micros,
        *,
        is_watchful: bool,
    ) -> None:
        """Make a producer that begins and ends with `callers`. `patience_us`: how long it waits for an answer before it
        sends an append again. `is_watchful`: it does not wait once it finds that another node leads."""
        self.is_watchful: Final = is_watchful
        self._scheduler = environment.scheduler
        self._processes = processes
        self._callers = callers
        self._ledger = callers.ledger
        self._prng = prng
        self._interval_us: Micros = environment.swarm.append_interval_us
        self._patience_us = patience_us
        self._epoch = -1
        """The epoch of the open instance; -1: none is open."""
        self._former_epoch = -1
        self._fence: Fence | None = None
        self._fence_sent_us: Micros = 0
        self._sequence = 0
        self._unsettled: deque[ProducerAppend] = deque()
        self._written = self._begun = 0
        self._may_interrupt = False

    def begin(self) -> None:
        self._plan()

    def _plan(self) -> None:
        self._scheduler.after(self._prng.heavy_tail(self._interval_us, 10 * self._interval_us), self._act)

    def _act(self) -> None:
        is_over = not self._callers.is_active
        if is_over and not self._unsettled:
            return
        self._may_interrupt = True
        process = self._choose()
        if process is not None and process.takes_calls:
            process.as_caller(lambda: self._call(process, is_over=is_over))
        self._plan()

    def interrupt(self, process: SimProcess) -> None:
        """Make a call between two steps of the replica's thread, only now and then: each makes more such moments."""
        if self._may_interrupt and process.takes_calls and self._callers.is_active:
            self._may_interrupt = False
            process.as_caller(lambda: self._call(process, is_over=False))

    def _choose(self) -> SimProcess | None:
        running = [process for process in self._processes if process.is_running]
        leading = [process for process in running if process.is_leading]
        if leading and self._prng.randrange(20):
            return self._prng.pick(leading)
        return self._prng.pick(running) if running else None

    def _call(self, process: SimProcess, *, is_over: bool) -> None:
        """Make one call from its own thread."""
        if self._epoch < 0:
            self._open(process)
            return
        if not is_over:
            if self._prng.randrange(40) == 0:
                self._begin_anew()
                return
            if self._former_epoch >= 0 and self._prng.randrange(10) == 0:
                self._append_as_former(process)
            while self._has_room and self._prng.randrange(3):
                self._unsettled.append(self._new())
        self._send(process)

    # --- opening ------------------------------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        """Begin a new instance after its program ended; it sends all unacknowledged appends again."""
        self._former_epoch, self._epoch, self._fence = self._epoch, -1, None

    def _open(self, process: SimProcess) -> None:
        if self._fence is not None and self._now_us - self._fence_sent_us < self._patience_us:
            return
        try:
            if self._fence is None or self._prng.randrange(2):
                known = process.replica.shell.producer(PRODUCER_ID)
                epoch = known.next_epoch if known is not None else 0
                batch = fence_batch(
                    process.build.kernels,
                    LogKind.USER,
                    producer_id=PRODUCER_ID,
                    epoch=epoch,
                    number=self._prng.randrange(FENCE_NUMBERS),
                    timestamp_ms=process.build.clock.wall_ms(),
                )
            else:
                epoch, batch = self._fence.epoch, self._fence.batch
            self._fence = Fence(self, process, epoch, batch)
            self._fence_sent_us = self._now_us
            self._append(process, batch, self._fence)
        except (RetriableError, FatalError):
            pass

    def opened(self, fence: Fence) -> None:
        """Take the name over: the batch of this instance is committed, and the former instance is fenced."""
        if fence is not self._fence or self._epoch >= 0:
            return
        self._epoch = fence.epoch
        for append in self._unsettled:
            append.sent_us = -1

    def not_opened(self, fence: Fence, error: FastQuorumError) -> None:
        if fence is not self._fence or self._epoch >= 0:
            return
        if isinstance(error, ProducerFenced | UnknownProducer):  # by an earlier fence of ours, or out of date
            self._fence = None
        else:
            self._fence_sent_us = -self._patience_us

    # --- appending ----------------------------------------------------------------------------------------------------

    @property
    def _now_us(self) -> Micros:
        return self._scheduler.now_us

    @property
    def _has_room(self) -> bool:
        """Whether one more append may follow the oldest unacknowledged one: a leader remembers BATCHES_KEPT."""
        return not self._unsettled or self._begun - self._unsettled[0].number < BATCHES_KEPT

    def _new(self) -> ProducerAppend:
        values = self._values()
        append = ProducerAppend(self._begun, self._ledger.begin(NO_NODE, values), self._sequence)
        self._begun += 1
        self._sequence = sequence_after(self._sequence, len(values))
        return append

    def _values(self) -> tuple[bytes, ...]:
        self._written += 1
        count = 1 if self._prng.randrange(3) else 2
        return tuple(b"produced-%d-%d" % (self._written, at) for at in range(count))

    def _send(self, process: SimProcess) -> None:
        """Send all due appends in order, and all behind a repeated one, since the next leader may have none of them.
        Send nothing behind one that is under way elsewhere: a leader without batches of the producer takes any
        sequence."""
        epoch, here = process.replica.raft.epoch, (process.node_id, process.incarnation)
        unsettled = list(self._unsettled)
        first = next((at for at, append in enumerate(unsettled) if self._is_due(append, epoch)), len(unsettled))
        if any(append.sent_to != here for append in unsettled[:first]):
            return
        for append in unsettled[first:]:
            append.sent_us, append.sent_epoch, append.sent_to = self._now_us, epoch, here
            batch = self._batch(process, append.operation.values, append.sequence, self._epoch)
            try:
                self._append(process, batch, ProducerAttempt(self, process, append, self._epoch))
            except RetriableError:
                append.sent_us = -1
                return  # what follows it is not its producer's next
            except FatalError:
                return

    def _is_due(self, append: ProducerAppend, epoch: Epoch) -> bool:
        """Return whether an append has to be sent to a node of this epoch."""
        is_superseded = self.is_watchful and append.sent_epoch < epoch
        return append.sent_us < 0 or is_superseded or self._now_us - append.sent_us > self._patience_us

    def _append_as_former(self, process: SimProcess) -> None:
        operation = self._ledger.begin(NO_NODE, self._values())
        self._ledger.failed(operation, maybe_committed=False, node_id=process.node_id)
        batch = self._batch(process, operation.values, self._sequence, self._former_epoch)
        with contextlib.suppress(RetriableError, FatalError):
            self._append(process, batch, Former(process))

    def _batch(self, process: SimProcess, values: tuple[bytes, ...], sequence: int, epoch: int) -> bytes:
        return process.build.kernels.encode_values(
            values,
            base_offset=0,
            leader_epoch=0,
            timestamp_ms=process.build.clock.wall_ms(),
            producer_id=PRODUCER_ID,
            producer_epoch=epoch,
            base_sequence=sequence,
        )

    def _append(self, process: SimProcess, batch: bytes, ticket: ProducerAttempt | Fence | Former) -> None:
        stamp = stamp_of(batch)
        process.replica.shell.append_encoded(bytearray(batch), stamp.record_count, ticket, process.now_us, stamp)

    def acked(self, append: ProducerAppend, base_offset: Offset, node_id: int) -> None:
        operation = append.operation
        if operation.outcome == "pending":
            self._ledger.acked(operation, base_offset, node_id)
            self._unsettled.remove(append)
        elif base_offset != operation.base_offset:
            text = f"append {operation.number} is acknowledged at {operation.base_offset} and at {base_offset}"
            raise Violation("S31", text, node_id)

    def refused(self, append: ProducerAppend, epoch: int, error: FastQuorumError, process: SimProcess) -> None:
        """Check S31: a final refusal comes only behind an append that is not under way there, or after the instance."""
        if isinstance(error, UsageError) and epoch == self._epoch and append in self._unsettled:
            before = list(islice(self._unsettled, self._unsettled.index(append)))
            here = process.node_id, process.incarnation
            is_due = all(each.sent_us >= 0 and each.sent_to == here for each in before)
            if not isinstance(error, OutOfOrderSequence) or isinstance(error, SequenceReused) or is_due:
                raise Violation("S31", f"append {append.operation.number} is refused: {error}", process.node_id)
        append.sent_us = -1
