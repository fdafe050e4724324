"""How a struct of Kafka's protocol lies on the wire in one version: what the native message codec walks.

Resolved for one version, so that nothing is left to decide: which fields there are, in which order, how each is framed.
`fastquorum.wire` makes these from its declarations, and brings the pure twin: a function generated from the same ones.
Source: the Kafka protocol guide; KIP-482 (tagged fields, compact types).
"""

import enum
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from fastquorum.kernels.batches import Buffer

ANY_NUMBER: Final = 1 << 62
T = TypeVar("T")


class ValueKind(enum.IntEnum):
    """How a value looks. The numbers are those of ext/core/message_layout.h."""

    BOOL = 0
    INT8 = 1
    INT16 = 2
    UINT16 = 3
    INT32 = 4
    INT64 = 5
    FLOAT64 = 6
    UUID = 7
    STRING = 8
    BYTES = 9
    ARRAY = 10
    STRUCT = 11


class ValueLayout(NamedTuple):
    """A value: what it is, and what leads it."""

    kind: ValueKind
    nullable: bool
    compact: bool
    """Led by a varint of length or count plus one; else by an int16 (strings) or int32."""
    bytes_min: int
    """The fewest bytes that it takes, at least 1: what bounds a count before anything is allocated."""
    element: "ValueLayout | None" = None
    """Arrays: what they hold."""
    struct: "StructLayout | None" = None


class Fresh(enum.Enum):
    """The default that is a new object each time: an empty list, or a struct of defaults."""

    FRESH = "fresh"


class FieldLayout(NamedTuple):
    """A field of a struct."""

    name: str
    json_name: str
    value: ValueLayout
    tag: int
    """-1 outside tag sections."""
    default: Any
    """An immutable value, or FRESH."""
    ignorable: bool
    """Where the version lacks the field: drop a value that is not the default, instead of refusing it."""


class StructLayout(NamedTuple):
    """A struct in one version. Its class keeps every field, and `unknown_tags`, in a slot."""

    cls: type
    flexible: bool
    """Ends with a tag section."""
    plain: tuple[FieldLayout, ...]
    """In wire order."""
    tagged: tuple[FieldLayout, ...]
    """By ascending tag."""
    absent: tuple[FieldLayout, ...]
    """Fields of the class that the version lacks."""
    foreign_tags: tuple[int, ...]
    """Tags that the class has in other versions: in this one they are an error, not an unknown field."""


class Alike(list[T]):
    """An array that many messages have, and that nobody changes any more, nor what is in it: a native codec writes it
    once, and copies what that came to from then on."""

    __slots__ = ("written",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__(items)
        self.written: tuple[ValueLayout, bytes] | None = None
        """The layout that it was written in last, and its bytes; only a native codec sets it."""


class MessageCodec(Protocol):
    """One message in one version, to bytes and back."""

    def encode(self, message: Any) -> bytes:
        """The bytes of `message`. WireError if a value does not fit its field or the version."""

    def decode(self, buffer: Buffer) -> Any:
        """The message that fills `buffer`. WireError if the bytes are malformed, end early or go on behind it."""

    def decode_prefix(self, buffer: Buffer, position: int = 0, elements_max: int = ANY_NUMBER) -> tuple[Any, int]:
        """The message at `position`, and the position after it. WireError if the bytes are malformed or end early, or
        hold more than `elements_max` elements of arrays and tagged fields, all together: each takes a hundred times
        the memory that it takes in the bytes, and time."""
