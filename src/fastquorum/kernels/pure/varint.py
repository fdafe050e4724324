"""Zigzag variable-length integers, as they stand inside records (Protocol Buffers' sint32 and sint64)."""

from typing import Final

_MASK_64: Final = 2**64 - 1
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(128))


class VarintError(ValueError):
    """A varint is longer than its type allows, or the bytes end inside it."""


def encode_varint(value: int) -> bytes:
    """A signed integer of at most 64 bits."""
    rest = (value << 1 ^ value >> 63) & _MASK_64
    if rest < 0x80:
        return _ONE_BYTE[rest]
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def varint_size(value: int) -> int:
    """Length of encode_varint(value)."""
    return (((value << 1 ^ value >> 63) & _MASK_64).bit_length() + 6) // 7 or 1


def read_varint(data: memoryview, position: int, end: int, bits: int = 32) -> tuple[int, int]:
    """(value, position after it); VarintError if it does not end before `end` or has more than `bits` bits."""
    if position >= end:
        raise VarintError
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position
    unsigned = byte & 0x7F
    shift = 7
    while True:
        if position >= end or shift >= bits:
            raise VarintError
        byte = data[position]
        position += 1
        unsigned |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if unsigned >> bits:
        raise VarintError
    return unsigned >> 1 ^ -(unsigned & 1), position
