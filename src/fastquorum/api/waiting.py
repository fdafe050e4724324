"""Waiting in the event loop for no longer than a caller wants to."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastquorum.api.standing import Failure
from fastquorum.errors import AppendTimeout, NotReady

T = TypeVar("T")


async def within(timeout: float | None, work: Awaitable[T], failure: Failure) -> T:
    """Await it; after `timeout` seconds it is cancelled, and `failure` says what did not come."""
    if timeout is None:
        return await work
    try:
        async with asyncio.timeout(timeout):
            return await work
    except TimeoutError as error:
        if isinstance(error, AppendTimeout | NotReady):
            raise
        raise failure(timeout) from None
