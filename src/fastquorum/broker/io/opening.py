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
    """Become a broker of the cluster: register with its controllers, and send heartbeats, in a thread of its own.

    Await it, or enter it with `async with`. It does not wait for an answer; `wait_active` returns when this program may
    act. If another process holds the id, the registration waits for its end. See `JoinOptions` for the options, and
    `fastquorum.broker.lifecycle` for the guarantees.

    `start` is called first, with the membership, while that is offline and no controller knows of it: for work that has
    to come before serving, such as recovering a log. If it fails, so does `join`, and nothing is registered. If `join`
    is cancelled, it first ends what it has begun.

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
