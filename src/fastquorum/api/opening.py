"""`fastquorum.open`: what it promises. Imports next to nothing: the rest is loaded when it is awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from fastquorum.opening import Opening, loaded

if TYPE_CHECKING:
    from fastquorum.api.options import OpenOptions, Path
    from fastquorum.api.quorum import Quorum


def open(path: Path, **options: Unpack[OpenOptions]) -> Opening[Quorum]:
    """Open a data directory and run a replica of the quorum in it, in a thread of its own.

    Await it, or enter it with `async with`. An empty (or missing) directory is formatted, unless `create=False`; a
    foreign one is refused. What is refused changes nothing. Cancelled it ends what it has begun first, which may take
    some seconds while a log is recovered. See `OpenOptions` for what may be given.

    >>> async def main():
    ...     async with open(directory, node_id=1) as quorum:  # a quorum of one; voters="1@h1:9093,..." for more
    ...         await quorum.wait_ready(timeout=5)
    ...         return await quorum.append(b"value") >= 0
    >>> asyncio.run(main())
    True

    Raises:
        ConfigError: a setting is unknown or its value cannot be used, or the address to listen on cannot be had.
        DirectoryError: the directory is foreign, in use, read-only or of a newer format, or not formatted (with
            `create=False`).
        CorruptionError: what was synced is damaged.
        FatalError: the disk failed.
    """
    return Opening(_open(path, options))


async def _open(path: Path, options: OpenOptions) -> Quorum:
    module = await loaded("fastquorum.api.quorum")
    quorum: Quorum = await module.open_quorum(path, options)
    return quorum


_open.__qualname__ = open.__qualname__  # which Python names where it was never awaited
