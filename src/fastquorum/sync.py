"""The blocking twin of the asyncio API: the same names, the same errors, for threads. No event loop inside.

Every method may be called from any thread, and from several at once.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Self, Unpack

from fastquorum.api.blocking import Watch, left_s
from fastquorum.api.blocking_producer import Producer, ReadBarrier
from fastquorum.api.committed import Committed, CommittedReader
from fastquorum.api.description import QuorumDescription, description_of
from fastquorum.api.options import OpenOptions, Path, settings_of
from fastquorum.api.standing import BARRIER_RETRY_S, QuorumHandle, Transfer, start_logged, stop_grace_s
from fastquorum.api.values import Values, as_values, each_of, split
from fastquorum.broker.io.blocking import Membership, join
from fastquorum.errors import NotLeader, Overloaded
from fastquorum.kernels import Buffer
from fastquorum.node.io.callers.port import Pending
from fastquorum.node.io.observing import Leadership
from fastquorum.node.io.running import RunningNode
from fastquorum.node.metrics import NodeMetrics
from fastquorum.timeouts import wait_s
from fastquorum.types import NodeId, Offset


def open(path: Path, **options: Unpack[OpenOptions]) -> "Quorum":
    """Open a data directory and run a replica of the quorum in it, in a thread of its own. As `fastquorum.open`.

    >>> with fastquorum.sync.open(directory, node_id=1) as quorum:
    ...     leadership = quorum.wait_ready(timeout=5)
    ...     quorum.append(b"value") >= 0
    True
    """
    watch = Watch()
    return Quorum(start_logged(settings_of(path, options), watch), watch)


class Quorum(QuorumHandle):
    """One node of a quorum, for threads. Made by `open`; see `fastquorum.Quorum` for the details of each method."""

    def __init__(self, node: RunningNode, watch: Watch) -> None:
        super().__init__(node)
        self._watch = watch
        watch.watch_commit = node.watch_commit

    # --- being ready, and who leads -----------------------------------------------------------------------------------

    def describe(self) -> QuorumDescription:
        """Everything this node knows about the quorum, at one moment.

        >>> quorum.describe().role
        'leader'
        """
        node, watch = self._node, self._watch
        found: list[QuorumDescription] = []

        def done(*state: object) -> None:
            found.append(description_of(node, *state))  # type: ignore[arg-type]
            watch.on_ready()

        node.describe(done)
        watch.change(lambda: bool(found))
        if not found:
            node.check_open()
        return found[0]

    def metrics(self) -> NodeMetrics:
        """This node's numbers, at one moment: what /metrics tells, for an exporter of your own.

        >>> quorum.metrics().voter_count
        1
        """
        node, watch = self._node, self._watch
        node.check_open()
        found: list[NodeMetrics] = []

        def done(numbers: NodeMetrics) -> None:
            found.append(numbers)
            watch.on_ready()

        node.measure(done)
        watch.change(lambda: bool(found))
        if not found:
            node.check_open()
        return found[0]

    def wait_ready(self, timeout: float | None = None) -> Leadership:
        """Wait until a leader is known and the high watermark is valid in its epoch. NotReady: not in time.

        >>> quorum.wait_ready(timeout=5).leader_id
        1
        """
        timeout, node = wait_s(timeout), self._node
        node.check_open()
        if not self._watch.change(lambda: node.is_ready, timeout):
            assert timeout is not None
            raise self._not_ready(timeout)
        if not node.is_ready:
            node.check_open()
        return node.leadership

    def leadership(self) -> Iterator[Leadership]:
        """Yield the leadership now and after every change; blocks between changes. Latest wins.

        >>> next(quorum.leadership()).is_self
        True
        """
        node = self._node
        last: Leadership | None = None
        while not self._watch.over:
            now = node.leadership
            if now.epoch >= 0 and now != last:
                last = now
                yield now
            else:
                self._watch.change(lambda seen=last: node.leadership != seen and node.leadership.epoch >= 0)  # type: ignore[misc]
        self._raise_if_failed()

    def transfer_leadership(self, node_id: NodeId, timeout: float | None = None) -> Leadership:
        """Have this leader resign in favour of another voter. NotLeader, UsageError; NotReady: it was not elected in
        time.

        >>> quorum.transfer_leadership(1).leader_id  # it leads already
        1
        """
        timeout = wait_s(timeout)
        transfer = Transfer(self._node, node_id)
        if not self._watch.change(transfer.is_over, timeout):
            assert timeout is not None
            raise self._transfer_timeout(timeout)
        return transfer.result()

    # --- appending ----------------------------------------------------------------------------------------------------

    def append(self, value: Values, *, atomic: bool = True, timeout: float | None = None) -> Offset:
        """Append one value, or several in one batch, and wait until they are on a majority's disks.

        >>> first = quorum.append(b"one")
        >>> quorum.append([b"two", b"three"], timeout=5) == first + 1
        True

        Raises NotLeader, Overloaded, RecordTooLarge, AppendTimeout (it may still commit).
        """
        if timeout is not None:
            timeout = wait_s(timeout)  # before anything is appended
        if not atomic:
            return self._append_parts(as_values(value), timeout)
        values = value if value.__class__ is bytes else as_values(value)
        return self._node.thread_callers.append(values, waits=True).result(timeout)

    def append_nowait(self, batch: Values) -> Pending:
        """Append and return at once; ask for the result later. Raises NotLeader, Overloaded, RecordTooLarge.

        >>> pending = [quorum.append_nowait(b"%d" % number) for number in range(3)]
        >>> offsets = [each.result(timeout=5) for each in pending]
        >>> offsets[2] - offsets[0]
        2
        """
        values = batch if batch.__class__ is bytes else as_values(batch)
        return self._node.thread_callers.append(values, waits=False)

    def append_each(self, values: Sequence[Buffer]) -> Sequence[Pending]:
        """Append values, each by itself, and return at once: as many `append_nowait`, in one call that costs far less.
        What one of them is refused with is its result's. Raises ClosedError.

        >>> pending = quorum.append_each([b"one", b"two", b"three"])
        >>> offsets = [each.result(timeout=5) for each in pending]
        >>> offsets[2] - offsets[0]
        2
        """
        return self._node.thread_callers.append_each(each_of(values))

    def producer(self, id: str, timeout: float | None = None) -> Producer:
        """A producer whose appends are in the log once, however often they are tried, by whichever process.

        Entering its block takes the name from its present holder, which gets ProducerFenced from then on. That is an
        append, and takes `timeout` seconds at most (NotReady). NotLeader where another node leads, or, without a
        timeout, none is known.

        >>> with quorum.producer(id="billing") as producer:
        ...     producer.append([b"a", b"b"]) > 0
        True
        """
        barrier = ReadBarrier(self.read_barrier, self._barrier_timeout)
        return Producer(barrier, self._node, self._watch, id, timeout)

    def read_barrier(self, timeout: float | None = None) -> Offset:
        """Return once this node is known to lead still, with everything committed before this call known to it.

        >>> offset = quorum.append(b"seen by every later barrier")
        >>> end = quorum.read_barrier(timeout=5)
        >>> for item in quorum.committed(from_offset=offset):
        ...     print([record.value for record in item.records])
        ...     if item.next_offset >= end:
        ...         break
        [b'seen by every later barrier']

        Raises NotLeader; NotReady: no majority answered within `timeout` seconds.
        """
        timeout = wait_s(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                waiting = self._node.thread_callers.begin_barrier()
            except NotLeader as error:
                if error.leader_id != self.node_id or (deadline is not None and time.monotonic() > deadline):
                    raise
                time.sleep(BARRIER_RETRY_S)
                continue
            if not waiting.wait(left_s(deadline)):
                assert timeout is not None
                raise self._barrier_timeout(timeout)
            return waiting.result()

    # --- reading ------------------------------------------------------------------------------------------------------

    def committed(self, from_offset: Offset = 0, *, follow: bool = True, progress: bool = False) -> Iterator[Committed]:
        """Committed batches from an offset on, in order; blocks for those to come, unless `follow=False`.

        >>> offset = quorum.append([b"a", b"b"])
        >>> for batch in quorum.committed(from_offset=offset + 1, follow=False):
        ...     print([record.value for record in batch.records], batch.next_offset == offset + 2)
        [b'b'] True

        Raises OffsetOutOfRange where the log begins behind it; NotReady with `follow=False`, where this node has not
        heard yet what is committed.
        """
        reader = CommittedReader(self._node, from_offset, follow=follow, progress=progress)
        while not self._watch.over:
            yield from reader.take()
            if reader.is_done:
                break
            if reader.is_caught_up:
                self._watch.commit(reader.has_more)
        self._raise_if_failed()

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self, timeout: float | None = None) -> None:
        """Stop gracefully, within `timeout` seconds: 3.5 by default, 0 not to wait. Idempotent.

        As `fastquorum.Quorum.close`.
        """
        self._node.stop(stop_grace_s(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inner --------------------------------------------------------------------------------------------------------

    def _append_parts(self, values: Sequence[Buffer], timeout: float | None) -> Offset:
        deadline = None if timeout is None else time.monotonic() + timeout
        waiting: list[Pending] = []
        unsettled = 0
        for part in split(values, self._node.config.batch_bytes_max):
            while True:
                try:
                    waiting.append(self.append_nowait(part))
                    break
                except Overloaded as error:
                    if deadline is not None and time.monotonic() > deadline:
                        raise
                    if unsettled < len(waiting):
                        waiting[unsettled].result(left_s(deadline))
                        unsettled += 1
                    else:
                        time.sleep(error.retry_after_s)
        for each in waiting[unsettled:]:
            each.result(left_s(deadline))
        return waiting[0].result()


__all__ = ["Membership", "Pending", "Quorum", "join", "open"]
