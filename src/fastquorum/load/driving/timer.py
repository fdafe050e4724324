"""A timer for an asyncio loop that is right to the microsecond: asyncio's own are rounded up to a millisecond.

A timerfd that the loop watches. Python has had `os.timerfd_create` since 3.13 only, so the C library is called.
"""

import asyncio
import contextlib
import ctypes
import os
import time
from typing import Final

_CLOCK_MONOTONIC: Final = 1
_NONBLOCK_CLOEXEC: Final = 0o4000 | 0o2000000
_ABSOLUTE: Final = 1


class _Spec(ctypes.Structure):
    """struct itimerspec: interval, then value; seconds and nanoseconds each."""

    _fields_ = [(name, ctypes.c_long) for name in ("interval_s", "interval_ns", "value_s", "value_ns")]


class Timer:
    """For one task of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._c = ctypes.CDLL(None, use_errno=True)
        self._fd = self._c.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._loop = loop
        self._rang = asyncio.Event()
        loop.add_reader(self._fd, self._ring)

    async def until(self, at_ns: int) -> None:
        """Return at this time of the monotonic clock; at once, after other callbacks had a turn, if it has passed."""
        if at_ns <= time.monotonic_ns():
            await asyncio.sleep(0)
            return
        self._rang.clear()
        spec = _Spec(0, 0, at_ns // 1_000_000_000, at_ns % 1_000_000_000)
        if self._c.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(spec), None) < 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        await self._rang.wait()

    def wake(self) -> None:
        """End the wait that there may be. In the loop."""
        self._rang.set()

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)
        self._rang.set()
