"""Thresholds of anomalies: one window for all that is counted, and how often something must happen in it at least.

Two things are asked of every count. It must reach a fixed least, which is above what rolling restarts and operators
come to. And it must be more than chance would bring at the rate of the rest of the log: a Poisson tail, divided among
all windows and subjects that were looked at (Bonferroni), below `chance`.
"""

from enum import StrEnum
from typing import Final, NamedTuple, Self

from fastquorum.errors import UsageError

MINUTE_MS: Final = 60_000
WINDOW_MINUTES: Final = 30.0
_MINUTES_MIN: Final = 0.1
_MINUTES_MAX: Final = 60.0 * 24 * 7


class Sensitivity(StrEnum):
    """How much is needed for a finding: low, twice as much as normal; high, half as much."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class AnomalySettings(NamedTuple):
    """Thresholds. Least counts are of one window."""

    window_ms: int
    chance: float
    quorum_elections_min: int
    partition_elections_min: int
    """Least elections of one partition."""
    flaps_min: int
    """Least departures of one broker."""
    shrinks_min: int
    """Least shrinks of one partition's ISR."""
    mix_seconds_min: int
    """Least seconds of a window in which records of one type are written: a ninth of all."""
    mix_factor: int
    """Least factor by which a window has more than any other window."""
    gap_factor: float
    """Least factor by which a gap is longer than those between other snapshots."""
    gaps_min: int = 4
    """Least number of other gaps between snapshots that must be known."""

    @classmethod
    def of(cls, window_minutes: float = WINDOW_MINUTES, sensitivity: str = Sensitivity.NORMAL) -> Self:
        """UsageError: no such sensitivity, or a window that is no number of minutes up to a week."""
        if not _MINUTES_MIN <= window_minutes <= _MINUTES_MAX:
            raise UsageError(
                f"a window of {window_minutes} minutes", f"from {_MINUTES_MIN} minutes to a week, {_MINUTES_MAX:.0f}"
            )
        if sensitivity not in list(Sensitivity):
            raise UsageError(f"sensitivity {sensitivity!r}", f"it is one of {', '.join(Sensitivity)}")
        window_ms = round(window_minutes * MINUTE_MS)
        normal = cls(window_ms, 0.01, 6, 20, 4, 10, max(window_ms // 9000, 5), 5, 3.0)
        if sensitivity == Sensitivity.NORMAL:
            return normal
        times, chance, gap = (2.0, 1e-4, 5.0) if sensitivity == Sensitivity.LOW else (0.5, 0.1, 2.0)
        least = {name: max(round(getattr(normal, name) * times), 2) for name in cls._fields if name in _LEAST}
        return normal._replace(chance=chance, gap_factor=gap, **least)


_LEAST: Final = frozenset(
    {
        "quorum_elections_min",
        "partition_elections_min",
        "flaps_min",
        "shrinks_min",
        "mix_seconds_min",
        "mix_factor",
    }
)
