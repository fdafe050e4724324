"""The two clocks: a monotonic one that everything is decided by, and the wall clock that only stamps records."""

from time import monotonic_ns, time_ns

from fastquorum.types import Micros


def now_us() -> Micros:
    """Microseconds of CLOCK_MONOTONIC. It stands still while the machine sleeps; it never jumps."""
    return monotonic_ns() // 1_000


def wall_clock_ms() -> int:
    """Milliseconds since 1970: for timestamps only."""
    return time_ns() // 1_000_000
