"""Compact lengths and tagged fields, as the Fetch layouts read and write them. Source: KIP-482."""

from typing import Final

from fastquorum.types import TOPIC_NAME

VERSIONS: Final = range(12, 19)
"""Versions of Fetch that have a layout."""
NAMED_TOPIC: Final = bytes([len(TOPIC_NAME) + 1]) + TOPIC_NAME.encode()
"""The only topic, as Fetch 12 says it; later versions say its id."""


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(frame: bytes, at: int) -> tuple[int, int]:
    """The value, and where it ends. IndexError if the frame ends before."""
    value = shift = 0
    while True:
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def tagged(tag: int, payload: bytes) -> bytes:
    """A tagged field; the tag is below 128."""
    return bytes((tag,)) + uvarint(len(payload)) + payload
