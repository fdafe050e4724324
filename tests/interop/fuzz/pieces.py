"""A message as the pieces it is written in - values, lengths, counts, tags - so that one of them can be made wrong.

A second encoder, and a slow one: the product's own cannot be made to lie about a length.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from fastquorum.wire import Message, Struct
from fastquorum.wire.codec.varint import uvarint
from fastquorum.wire.types import Field, Shape, WireType


class Piece(NamedTuple):
    """`kind`: fixed (a value), size (an int16 or int32 length or count), usize (the same as a varint: one more than
    it), tag (a varint of the tag section), data (a string's or the like)."""

    kind: str
    data: bytes


def pieces(message: Message, version: int) -> list[Piece]:
    """In writing order; joined, they are the message."""
    return list(_struct(message, version, type(message).__wire__.flexible.has(version)))


def _struct(value: Struct, version: int, flexible: bool) -> Iterator[Piece]:
    tagged = []
    for each in type(value).__wire__.fields:
        if each.versions.has(version):
            if each.is_tagged(version):
                tagged.append(each)
            else:
                yield from _field(getattr(value, each.name), each, version, flexible)
    if not flexible:
        return
    entries = {tag: [Piece("data", data)] for tag, data in value.unknown_tags}
    for each in tagged:
        inner = getattr(value, each.name)
        if inner != each.fresh_default():
            entries[each.tag] = list(_field(inner, each, version, flexible))
    yield Piece("tag", uvarint(len(entries)))
    for tag, parts in sorted(entries.items()):
        yield Piece("tag", uvarint(tag))
        yield Piece("tag", uvarint(sum(len(part.data) for part in parts)))
        yield from parts


def _field(value: Any, each: Field, version: int, flexible: bool) -> Iterator[Piece]:
    return _value(value, each.type, version, each.is_nullable(version), flexible and each.flexible)


def _value(value: Any, wire_type: WireType[Any], version: int, nullable: bool, compact: bool) -> Iterator[Piece]:
    match wire_type.shape:
        case Shape.FIXED:
            yield Piece("fixed", struct.pack(f">{wire_type.code}", value))
        case Shape.STRUCT:
            if nullable:
                yield Piece("fixed", b"\xff" if value is None else b"\x01")
            if value is not None:
                yield from _struct(value, version, compact)
        case Shape.ARRAY:
            yield _size(None if value is None else len(value), "i", compact)
            assert wire_type.element is not None
            for item in value or ():
                yield from _value(item, wire_type.element, version, False, compact)
        case shape:
            data = value.encode() if isinstance(value, str) else value
            yield _size(None if data is None else len(data), "h" if shape is Shape.STRING else "i", compact)
            if data:
                yield Piece("data", data)


def _size(size: int | None, code: str, compact: bool) -> Piece:
    if compact:
        return Piece("usize", uvarint(0 if size is None else size + 1))
    return Piece("size", struct.pack(f">{code}", -1 if size is None else size))
