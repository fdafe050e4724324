"""Work that a program does as the broker, one piece at a time; it begins only while the member may act.

A fenced member takes no new work. Earlier work goes on to its end: it may check at any step whether the member was
fenced, and at the end it fails with Fenced rather than count as done, so that no client is answered by a fenced broker.
A member that is fenced and admitted again has another admission: in between another broker may have led. Work that
waits for others would outlive the lease; in an event loop it can be given up at the fence instead.
Source: KIP-343 ("existing network requests will be completed, but new ones will not be accepted"); the draft beside
KIP-500 (a fenced broker does not respond to clients).
"""

import asyncio
from collections.abc import Callable
from typing import Self

from fastquorum.broker.agent import View
from fastquorum.errors import FastQuorumError, Fenced, UsageError
from fastquorum.node.io import handles
from fastquorum.types import NodeId

Admitted = Callable[[int | None], View]
"""Returns the view by which a program may act now, under this epoch if one is named. Fenced, ClosedError."""


class Work:
    """One piece of work, and the token that it is done under. Made by `Membership.serving`."""

    def __init__(self, broker_id: NodeId, admitted: Admitted) -> None:
        self._broker_id = broker_id
        self._admitted = admitted
        self._began: View | None = None
        self._forks = handles.forks()

    @property
    def epoch(self) -> int:
        """The fencing token."""
        return self._as_begun.epoch

    def check(self) -> int:
        """The token, to be handed on right away. As `Membership.check`, but of this one admission.

        Raises:
            Fenced: the member was, since this began, whether or not it may act by now; `maybe_done` is true.
            ClosedError: the membership is over; or the error that ended it.
        """
        began = self._as_begun
        try:
            if self._admitted(began.epoch).admission != began.admission:
                raise Fenced(self._broker_id, began.epoch, "it was fenced since this began")
        except Fenced as error:
            error.maybe_done = True
            raise
        return began.epoch

    @property
    def _as_begun(self) -> View:
        handles.check_forks(self._forks)
        if self._began is None:
            raise UsageError("this work has not begun", "use it as a context manager")
        return self._began

    def _begin(self) -> None:
        self._began = self._admitted(None)


class ThreadWork(Work):
    """For threads: `with`."""

    def __enter__(self) -> Self:
        """Begin. Fenced, ClosedError: nothing may begin now."""
        self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End. Fenced, ClosedError: the work is done, but must not count as done. An error of the block's own goes
        first."""
        if kind is None:
            self.check()


class TaskWork(Work):
    """For tasks: `async with`. It may be given up at the fence."""

    def __init__(self, broker_id: NodeId, admitted: Admitted, under_way: "set[TaskWork]", *, cancel: bool) -> None:
        """Take `under_way`, the set of works whose `look` is called when there is news of the member."""
        super().__init__(broker_id, admitted)
        self._under_way = under_way
        self._is_to_cancel = cancel
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        """The number of cancellation requests of others before."""
        self._given_up: FastQuorumError | None = None

    def look(self) -> None:
        """Give the work up, in the event loop, if it may not go on."""
        if self._task is None or self._given_up is not None:
            return
        try:
            self.check()
        except FastQuorumError as error:
            self._given_up = error
            self._task.cancel()

    async def __aenter__(self) -> Self:
        """Begin. Fenced, ClosedError: nothing may begin now."""
        self._begin()
        if self._is_to_cancel:
            self._task = asyncio.current_task()
            assert self._task is not None, "a coroutine runs in a task"
            self._cancelling = self._task.cancelling()
            self._under_way.add(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        """End as `ThreadWork` does; a cancellation by the fence becomes the Fenced that caused it."""
        self._under_way.discard(self)
        if self._given_up is not None and self._task is not None:
            is_cancelled_by_others = self._task.uncancel() > self._cancelling
            if kind is asyncio.CancelledError and not is_cancelled_by_others:
                raise self._given_up from error
        if kind is None:
            self.check()
