"""The clock that leases are counted by."""

from time import CLOCK_BOOTTIME, clock_gettime_ns

from fastquorum.types import Micros


def now_us() -> Micros:
    """Microseconds of CLOCK_BOOTTIME: it never jumps, and goes on while the process is stopped or the machine sleeps.

    A virtual machine that is frozen by its host may stand still as a whole, and its clocks with it: then only the
    fencing token helps.
    """
    return clock_gettime_ns(CLOCK_BOOTTIME) // 1_000
