"""Unsigned varints: seven bits a byte, low group first (KIP-482). The generated codecs call these past the one-byte
case.
"""

from typing import Final

UVARINT_BYTES_MAX: Final = 5
"""Kafka reads at most 32 bits."""


class Malformed(ValueError):
    """What the codecs raise inside; callers see `WireError`, which adds message, version, field and position."""


def read_uvarint(buffer: "bytes | memoryview", position: int) -> tuple[int, int]:
    """The value at `position` and the position after it.

    Raises IndexError where the bytes end, Malformed beyond 32 bits.
    """
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift == 7 * UVARINT_BYTES_MAX:
            raise Malformed(f"a varint takes more than {UVARINT_BYTES_MAX} bytes")
    if value > 0xFFFFFFFF:
        raise Malformed("a varint exceeds 32 bits")
    return value, position


def uvarint(value: int) -> bytes:
    """`value` as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def uvarint_tail(value: int) -> bytes:
    """The varint of `value` without its first byte, which the encoders write as part of a fixed-size run."""
    return uvarint(value)[1:]
