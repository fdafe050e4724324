"""A named producer: what it appends is in the log once, however often the append is tried.

Its name is its identity, on every node and in every life of the caller. Its id, made of the name, its epoch and its
sequences stand in its batches' headers and nowhere else; they are remembered as long as the log is, for the 65,536
producers that appended last. Of those who open a producer of one name the last has it: opening takes the next epoch,
by a batch in the log, and the others hear `ProducerFenced`. Source: KIP-98; `fastquorum.kernels.producers`.
"""

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple, Self

from fastquorum.api.standing import Failure, append_timeout
from fastquorum.api.values import Values, copied
from fastquorum.api.waiting import within
from fastquorum.errors import (
    NotLeader,
    OutOfOrderSequence,
    Overloaded,
    ProducerFenced,
    RecordTooLarge,
    UnknownProducer,
    UsageError,
)
from fastquorum.kernels import Buffer
from fastquorum.kernels.producers import SEQUENCES, ProducerState, Stamp, sequence_after, stamp_of
from fastquorum.node.io.handles import Guarded
from fastquorum.node.io.running import RunningNode
from fastquorum.node.lane.fences import FENCE_NUMBERS, FIRST_EPOCHS, fence_batch
from fastquorum.node.lane.producer_states import NAMED
from fastquorum.timeouts import wait_s
from fastquorum.types import NO_NODE, Offset

RETRY_S: Final = 0.01


def producer_id(name: str) -> int:
    """Return the producer id that a name stands for; each of its 62 bits depends on the whole name."""
    digest = hashlib.sha256(f"fastquorum:producer:{name}".encode(errors="surrogatepass")).digest()
    return NAMED | int.from_bytes(digest[:8], "big") & (NAMED - 1)


def committed_end(state: ProducerState | None) -> Offset:
    """Once this is committed, all that the producer has is."""
    return state.end_offset if state is not None else 0


class Attempt(NamedTuple):
    """One append, ready to be sent, and to be sent again."""

    values: tuple[bytes, ...]
    stamp: Stamp
    batch: bytes


class ProducerCore(Guarded):
    """What the asyncio and the blocking producer share. One append at a time."""

    def __init__(self, node: RunningNode, name: str, timeout: float | None) -> None:
        super().__init__()
        if not isinstance(name, str) or not name:
            raise UsageError(f"id {name!r} is not a name of a producer", "name it after what it writes, as text")
        self.id = name
        self._node = node
        self._timeout = wait_s(timeout)
        self._producer_id = producer_id(name)
        self._epoch = -1
        self._next_sequence = -1
        self._is_open = False
        """Whether its `with` block is entered."""
        self._unsettled: Attempt | None = None
        """The attempt whose fate is not known; None if there is none."""
        self._was_sent = False
        """Whether that attempt was sent before."""

    @property
    def next_sequence(self) -> int:
        """How many records of this producer are committed: the sequence of its next one. Begins anew after 2^31."""
        if self._next_sequence < 0:
            raise UsageError("the producer is not open", "use it in a `with` block")
        return self._next_sequence

    def _is_decided(self, end_offset: Offset) -> bool:
        """Is all below it committed, or may it never be?"""
        return self._node.high_watermark >= end_offset or not self._node.is_leader

    def _has_learned(self, state: ProducerState | None, end_offset: Offset) -> bool:
        """False if the lead ended before what the producer has here was committed. Raises ClosedError."""
        if self._node.high_watermark < end_offset:
            self._node.check_open()
            return False
        self._settled()
        self._learn(state)
        return True

    def _settled(self) -> None:
        self._unsettled = None
        self._was_sent = False

    def _fence(self) -> Attempt:
        """Takes the epoch after the last one in this leader's log. Raises NotLeader, Overloaded."""
        state = self._state()
        self._epoch = state.next_epoch if state is not None else secrets.choice(FIRST_EPOCHS)
        batch = fence_batch(
            self._node.kernels,
            self._node.identity.log_kind,
            producer_id=self._producer_id,
            epoch=self._epoch,
            number=secrets.randbelow(FENCE_NUMBERS),
            timestamp_ms=time.time_ns() // 1_000_000,
        )
        return Attempt((), stamp_of(batch), batch)

    def _learn(self, state: ProducerState | None) -> None:
        """What the name has in the log. If it was taken from this producer, its next append will hear so. An append of
        unknown fate is this epoch's from now on, in its former place: it is there already, or it may still come."""
        self._next_sequence = state.next_sequence if state is not None else 0
        if self._unsettled is not None:
            self._unsettled = self._attempt(self._unsettled.values, self._unsettled.stamp.first_sequence)

    def _state(self) -> ProducerState | None:
        """Raises NotLeader, Overloaded."""
        return self._node.producer(self._producer_id)

    def _must_settle(self, values: tuple[bytes, ...], sequence: int | None) -> bool:
        """Is an append of unknown fate in the way? The same values after it are that append again."""
        last = self._unsettled
        return last is not None and not (values == last.values and sequence in (None, last.stamp.first_sequence))

    def _begin(self, values: tuple[bytes, ...], sequence: int | None) -> Attempt:
        """Return the append to send now: that of unknown fate again, or the next. Raises RecordTooLarge, UsageError."""
        if not self._is_open:
            raise UsageError("the producer is not open", "use it in a `with` block")
        self._unsettled = attempt = self._unsettled or self._attempt(values, sequence)
        return attempt

    def _attempt(self, values: tuple[bytes, ...], sequence: int | None) -> Attempt:
        """Raises RecordTooLarge, UsageError."""
        first = self.next_sequence if sequence is None else sequence
        if not isinstance(first, int) or isinstance(first, bool):
            raise UsageError(f"sequence {sequence!r} is not a whole number")
        if not 0 <= first < SEQUENCES:
            raise UsageError(f"sequence {first} is outside 0..{SEQUENCES - 1}")
        batch = self._encoded(values, first)
        limit = self._node.config.batch_bytes_max
        if len(batch) > limit:
            raise RecordTooLarge(size_bytes=len(batch), limit_bytes=limit)
        return Attempt(values, stamp_of(batch), batch)

    def _encoded(self, values: Sequence[Buffer], sequence: int) -> bytes:
        return self._node.kernels.encode_values(
            values,
            base_offset=0,
            leader_epoch=0,
            timestamp_ms=time.time_ns() // 1_000_000,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
        )

    @contextmanager
    def _sending(self, attempt: Attempt) -> Iterator[None]:
        """Inside it is sent, and waited for. It is committed if nothing is raised; refused for good by UsageError."""
        was_sent, self._was_sent = self._was_sent, True
        try:
            yield
        except UsageError as error:
            self._give_name(error)
            if not (was_sent and isinstance(error, ProducerFenced)):  # else it may be there since it was sent before
                self._settled()
            raise
        self._settled()
        end = sequence_after(attempt.stamp.last_sequence, 1)
        if sequence_after(end, -self._next_sequence) < SEQUENCES // 2:  # not one of long ago, said again
            self._next_sequence = end

    def _give_name(self, error: UsageError) -> None:
        """Have it show the name that the program gave, beside the id that is made of it."""
        if isinstance(error, ProducerFenced | OutOfOrderSequence):
            by_id = f"producer {self._producer_id}"
            error.detail = str(error).replace(by_id, f"producer {self.id!r} (id {self._producer_id})")

    def _pause_s(self, error: NotLeader | Overloaded) -> float:
        """How long to wait before the next try; raises `error` if a try here is no use: another node leads. While
        nobody is known to, an open producer waits for an election: its append may be there already; so does one that is
        being opened, if it has a time limit."""
        if isinstance(error, Overloaded):
            return error.retry_after_s
        may_wait = self._is_open or self._timeout is not None or error.leader_id != NO_NODE
        if not may_wait or error.leader_id not in (NO_NODE, self._node.identity.node_id):
            raise error
        return RETRY_S


class ProducerChannel(NamedTuple):
    """What a producer asks of the quorum that made it."""

    append_stamped: Callable[[Attempt], Awaitable[Offset]]
    """Append its batch, and wait until that is committed."""
    read_barrier: Callable[[], Awaitable[Offset]]
    commit: Callable[[Callable[[], bool]], Awaitable[None]]
    """Wait for what a commit may bring about, or until the node is over."""
    barrier_timeout: Failure


class Producer(ProducerCore):
    """Made by `Quorum.producer`; use it in an `async with` block, where that quorum leads.

    >>> async with quorum.producer(id="orders") as producer:
    ...     first = await producer.append(b"one", timeout=5)
    ...     again = await producer.append(b"one", sequence=0)  # the same append: it is there already
    ...     print(again == first, producer.next_sequence)
    True 1
    """

    def __init__(self, channel: ProducerChannel, node: RunningNode, name: str, timeout: float | None = None) -> None:
        super().__init__(node, name, timeout)
        self._channel = channel
        self._turn = asyncio.Lock()

    async def append(self, value: Values, *, sequence: int | None = None, timeout: float | None = None) -> Offset:
        """Append one value, or several in one batch, exactly once; wait until they are on a majority's disks.

        It is tried again until it is there, as long as this node leads or nobody does. After an error that leaves its
        fate open, append the same values again: here, or on the node that leads, as the producer of the same id with
        the same `sequence`. Appends of one producer take turns.

        Args:
            sequence: how many records of this producer come before. By default those it has; a caller that counts
                its own can say an append again after a restart, and it is not appended twice.
        Returns:
            The offset of the first value.
        Raises:
            NotLeader: another node leads; it is named, with its endpoint.
            AppendTimeout: not committed within `timeout` seconds. It may still be.
            ProducerFenced: the name was opened again since, here or on another node: stop.
            SequenceReused: other values were appended under this `sequence`.
            OutOfOrderSequence: `sequence` leaves a gap, or is long past.
            RecordTooLarge: it does not fit into one batch; nothing was appended.
        """
        return await within(wait_s(timeout), self._append_in_turn(value, sequence), append_timeout)

    async def _append_in_turn(self, value: Values, sequence: int | None) -> Offset:
        async with self._turn:
            return await self._append(value, sequence)

    async def _append(self, value: Values, sequence: int | None) -> Offset:
        values = copied(value)
        if self._must_settle(values, sequence):
            await self._settle()
        attempt = self._begin(values, sequence)
        while True:
            try:
                with self._sending(attempt):
                    return await self._channel.append_stamped(attempt)
            except (NotLeader, Overloaded) as error:
                await asyncio.sleep(self._pause_s(error))

    async def _settle(self) -> None:
        """Learn what is committed, and that nothing else of the past ever will be."""
        while True:
            try:
                await self._channel.read_barrier()
                state = self._state()
            except (NotLeader, Overloaded) as error:
                await asyncio.sleep(self._pause_s(error))
                continue
            end_offset = committed_end(state)
            await self._channel.commit(partial(self._is_decided, end_offset))
            if self._has_learned(state, end_offset):
                return

    async def _take_name(self) -> None:
        """Fence whoever has it; what it appended is committed then, or never will be."""
        attempt: Attempt | None = None
        while True:
            try:
                attempt = attempt or self._fence()
                await self._channel.append_stamped(attempt)
                self._learn(self._state())
            except (ProducerFenced, UnknownProducer):
                attempt = None  # another one was faster, or the name was forgotten meanwhile
            except (NotLeader, Overloaded) as error:
                await asyncio.sleep(self._pause_s(error))
            else:
                return

    async def __aenter__(self) -> Self:
        await within(self._timeout, self._take_name(), self._channel.barrier_timeout)
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held: the producer lives in the log."""
        self._is_open = False
