"""The asyncio face: the `Membership` that `fastquorum.broker.join` begins."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Self

from fastquorum.broker.agent import View
from fastquorum.broker.io.holding import Holding, begin, check_start
from fastquorum.broker.io.running import RunningMember
from fastquorum.broker.io.work import TaskWork
from fastquorum.broker.options import JoinOptions
from fastquorum.errors import ConfigError
from fastquorum.loops import HomeLoop, in_own_thread
from fastquorum.opening import begun
from fastquorum.timeouts import wait_s


async def open_membership(
    start: Callable[["Membership"], Awaitable[object]] | None, options: JoinOptions
) -> "Membership":
    """See `fastquorum.broker.join`."""
    check_start(start)
    loop = asyncio.get_running_loop()
    member = await begun(lambda: begin(options), RunningMember.abort)  # it may read what was kept: not on the loop
    membership = Membership(member, loop)
    if start is not None:
        try:
            returned = start(membership)
            if not inspect.isawaitable(returned):
                raise ConfigError(
                    "is a plain function", "give an `async def` here, or use fastquorum.sync.join", "start"
                )
            await returned
        except BaseException:
            await in_own_thread(member.abort)
            raise
    member.register()
    return membership


class Membership(Holding):
    """A broker's place in the cluster, made by `join`. Its loop is where `serving`, and what is awaited, are used."""

    def __init__(self, member: RunningMember, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(member)
        self._home = HomeLoop("membership", loop)
        self._waiters: list[asyncio.Future[None]] = []
        self._under_way: set[TaskWork] = set()
        """The work that is given up at a fence."""
        self._is_waking = False
        member.listen(self._wake)

    async def wait_active(self, timeout: float | None = None) -> int:
        """Wait until this program may act; the epoch to act under.

        >>> await membership.wait_active(timeout=20) == membership.epoch
        True

        Raises:
            NotAdmitted: not within `timeout` seconds, and why; it goes on trying.
            RegistrationRefused, ClosedError, FatalError: it never will be.
        """
        self._home.check()
        timeout = wait_s(timeout)
        try:
            async with asyncio.timeout(timeout):
                await self._until(lambda: self.is_active)
        except TimeoutError:
            assert timeout is not None
            raise self._not_admitted(timeout) from None
        return self.check()

    def serving(self, *, cancel: bool = False) -> TaskWork:
        """Begin a piece of work as the broker: the block begins only if this program may act.

        A fence does not interrupt it, but leaving the block raises Fenced then: it must not count as done.
        With `cancel` the block is cancelled at the fence, and Fenced raised in its place.

        >>> epoch = await membership.wait_active(timeout=20)
        >>> async with membership.serving() as work:
        ...     work.check() == work.epoch == epoch
        True
        """
        self._home.check()
        return TaskWork(self.broker_id, self._admitted, self._under_way, cancel=cancel)

    async def changes(self) -> AsyncIterator[View]:
        """Yield the state, now and after every change of it or of the metadata. Latest wins: a slow reader misses
        what is over already.

        >>> async for now in membership.changes():
        ...     if now.state == "online":
        ...         break
        """
        self._home.check()
        last: View | None = None
        while True:
            now, is_over = self._member.view, self._member.is_over
            if last is None or now.is_news_after(last):
                last = now
                yield now
            elif is_over:
                break
            else:
                await self._until(lambda seen=now: self._member.view.is_news_after(seen))  # type: ignore[misc]
        self._raise_if_failed()

    async def close(self, timeout: float | None = None) -> None:
        """Stop in good order: the controller moves this broker's leads away, and lets it stop, or `timeout` seconds
        pass (5 by default).

        It may act until then. Idempotent; it goes on if this is cancelled. Once its loop is closed any other will do.
        """
        if self._is_in_child:
            return
        self._home.check_close()
        self.request_stop(timeout)
        if not self._home.loop.is_closed():
            await self._until(lambda: False)
        await in_own_thread(self._member.join, self._whole(timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- inner --------------------------------------------------------------------------------------------------------

    async def _until(self, is_done: Callable[[], bool]) -> None:
        """Return once is_done, which news may bring about, or when the membership is over."""
        while True:
            # First the future, then the look: whatever happens after the look finds the future.
            future = self._home.loop.create_future()
            self._waiters.append(future)
            try:
                if self._member.is_over or is_done():
                    return
                await future
            finally:
                if future in self._waiters:
                    self._waiters.remove(future)

    def _wake(self) -> None:
        """Wake the loop, on the member's thread."""
        if self._is_waking:
            return
        self._is_waking = True
        with contextlib.suppress(RuntimeError):  # the loop was closed first: nobody is left who could be told
            self._home.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_waking = False  # before looking: what comes later wakes again
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)
        for work in tuple(self._under_way):
            work.look()
