"""`fastquorum.broker.join`: what it promises. Imports next to nothing: the rest is loaded when it is awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Unpack

from fastquorum.opening import Opening, loaded

if TYPE_CHECKING:
    from fastquorum.broker.io.membership import Membership
    from fastquorum.broker.options import JoinOptions


def join(
    *, start: Callable[[Membership], Awaitable[object]] | None = None, **options: Unpack[JoinOptions]
) -> Opening[Membership]:
    """Become a broker of the cluster: register with its controllers, and beat from now on, in a thread of its own.

    Await it, or enter it with `async with`. It waits for no answer; `wait_active` says when this program may act.
    Another process may hold the id: then that is waited for. See `JoinOptions` for what may be given, and
    `fastquorum.broker.lifecycle` for what is guaranteed.

    `start` is called first, with the membership, while that is offline and no controller hears of it: for what the
    program has to do before it can serve, as recovering its log. If it fails, so does this, and nothing is registered.
    Cancelled it ends what it has begun first.

    >>> async def main():
    ...     async with join(bootstrap=bootstrap, broker_id=7, cluster_id=cluster_id) as membership:
    ...         epoch = await membership.wait_active(timeout=20)
    ...         return membership.check(epoch) == epoch
    >>> asyncio.run(main())
    True

    Raises:
        ConfigError: an option is missing, unknown, or cannot be used.
        DirectoryError, CorruptionError, StorageFailed, ImageFailed: `metadata_dir` cannot be used, or what it holds.
    """
    return Opening(_join(start, options))


async def _join(start: Callable[[Membership], Awaitable[object]] | None, options: JoinOptions) -> Membership:
    module = await loaded("fastquorum.broker.io.membership")
    membership: Membership = await module.open_membership(start, options)
    return membership


_join.__qualname__ = join.__qualname__  # which Python names where it was never awaited
