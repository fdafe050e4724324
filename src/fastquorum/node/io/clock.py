"""The two clocks: one that never jumps, which everything is decided by, and the wall clock, which stamps records."""

from time import CLOCK_BOOTTIME, clock_gettime_ns, time_ns

from fastquorum.types import Micros


def now_us() -> Micros:
    """Microseconds of CLOCK_BOOTTIME, as the native reactor counts them: it never jumps, and goes on while the process
    is stopped or the machine sleeps.

    A leader that slept must not take what it heard before for recent, nor a member its lease (`fastquorum.lease`). A
    virtual machine that is frozen by its host may stand still as a whole, and its clocks with it: then only the fencing
    token helps.
    """
    return now_ns() // 1_000


def now_ns() -> int:
    """The same in nanoseconds."""
    return clock_gettime_ns(CLOCK_BOOTTIME)


def wall_clock_ms() -> int:
    """Milliseconds since 1970: for timestamps, and for what is compared with them."""
    return time_ns() // 1_000_000
