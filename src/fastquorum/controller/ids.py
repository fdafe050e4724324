"""Random ids of version 4, as Kafka draws them. Source: Kafka `Uuid.randomUuid`."""

from typing import Final

from fastquorum.controller.state.placement import PlacementRandom
from fastquorum.types import Uuid

_RANDOM: Final = 1 << 64
_DASH: Final = 62
"""The first six bits of an id whose text begins with `-` (URL-safe base64)."""


def random_id(chance: PlacementRandom) -> Uuid:
    """Return a random id that is not reserved, and does not look like a command's option."""
    while True:
        high, low = chance.randrange(_RANDOM), chance.randrange(_RANDOM)
        if high >> 58 != _DASH:
            drawn = (high & ~0xF000 | 0x4000) << 64 | low & (1 << 62) - 1 | 1 << 63
            return bytes.__new__(Uuid, drawn.to_bytes(16, "big"))  # as Uuid's own does, which looks how many they are
