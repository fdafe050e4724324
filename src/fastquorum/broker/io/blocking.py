"""The blocking face: the same names, the same errors, for threads. No event loop inside."""

import inspect
from collections.abc import Callable, Iterator
from typing import Self, Unpack

from fastquorum.broker.agent import View
from fastquorum.broker.io.holding import Holding, begin, check_start
from fastquorum.broker.io.work import ThreadWork
from fastquorum.broker.options import JoinOptions
from fastquorum.errors import ConfigError
from fastquorum.timeouts import wait_s


def join(*, start: Callable[["Membership"], object] | None = None, **options: Unpack[JoinOptions]) -> "Membership":
    """Become a broker of the cluster, once `start` is done. As `fastquorum.broker.join`.

    >>> with join(bootstrap=bootstrap, broker_id=7, cluster_id=cluster_id) as membership:
    ...     epoch = membership.wait_active(timeout=20)
    ...     membership.check(epoch) == epoch
    True
    """
    check_start(start)
    member = begin(options)
    membership = Membership(member)
    if start is not None:
        try:
            _check_not_awaited(start(membership))
        except BaseException:
            member.abort()
            raise
    member.register()
    return membership


def _check_not_awaited(returned: object) -> None:
    """Raise ConfigError if `start` returned an awaitable: it would never be awaited, and nothing would be recovered."""
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise ConfigError("is an `async def`", "give a plain function here, or use fastquorum.broker.join", "start")


class Membership(Holding):
    """A broker's place in the cluster, for any thread. Made by `join`; see `fastquorum.broker.Membership`."""

    def wait_active(self, timeout: float | None = None) -> int:
        """Wait until this program may act; the epoch to act under. NotAdmitted: not within `timeout` seconds.

        >>> membership.wait_active(timeout=20) == membership.epoch
        True
        """
        timeout = wait_s(timeout)
        if not self._until(lambda: self.is_active, timeout):
            assert timeout is not None
            raise self._not_admitted(timeout)
        return self.check()

    def serving(self) -> ThreadWork:
        """Begin a piece of work as the broker: the block begins only if this program may act.

        A fence does not interrupt it, but `check` and leaving the block raise Fenced then: it must not count as done.

        >>> with membership.serving() as work:
        ...     work.check() == work.epoch == membership.epoch
        True
        """
        return ThreadWork(self.broker_id, self._admitted)

    def changes(self) -> Iterator[View]:
        """Yield the state, now and after every change; block between changes. Latest wins.

        >>> next(membership.changes()).epoch == membership.epoch
        True
        """
        last: View | None = None
        while True:
            now, is_over = self._member.view, self._member.is_over
            if last is None or now.is_news_after(last):
                last = now
                yield now
            elif is_over:
                break
            else:
                self._until(lambda seen=now: self._member.view.is_news_after(seen), None)  # type: ignore[misc]
        self._raise_if_failed()

    def close(self, timeout: float | None = None) -> None:
        """Go in good order, within `timeout` seconds: 5 by default. Idempotent."""
        if self._is_in_child:
            return
        self.request_stop(timeout)
        self._member.join(self._whole(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _until(self, is_done: Callable[[], bool], timeout: float | None) -> bool:
        """Wait for is_done, or the end of the membership; False if the time ran out first."""
        member = self._member
        with member.changed:
            return member.changed.wait_for(lambda: member.is_over or is_done(), timeout)
