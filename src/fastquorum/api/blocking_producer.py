"""The blocking twin of `fastquorum.Producer`."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

from fastquorum.api.blocking import Watch, left_s
from fastquorum.api.producer import Attempt, ProducerCore, committed_end
from fastquorum.api.standing import Failure, append_timeout
from fastquorum.api.values import Values, copied
from fastquorum.errors import NotLeader, Overloaded, ProducerFenced, UnknownProducer
from fastquorum.node.io.running import RunningNode
from fastquorum.timeouts import wait_s
from fastquorum.types import Offset


class ReadBarrier(NamedTuple):
    """A quorum's read barrier, and what is said of one that does not come in time."""

    wait: Callable[[float | None], Offset]
    """Wait for it, so many seconds at most."""
    failure: Failure


class Producer(ProducerCore):
    """Made by `Quorum.producer`; use it in a `with` block, where that quorum leads. As the asyncio one.

    >>> with quorum.producer(id="orders") as producer:
    ...     first = producer.append(b"one", timeout=5)
    ...     again = producer.append(b"one", sequence=0)  # the same append: it is there already
    ...     print(again == first, producer.next_sequence)
    True 1
    """

    def __init__(
        self, barrier: ReadBarrier, node: RunningNode, watch: Watch, name: str, timeout: float | None = None
    ) -> None:
        super().__init__(node, name, timeout)
        self._barrier = barrier
        self._watch = watch
        self._turn = threading.Lock()

    def append(self, value: Values, *, sequence: int | None = None, timeout: float | None = None) -> Offset:
        """Append one value, or several in one batch, exactly once; see `fastquorum.Producer.append`."""
        timeout = wait_s(timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._turn.acquire(timeout=-1 if timeout is None else timeout):
            assert timeout is not None
            raise append_timeout(timeout)
        try:
            return self._append(value, sequence, deadline, timeout or 0.0)
        finally:
            self._turn.release()

    def _append(self, value: Values, sequence: int | None, deadline: float | None, timeout: float) -> Offset:
        values = copied(value)
        if self._must_settle(values, sequence):
            self._settle(deadline)
        attempt = self._begin(values, sequence)
        while True:
            try:
                with self._sending(attempt):
                    offset = self._append_stamped(attempt, deadline)
                    if offset is None:
                        raise append_timeout(timeout)
                    return offset
            except (NotLeader, Overloaded) as error:
                self._pause(error, deadline)

    def _append_stamped(self, attempt: Attempt, deadline: float | None) -> Offset | None:
        """None: the time is over, and its fate is open."""
        result = self._node.thread_callers.append_stamped(attempt.batch, attempt.stamp)
        return result.result() if result.wait(left_s(deadline)) else None

    def _settle(self, deadline: float | None) -> None:
        """Learn what is committed, and that nothing else of the past ever will be."""
        while True:
            try:
                self._barrier.wait(left_s(deadline))
                state = self._state()
            except (NotLeader, Overloaded) as error:
                self._pause(error, deadline)
                continue
            end_offset = committed_end(state)
            self._watch.commit(partial(self._is_decided, end_offset), left_s(deadline))
            if self._has_learned(state, end_offset):
                return
            if deadline is not None and time.monotonic() > deadline:
                raise self._barrier.failure(self._timeout or 0.0)

    def _pause(self, error: NotLeader | Overloaded, deadline: float | None) -> None:
        pause_s = self._pause_s(error)
        if deadline is not None and time.monotonic() + pause_s > deadline:
            raise error
        time.sleep(pause_s)

    def _take_name(self, deadline: float | None) -> None:
        """Fence whoever has it; what it appended is committed then, or never will be."""
        attempt: Attempt | None = None
        while True:
            try:
                attempt = attempt or self._fence()
                if self._append_stamped(attempt, deadline) is None:
                    raise self._barrier.failure(self._timeout or 0.0)
                self._learn(self._state())
            except (ProducerFenced, UnknownProducer):
                attempt = None  # another one was faster, or the name was forgotten meanwhile
            except (NotLeader, Overloaded) as error:
                self._pause(error, deadline)
            else:
                return

    def __enter__(self) -> Self:
        self._take_name(None if self._timeout is None else time.monotonic() + self._timeout)
        self._is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held: the producer lives in the log."""
        self._is_open = False
