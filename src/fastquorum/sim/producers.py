"""A simulated named producer: several appends under way, sent again until they are acknowledged, to whichever node
leads; new instances of it that fence the former ones, and former ones that go on appending.

What it says again holds the same values, so that what is there twice is seen (S14); what is refused for good must have
been wrong (S31).
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
from fastquorum.sim.environment import Environment
from fastquorum.sim.invariants.clients import Operation
from fastquorum.sim.node.process import Process
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.storage.identity import LogKind
from fastquorum.types import NO_NODE, Epoch, Micros, NodeId, Offset

PRODUCER_ID: Final = NAMED | 1


@dataclass(eq=False, slots=True)
class Said:
    """One append, with its place among the producer's records."""

    number: int
    """Appends of the producer that came before."""
    operation: Operation
    sequence: int
    sent_us: Micros = -1
    """When it was sent last; -1: it has to be sent."""
    sent_to: tuple[NodeId, int] | None = None
    """A node and which of its lives."""
    sent_epoch: Epoch = -1
    """Of that node then."""


class Attempt:
    """Implements `node.ports.AppendTicket`: one sending of one append."""

    def __init__(self, producer: "SimProducer", process: Process, said: Said, epoch: int) -> None:
        self._producer = producer
        self._process = process
        self._said = said
        self._epoch = epoch

    def committed(self, base_offset: Offset) -> None:
        self._process.observe()
        self._producer.acked(self._said, base_offset, self._process.node_id)

    def failed(self, error: FastQuorumError) -> None:
        self._producer.refused(self._said, self._epoch, error, self._process)


class Fence:
    """Implements `node.ports.AppendTicket`: the batch that opens an instance."""

    def __init__(self, producer: "SimProducer", process: Process, epoch: int, batch: bytes) -> None:
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
    """Implements `node.ports.AppendTicket`: an append of an instance that is fenced."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def committed(self, base_offset: Offset) -> None:
        raise Violation("S31", f"a fenced producer's append is acknowledged at {base_offset}", self._process.node_id)

    def failed(self, error: FastQuorumError) -> None:
        pass


class SimProducer:
    """See the module."""

    def __init__(
        self,
        environment: Environment,
        processes: Sequence[Process],
        callers: Callers,
        prng: Prng,
        patience_us: Micros,
        *,
        is_watchful: bool,
    ) -> None:
        """It begins and ends with `callers`. `patience_us`: how long an answer is waited for before an append is sent
        again. `is_watchful`: it waits for none where it finds that another node leads by now."""
        self.is_watchful: Final = is_watchful
        self._scheduler = environment.scheduler
        self._processes = processes
        self._callers = callers
        self._ledger = callers.ledger
        self._prng = prng
        self._interval_us: Micros = environment.swarm.append_interval_us
        self._patience_us = patience_us
        self._epoch = -1
        """Of the instance that is open; -1: none is."""
        self._former_epoch = -1
        self._fence: Fence | None = None
        self._fence_sent_us: Micros = 0
        self._sequence = 0
        self._unsettled: deque[Said] = deque()
        self._written = self._said = 0
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

    def interrupt(self, process: Process) -> None:
        """A call between two steps of the replica's thread. Once in a while: each makes more such moments."""
        if self._may_interrupt and process.takes_calls and self._callers.is_active:
            self._may_interrupt = False
            process.as_caller(lambda: self._call(process, is_over=False))

    def _choose(self) -> Process | None:
        running = [process for process in self._processes if process.is_running]
        leading = [process for process in running if process.is_leading]
        if leading and self._prng.randrange(20):
            return self._prng.pick(leading)
        return self._prng.pick(running) if running else None

    def _call(self, process: Process, *, is_over: bool) -> None:
        """One call from a thread of its own."""
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
        """The program that had it is gone; what it had not heard of is said again by the next instance."""
        self._former_epoch, self._epoch, self._fence = self._epoch, -1, None

    def _open(self, process: Process) -> None:
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
        """Its batch is committed: whoever had the name before has it no more."""
        if fence is not self._fence or self._epoch >= 0:
            return
        self._epoch = fence.epoch
        for said in self._unsettled:
            said.sent_us = -1

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
        """As many as are remembered may follow the oldest that is not acknowledged."""
        return not self._unsettled or self._said - self._unsettled[0].number < BATCHES_KEPT

    def _new(self) -> Said:
        values = self._values()
        said = Said(self._said, self._ledger.begin(NO_NODE, values), self._sequence)
        self._said += 1
        self._sequence = sequence_after(self._sequence, len(values))
        return said

    def _values(self) -> tuple[bytes, ...]:
        self._written += 1
        count = 1 if self._prng.randrange(3) else 2
        return tuple(b"produced-%d-%d" % (self._written, at) for at in range(count))

    def _send(self, process: Process) -> None:
        """In order, and all behind one that is sent again, as the next leader may have none of them; nothing behind one
        that is under way elsewhere, as where a producer has no batches any sequence is taken."""
        epoch, here = process.replica.raft.epoch, (process.node_id, process.incarnation)
        unsettled = list(self._unsettled)
        first = next((at for at, said in enumerate(unsettled) if self._is_due(said, epoch)), len(unsettled))
        if any(said.sent_to != here for said in unsettled[:first]):
            return
        for said in unsettled[first:]:
            said.sent_us, said.sent_epoch, said.sent_to = self._now_us, epoch, here
            batch = self._batch(process, said.operation.values, said.sequence, self._epoch)
            try:
                self._append(process, batch, Attempt(self, process, said, self._epoch))
            except RetriableError:
                said.sent_us = -1
                return  # what follows it is not its producer's next
            except FatalError:
                return

    def _is_due(self, said: Said, epoch: Epoch) -> bool:
        """To a node of this epoch."""
        is_superseded = self.is_watchful and said.sent_epoch < epoch
        return said.sent_us < 0 or is_superseded or self._now_us - said.sent_us > self._patience_us

    def _append_as_former(self, process: Process) -> None:
        operation = self._ledger.begin(NO_NODE, self._values())
        self._ledger.failed(operation, maybe_committed=False, node_id=process.node_id)
        batch = self._batch(process, operation.values, self._sequence, self._former_epoch)
        with contextlib.suppress(RetriableError, FatalError):
            self._append(process, batch, Former(process))

    def _batch(self, process: Process, values: tuple[bytes, ...], sequence: int, epoch: int) -> bytes:
        return process.build.kernels.encode_values(
            values,
            base_offset=0,
            leader_epoch=0,
            timestamp_ms=process.build.clock.wall_ms(),
            producer_id=PRODUCER_ID,
            producer_epoch=epoch,
            base_sequence=sequence,
        )

    def _append(self, process: Process, batch: bytes, ticket: Attempt | Fence | Former) -> None:
        stamp = stamp_of(batch)
        process.replica.shell.append_encoded(bytearray(batch), stamp.record_count, ticket, process.now_us, stamp)

    def acked(self, said: Said, base_offset: Offset, node_id: int) -> None:
        operation = said.operation
        if operation.outcome == "pending":
            self._ledger.acked(operation, base_offset, node_id)
            self._unsettled.remove(said)
        elif base_offset != operation.base_offset:
            text = f"append {operation.number} is acknowledged at {operation.base_offset} and at {base_offset}"
            raise Violation("S31", text, node_id)

    def refused(self, said: Said, epoch: int, error: FastQuorumError, process: Process) -> None:
        """S31: an append is refused for good only behind one that is not under way there, or if its instance is
        over."""
        if isinstance(error, UsageError) and epoch == self._epoch and said in self._unsettled:
            before = list(islice(self._unsettled, self._unsettled.index(said)))
            here = process.node_id, process.incarnation
            is_due = all(each.sent_us >= 0 and each.sent_to == here for each in before)
            if not isinstance(error, OutOfOrderSequence) or isinstance(error, SequenceReused) or is_due:
                raise Violation("S31", f"append {said.operation.number} is refused: {error}", process.node_id)
        said.sent_us = -1
