"""The asyncio API: the `Quorum` that `fastquorum.open` opens."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from fastquorum.api.appends import Appends
from fastquorum.api.barriers import Barriers
from fastquorum.api.bridge import Bridge, expire
from fastquorum.api.committed import Committed, CommittedReader
from fastquorum.api.description import QuorumDescription, description_of
from fastquorum.api.options import OpenOptions, Path, settings_of
from fastquorum.api.producer import Attempt, Producer, ProducerChannel
from fastquorum.api.standing import QuorumHandle, Transfer, append_timeout, start_logged, stop_grace_s
from fastquorum.api.values import Values, as_values, split
from fastquorum.api.waiting import within
from fastquorum.errors import Overloaded
from fastquorum.kernels import Buffer, Outcome
from fastquorum.loops import HomeLoop, in_own_thread
from fastquorum.node.io import handles
from fastquorum.node.io.observing import Leadership
from fastquorum.node.io.running import RunningNode
from fastquorum.node.metrics import NodeMetrics
from fastquorum.opening import begun
from fastquorum.timeouts import wait_s
from fastquorum.types import NodeId, Offset

_T = TypeVar("_T")


async def open_quorum(path: Path, options: OpenOptions) -> "Quorum":
    """See `fastquorum.open`. Settings are read, and the log is recovered, in a thread: not on the loop."""
    bridge = Bridge(asyncio.get_running_loop())
    node = await begun(lambda: start_logged(settings_of(path, options), bridge), RunningNode.stop)
    return Quorum(node, bridge)


@runtime_checkable
class Pending(Protocol):
    """An append that was accepted. Await it for the offset of its first record, as often as you like.

    It need not be awaited: nothing is logged of one that fails without being asked.
    """

    def __await__(self) -> Generator[Any, None, Offset]: ...

    def done(self) -> bool:
        """Is its fate known?"""

    def result(self) -> Offset:
        """The offset, or the error raised. asyncio.InvalidStateError while its fate is not known."""

    def add_done_callback(self, callback: "Callable[[Any], object]") -> None:
        """Have it called with this in the event loop, once the fate is known."""


class Quorum(QuorumHandle):
    """One node of a quorum. Use it in the event loop it was opened in. Made by `open`.

    Results arrive in that loop; nothing of the user's runs in the replica's thread.
    """

    def __init__(self, node: RunningNode, bridge: Bridge) -> None:
        super().__init__(node)
        self._bridge = bridge
        self._loop = bridge.loop
        self._home = HomeLoop("quorum", bridge.loop)
        bridge.watch_commit = node.watch_commit
        callers = node.loop_callers(bridge)
        self._appends = Appends(callers, bridge.loop, node.kernels)
        self._barriers = Barriers(callers, bridge.loop, node.kernels, node.identity.node_id)

    # --- being ready, and who leads -----------------------------------------------------------------------------------

    async def describe(self) -> QuorumDescription:
        """Everything this node knows about the quorum, at one moment.

        >>> (await quorum.describe()).role
        'leader'
        """
        self._home.check()
        future: asyncio.Future[QuorumDescription] = self._loop.create_future()
        node, bridge = self._node, self._bridge
        node.describe(lambda state, peers: bridge.resolve(future, description_of(node, state, peers)))
        return await self._or_over(future)

    async def metrics(self) -> NodeMetrics:
        """This node's numbers, at one moment: what /metrics tells, for an exporter of your own.

        >>> (await quorum.metrics()).voter_count
        1
        """
        self._home.check()
        self._node.check_open()
        future: asyncio.Future[NodeMetrics] = self._loop.create_future()
        self._node.measure(lambda numbers: self._bridge.resolve(future, numbers))
        return await self._or_over(future)

    async def wait_ready(self, timeout: float | None = None) -> Leadership:
        """Wait until a leader is known and the high watermark is valid in its epoch: the quorum works, as seen from
        here.

        >>> (await quorum.wait_ready(timeout=5)).leader_id
        1

        Raises:
            NotReady: not within `timeout` seconds.
        """
        self._home.check()
        timeout, node = wait_s(timeout), self._node
        node.check_open()
        await within(timeout, self._bridge.change(lambda: node.is_ready), self._not_ready)
        if not node.is_ready:
            node.check_open()
        return node.leadership

    async def leadership(self) -> AsyncIterator[Leadership]:
        """Yield the leadership now and after every change. Latest wins: a slow reader misses what is over already.

        >>> async for event in quorum.leadership():
        ...     print(event.leader_id, event.is_self)
        ...     break
        1 True
        """
        self._home.check()
        node = self._node
        last: Leadership | None = None
        while not self._bridge.over:
            now = node.leadership
            if now.epoch >= 0 and now != last:
                last = now
                yield now
            else:
                await self._bridge.change(lambda last=last: node.leadership != last and node.leadership.epoch >= 0)  # type: ignore[misc]
        self._raise_if_failed()

    async def transfer_leadership(self, node_id: NodeId, timeout: float | None = None) -> Leadership:
        """Have this leader resign in favour of another voter, and wait for the next leader.

        >>> (await quorum.transfer_leadership(1)).leader_id  # it leads already
        1

        Raises:
            NotLeader: this node does not lead.
            NotReady: nobody, or somebody else, was elected; the quorum goes on without the transfer.
            UsageError: there is no such voter.
        """
        self._home.check()
        timeout = wait_s(timeout)
        transfer = Transfer(self._node, node_id)
        await within(timeout, self._bridge.change(transfer.is_over), self._transfer_timeout)
        return transfer.result()

    # --- appending ----------------------------------------------------------------------------------------------------

    async def append(self, value: Values, *, atomic: bool = True, timeout: float | None = None) -> Offset:
        """Append one value, or several, and wait until they are on a majority's disks.

        Several are one batch: all or none of them are ever committed, at consecutive offsets. With `atomic=False` they
        may be split into several batches, between which other appends may come to lie.

        >>> first = await quorum.append(b"one")
        >>> await quorum.append([b"two", b"three"], timeout=5) == first + 1
        True

        Returns:
            The offset of the first value.
        Raises:
            NotLeader: another node leads; it is named, with its endpoint. Nothing was appended unless
            `maybe_committed`.
            Overloaded: too much waits already; nothing was appended (with `atomic=False`: waited for instead).
            RecordTooLarge: it does not fit into one batch; nothing was appended.
            AppendTimeout: not committed within `timeout` seconds. It may still commit, as it may if the task is
            cancelled.
        """
        if timeout is not None:
            timeout = wait_s(timeout)  # before anything is appended
        if not atomic:
            return await within(timeout, self._append_parts(as_values(value)), append_timeout)
        self._home.check()
        outcome = self._appends.append(value)
        timer = None if timeout is None else self._loop.call_later(timeout, expire, outcome, timeout)
        try:
            return await outcome
        finally:
            if timer is not None:
                timer.cancel()
            del outcome  # else an error, its traceback and this frame keep each other

    def append_nowait(self, batch: Values) -> Pending:
        """Append and return at once; await the result, now or later, for the first offset.

        >>> pending = [quorum.append_nowait(b"%d" % number) for number in range(3)]
        >>> offsets = [await each for each in pending]
        >>> offsets[2] - offsets[0]
        2

        Raises:
            Overloaded: too much waits already; retry after `retry_after_s`.
            NotLeader, RecordTooLarge: as `append`.
        """
        self._home.check()
        return self._appends.append_nowait(batch)

    def append_each(self, values: Sequence[Buffer]) -> Sequence[Pending]:
        """Append values, each by itself, and return at once: as many `append_nowait`, in one call that costs far less.

        What one of them is refused with is its result's: it raises nothing for that.

        >>> pending = quorum.append_each([b"one", b"two", b"three"])
        >>> offsets = [await each for each in pending]
        >>> offsets[2] - offsets[0]
        2

        Raises:
            ClosedError: nothing was appended.
            UsageError: they are not bytes; nothing was appended.
        """
        self._home.check()
        return self._appends.append_each(values)

    def producer(self, id: str, timeout: float | None = None) -> Producer:
        """A producer whose appends are in the log once, however often they are tried, by whichever process.

        Entering its block takes the name from whoever has it, which hears ProducerFenced from then on. That is an
        append, and takes `timeout` seconds at most (NotReady). NotLeader where another node leads, or, without a
        timeout, none is known.

        >>> async with quorum.producer(id="billing") as producer:
        ...     await producer.append([b"a", b"b"]) > 0
        True
        """
        channel = ProducerChannel(self._append_stamped, self.read_barrier, self._bridge.commit, self._barrier_timeout)
        return Producer(channel, self._node, id, timeout)

    async def read_barrier(self, timeout: float | None = None) -> Offset:
        """Return once this node is known to lead still, with everything committed before this call known to it.

        A reader that has then consumed `committed()` until an item's `next_offset` reaches what is returned reads
        linearizably.

        >>> offset = await quorum.append(b"seen by every later barrier")
        >>> end = await quorum.read_barrier(timeout=5)
        >>> async for item in quorum.committed(from_offset=offset):
        ...     print([record.value for record in item.records])
        ...     if item.next_offset >= end:
        ...         break
        [b'seen by every later barrier']

        Raises:
            NotLeader: another node leads.
            NotReady: no majority answered within `timeout` seconds.
        """
        self._home.check()
        timeout = wait_s(timeout)
        barrier = self._barriers.join()
        if timeout is None:
            return await barrier
        return await within(timeout, barrier, self._barrier_timeout)

    # --- reading ------------------------------------------------------------------------------------------------------

    async def committed(
        self, from_offset: Offset = 0, *, follow: bool = True, progress: bool = False
    ) -> AsyncIterator[Committed]:
        """Committed batches from an offset on, in order, each exactly once; then those to come, as they are committed.

        Works on every node; a follower may be behind. To resume, remember an item's `next_offset`. Control batches are
        left out: where nothing follows them a `Progress`, which has no records, says how far the reader is, so that an
        item reaches what a read barrier returned. `progress=True`: one comes whenever the reader has caught up.
        `follow=False` ends at the high watermark of the moment.

        >>> offset = await quorum.append([b"a", b"b"])
        >>> async for batch in quorum.committed(from_offset=offset + 1, follow=False):
        ...     print([record.value for record in batch.records], batch.next_offset == offset + 2)
        [b'b'] True

        Raises:
            OffsetOutOfRange: records that old are gone. An offset that is not there yet is waited for.
            NotReady: with `follow=False`, and this node has not heard yet what is committed.
        """
        self._home.check()
        reader = CommittedReader(self._node, from_offset, follow=follow, progress=progress)
        while not self._bridge.over:
            for item in await in_own_thread(reader.take) if reader.has_many() else reader.take():
                yield item
            if reader.is_done:
                break
            if reader.is_caught_up:
                await self._bridge.commit(reader.has_more)
            else:
                await asyncio.sleep(0)  # a long log must not hold up the loop
        self._raise_if_failed()

    # --- the end ------------------------------------------------------------------------------------------------------

    async def close(self, timeout: float | None = None) -> None:
        """Stop gracefully: a leader resigns first, and waits until another one is elected. Idempotent.

        It is over within `timeout` seconds, if the disk answers: 3.5 by default, 0 to wait for nobody. Nobody is waited
        for where this node does not lead, or no other voter can be reached. Appends that wait fail with
        `NotLeader(maybe_committed=True)`. Once the loop that it was opened in is closed, it may be closed in any other.

        Raises:
            FatalError: the disk does not answer; the directory stays locked until the process ends.
        """
        if self._is_in_child:
            return
        self._home.check_close()
        grace_s = stop_grace_s(timeout)
        if not self._loop.is_closed():  # else nobody waits for what was gathered
            self._appends.hand_over()
        await asyncio.shield(in_own_thread(self._node.stop, grace_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- inner --------------------------------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """Let go of the node: in a closed loop nobody can close it, so that it ends by itself. While the loop is open
        it may serve others still."""
        handles.leave(self._node, self._loop.is_closed)
        if self._loop.is_closed():
            self._node.request_stop()

    async def _append_stamped(self, attempt: Attempt) -> Offset:
        self._home.check()
        return await self._appends.append_stamped(attempt.batch, attempt.stamp)

    async def _append_parts(self, values: Sequence[Buffer]) -> Offset:
        waiting: list[Outcome] = []
        first: Outcome | None = None
        for part in split(values, self._node.config.batch_bytes_max):
            while True:
                try:
                    outcome = self._appends.append_nowait(part)
                    break
                except Overloaded as error:
                    if waiting:
                        await waiting.pop(0)
                    else:
                        await asyncio.sleep(error.retry_after_s)
            first = first or outcome
            waiting.append(outcome)
        for each in waiting:
            await each
        assert first is not None
        return first.result()

    async def _or_over(self, future: "asyncio.Future[_T]") -> _T:
        """What the replica's thread was asked for, or why it will never answer."""
        over = asyncio.ensure_future(self._bridge.change(future.done))
        try:
            await asyncio.wait((future, over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
        if not future.done():
            self._node.check_open()
        return await future
