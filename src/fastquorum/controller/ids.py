"""Ids that are drawn, of version 4 and as Kafka draws them. Source: Kafka `Uuid.randomUuid`."""

from typing import Final

from fastquorum.controller.placement import Random
from fastquorum.types import Uuid

_DASH: Final = 62
"""The six bits that a text begins with `-` for (URL-safe base64)."""


def random_id(chance: Random) -> Uuid:
    """None that is reserved, or that looks like an option of a command."""
    while True:
        drawn = bytearray(chance.randrange(1 << 64).to_bytes(8, "big") + chance.randrange(1 << 64).to_bytes(8, "big"))
        drawn[6], drawn[8] = drawn[6] & 0x0F | 0x40, drawn[8] & 0x3F | 0x80
        if drawn[0] >> 2 != _DASH:
            return Uuid(bytes(drawn))
