"""The values of an append: checked, and split where they need not stay together."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, Buffer

RECORD_OVERHEAD_BYTES_MAX: Final = 24
"""What a record adds to its value at most: length, attributes, timestamp and offset deltas, null key, value length,
no headers.
"""
_BYTES: Final = (bytes, bytearray, memoryview)

Values = Buffer | Sequence[Buffer]
"""One value, or several."""


def as_values(value: Values) -> Sequence[Buffer]:
    """A sequence of values, at least one. UsageError if they are not bytes."""
    if isinstance(value, _BYTES):
        return (value,)
    if not isinstance(value, Sequence):
        raise UsageError(f"a value is bytes, not {type(value).__name__}", "encode it first")
    if not value:
        raise UsageError("there is nothing to append", "give at least one value")
    for each in value:
        if not isinstance(each, _BYTES):
            raise UsageError(f"a value is bytes, not {type(each).__name__}", "encode it first")
    return cast(Sequence[Buffer], value)


def each_of(values: Sequence[Buffer]) -> list[bytes]:
    """Values that are appended by themselves, kept whatever the caller does with its buffers. Raises as `as_values`."""
    if isinstance(values, _BYTES):
        raise UsageError("several values are expected, not one", "append it by `append`")
    if isinstance(values, Sequence) and not values:
        return []
    return [each if each.__class__ is bytes else bytes(each) for each in as_values(values)]


def copied(value: Values) -> tuple[bytes, ...]:
    """The same, kept whatever the caller does with its buffers. UsageError if they are not bytes."""
    return tuple(map(bytes, as_values(value)))


def split(values: Sequence[Buffer], batch_bytes_max: int) -> Iterator[Sequence[Buffer]]:
    """Parts that fit into a batch each, in order. RecordTooLarge, before the first part, if one value alone does
    not.
    """
    room = batch_bytes_max - BATCH_HEADER_BYTES
    for value in values:
        if len(value) + RECORD_OVERHEAD_BYTES_MAX > room:
            raise RecordTooLarge(size_bytes=len(value) + RECORD_OVERHEAD_BYTES_MAX, limit_bytes=room)
    return _parts(values, room)


def _parts(values: Sequence[Buffer], room: int) -> Iterator[Sequence[Buffer]]:
    part: list[Buffer] = []
    size = 0
    for value in values:
        needed = len(value) + RECORD_OVERHEAD_BYTES_MAX
        if part and size + needed > room:
            yield part
            part, size = [], 0
        part.append(value)
        size += needed
    yield part
