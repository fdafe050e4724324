"""Ids that are drawn, of version 4 and as Kafka draws them. Source: Kafka `Uuid.randomUuid`."""

from typing import Final

from fastquorum.controller.state.placement import Random
from fastquorum.types import Uuid

_RANDOM: Final = 1 << 64
_DASH: Final = 62
"""The six bits that a text begins with `-` for (URL-safe base64)."""


def random_id(chance: Random) -> Uuid:
    """None that is reserved, or that looks like an option of a command."""
    while True:
        high, low = chance.randrange(_RANDOM), chance.randrange(_RANDOM)
        if high >> 58 != _DASH:
            drawn = (high & ~0xF000 | 0x4000) << 64 | low & (1 << 62) - 1 | 1 << 63
            return bytes.__new__(Uuid, drawn.to_bytes(16, "big"))  # as Uuid's own does, which looks how many they are
