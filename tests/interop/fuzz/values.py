"""Values at the edges, where decoders are wrong."""

import random
from typing import Final

from fastquorum.wire.codec.varint import uvarint

_EDGES: Final = (0, 1, 2, -1, -2, 0x7F, 0xFF)
_WIDTHS: Final = (1, 2, 4, 8)
TEXTS: Final = (b"", b"\0", b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"../../etc", b"a/b", b"x" * 300, b"x" * 32_767)
OVERLONG: Final = (b"\x80\x00", b"\x81\x80\x00", b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x1f", b"\x80" * 12)
"""Varints that nobody would write."""


def edge(data: bytes | bytearray, chance: random.Random) -> bytes:
    """Another big-endian number as wide, often one at an edge."""
    bits = 8 * len(data)
    if len(data) not in _WIDTHS:
        return chance.randbytes(len(data)) if chance.random() < 0.5 else bytes(len(data))
    old = int.from_bytes(data, "big")
    number = chance.choice(
        (*_EDGES, old + 1, old - 1, old ^ 1 << chance.randrange(bits), chance.getrandbits(bits))
        if chance.random() < 0.7
        else (1 << bits - 1, (1 << bits - 1) - 1, 1 << bits // 2)
    )
    return (number & (1 << bits) - 1).to_bytes(len(data), "big")


def edge_varint(data: bytes, chance: random.Random) -> bytes:
    """Another unsigned varint, in order or not."""
    if chance.random() < 0.3:
        return chance.choice(OVERLONG)
    old = data[0] & 0x7F
    return uvarint(
        chance.choice((0, 1, old + 1, max(old - 1, 0), 127, 128, 16_384, 10**6, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1))
    )


def some_bytes(chance: random.Random, size_max: int) -> bytes:
    return chance.randbytes(chance.randrange(size_max + 1))
