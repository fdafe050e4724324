"""The simulation's only random numbers: SplitMix64. Small, fast in Python, and the same on every machine.

Satisfies `raft.ports.Random`. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
"""

from collections.abc import Sequence
from typing import Final, TypeVar

_MASK: Final = (1 << 64) - 1
_GAMMA: Final = 0x9E3779B97F4A7C15
MILLION: Final = 1_000_000

T = TypeVar("T")


class Prng:
    """A stream of pseudo-random numbers that its seed decides."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """Return 64 random bits."""
        self._state = state = (self._state + _GAMMA) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return state ^ (state >> 31)

    def randrange(self, stop: int, /) -> int:
        """Return n with 0 <= n < stop."""
        return (self.bits() * stop) >> 64

    def between(self, low: int, high: int) -> int:
        """Return n with low <= n <= high."""
        return low + self.randrange(high - low + 1)

    def chance(self, millionths: int) -> bool:
        """Return True this often in a million; no number is drawn for 0."""
        return millionths > 0 and self.randrange(MILLION) < millionths

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.randrange(len(choices))]

    def heavy_tail(self, typical: int, largest: int) -> int:
        """Return a number mostly around `typical`, now and then up to `largest`."""
        value = typical // 2 + self.randrange(typical + 1)
        while value < largest and self.randrange(8) == 0:
            value *= 2 + self.randrange(4)
        return min(value, largest)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        rest, result = list(items), []
        while rest:
            result.append(rest.pop(self.randrange(len(rest))))
        return result

    def fork(self) -> "Prng":
        """Return an independent stream: the draws of one part do not disturb the others."""
        return Prng(self.bits())
