"""Record batches made wrong, and compressed data that grows."""

import functools
import gzip
import random
import struct
from typing import Final

from fastquorum.kernels import Compression
from tests.interop.faults import CRC, KERNELS, altered, batch

from .values import edge, some_bytes

HEADER: Final[dict[str, tuple[int, str]]] = {
    "base offset": (0, "q"),
    "length": (8, "i"),
    "leader epoch": (12, "i"),
    "magic": (16, "b"),
    "attributes": (21, "h"),
    "last offset delta": (23, "i"),
    "base timestamp": (27, "q"),
    "max timestamp": (35, "q"),
    "producer id": (43, "q"),
    "producer epoch": (51, "h"),
    "base sequence": (53, "i"),
    "count": (57, "i"),
}
RECORDS: Final = 61
BOMBS: Final = (1 << 20, 7 << 20, 80 << 20)
"""What a bomb's records come to: small, below what one batch may hold, beyond what may be unpacked."""


def mutated(records: bytes, chance: random.Random) -> bytes:
    """A batch that is wrong in one place or two; half of them with their checksum made right again."""
    if len(records) <= RECORDS or chance.random() < 0.02:
        return bomb(chance.choice(BOMBS)) if chance.random() < 0.2 else batch(compression=chance.choice([*Compression]))
    changed = records
    for _ in range(chance.choice((1, 1, 2))):
        if len(changed) > RECORDS:
            changed = _edit(changed, chance)
    return sealed(changed) if chance.random() < 0.6 else changed


def sealed(records: bytes) -> bytes:
    """With the checksum that its bytes have."""
    return altered(records) if len(records) > RECORDS else records


def _edit(records: bytes, chance: random.Random) -> bytes:
    data = bytearray(records)
    match chance.randrange(7):
        case 0 | 1:
            at, code = chance.choice([*HEADER.values()])
            size = struct.calcsize(code)
            data[at : at + size] = edge(data[at : at + size], chance)
        case 2:
            data[CRC] = chance.randbytes(4)
        case 3:  # another codec than the records are in
            data[22] = chance.randrange(8) | data[22] & 0xF8
        case 4:
            at = chance.randrange(min(RECORDS, len(data) - 1), len(data))
            data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1 << chance.randrange(8)))
        case 5:  # longer or shorter, its own length set right
            data[RECORDS:] = data[RECORDS : chance.randrange(RECORDS, len(data) + 1)] + some_bytes(chance, 20)
            data[8:12] = struct.pack(">i", len(data) - 12)
        case _:
            return records * 2 if chance.random() < 0.5 else records[: chance.randrange(len(records))]
    return bytes(data)


@functools.cache
def bomb(size: int) -> bytes:
    """One good record of zeros, by gzip; a batch of a thousandth of that size."""
    varint = _varint
    body = b"\0" + varint(0) + varint(0) + varint(-1) + varint(size) + bytes(size) + varint(0)
    packed = gzip.compress(varint(len(body)) + body, 9, mtime=0)
    header = bytearray(batch(b"x", compression=Compression.GZIP)[:RECORDS])
    header[8:12] = struct.pack(">i", RECORDS - 12 + len(packed))
    return sealed(bytes(header) + packed)


def _varint(value: int) -> bytes:
    """Zigzag, as records have it."""
    raw, out = (value << 1) ^ (value >> 63), bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes((*out, raw))


def fingerprint(records: bytes) -> bytes:
    """What the leader leaves as it is: all but offset, length, epoch, magic."""
    return KERNELS.crc32c(records[21:]).to_bytes(4, "big") + records[17:21] + len(records).to_bytes(4, "big")
