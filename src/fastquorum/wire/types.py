"""The wire types of the Kafka protocol and what a declared field is: type, versions, nullability, default, tag.

Facts only: how a type looks in Python and how many bytes it takes. The codec (`encoder`, `decoder`), the JSON form
and the layout query all read these. Source: the Kafka protocol guide; KIP-482 (tagged fields, compact types).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar, overload

from fastquorum.types import ZERO_UUID, Uuid


class Group(Protocol):
    """What a field holds that has fields itself: a `message.Struct`."""

    unknown_tags: tuple[tuple[int, bytes], ...]


T = TypeVar("T")
S = TypeVar("S", bound=Group)

STRING_BYTES_MAX: Final = 0x7FFF
"""A string's length is an int16 in every version, compact or not."""


class Versions(NamedTuple):
    """A closed range of message versions; empty if `first > last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Kafka's notation: `3`, `1-4`, `2+`, `none`."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), 0x7FFF)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def has(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __str__(self) -> str:
        if self.first > self.last:
            return "none"
        if self.last == 0x7FFF:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


NO_VERSIONS: Final = Versions(0, -1)


class Shape(Enum):
    """How a value is framed: fixed size, or led by a length, a count or a null mark."""

    FIXED = "fixed"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class WireType(Generic[T]):
    """One wire type; `T` is its Python type."""

    name: str
    shape: Shape
    code: str = ""
    """Fixed shapes: the `struct` module's code, big-endian."""
    size: int = 0
    """Fixed shapes: bytes on the wire."""
    zero: Any = None
    """The default where a declaration names none (arrays and structs: a fresh empty one instead)."""
    element: "WireType[Any] | None" = None
    """Arrays: what they hold."""
    struct: type[Any] | None = None
    """Structs: the class, one of `message.Struct`; its declaration is at `__wire__`."""


BOOL: Final[WireType[bool]] = WireType("bool", Shape.FIXED, "?", 1, False)
INT8: Final[WireType[int]] = WireType("int8", Shape.FIXED, "b", 1, 0)
INT16: Final[WireType[int]] = WireType("int16", Shape.FIXED, "h", 2, 0)
UINT16: Final[WireType[int]] = WireType("uint16", Shape.FIXED, "H", 2, 0)
INT32: Final[WireType[int]] = WireType("int32", Shape.FIXED, "i", 4, 0)
INT64: Final[WireType[int]] = WireType("int64", Shape.FIXED, "q", 8, 0)
FLOAT64: Final[WireType[float]] = WireType("float64", Shape.FIXED, "d", 8, 0.0)
UUID: Final[WireType[Uuid]] = WireType("uuid", Shape.FIXED, "16s", 16, ZERO_UUID)
STRING: Final[WireType[str]] = WireType("string", Shape.STRING, zero="")
BYTES: Final[WireType[bytes]] = WireType("bytes", Shape.BYTES, zero=b"")
RECORDS: Final[WireType[bytes]] = WireType("records", Shape.BYTES, zero=b"")
"""Record batches, opaque here. Framed like bytes."""


@overload
def array(element: type[S]) -> WireType[list[S]]: ...
@overload
def array(element: WireType[T]) -> WireType[list[T]]: ...
def array(element: Any) -> WireType[list[Any]]:
    """The array of a scalar type or of a struct class."""
    inner: WireType[Any] = element if isinstance(element, WireType) else struct(element)
    return WireType(f"[]{inner.name}", Shape.ARRAY, element=inner)


def struct(cls: type[S]) -> WireType[S]:
    """A struct that stands in its parent without a length."""
    return WireType(cls.__name__, Shape.STRUCT, struct=cls)


class Implied(Enum):
    """The mark of an argument that was left out, where None would be a value."""

    IMPLIED = "implied"


IMPLIED: Final = Implied.IMPLIED


@dataclass(frozen=True, slots=True)
class Field:
    """One declared field of a struct."""

    name: str
    json_name: str
    type: WireType[Any]
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    default: Any
    """A constant; None for null; IMPLIED for the fresh empty value of an array or struct."""
    ignorable: bool
    flexible: bool
    """False: framed in the old way even in flexible versions (the request header's client id)."""

    def is_tagged(self, version: int) -> bool:
        return self.tagged.has(version)

    def is_nullable(self, version: int) -> bool:
        return self.nullable.has(version)

    def fresh_default(self) -> Any:
        """The default value; a new object where it is mutable."""
        if self.default is not IMPLIED:
            return self.default
        return [] if self.type.shape is Shape.ARRAY else self.type.struct()  # type: ignore[misc]


@overload
def field(
    wire_type: WireType[T],
    versions: str,
    *,
    nullable: str,
    default: object = ...,
    tag: int = ...,
    tagged: str = ...,
    ignorable: bool = ...,
    json: str = ...,
    flexible: bool = ...,
) -> T | None: ...
@overload
def field(
    wire_type: WireType[T],
    versions: str,
    *,
    default: object = ...,
    tag: int = ...,
    tagged: str = ...,
    ignorable: bool = ...,
    json: str = ...,
    flexible: bool = ...,
) -> T: ...
def field(
    wire_type: WireType[Any],
    versions: str,
    *,
    nullable: str = "none",
    default: object = IMPLIED,
    tag: int = -1,
    tagged: str = "",
    ignorable: bool = False,
    json: str = "",
    flexible: bool = True,
) -> Any:
    """Declare a field. Typed as its Python value, so that a class body reads (and type-checks) like a dataclass.

    Args:
        versions: the message versions that have the field, in Kafka's notation.
        nullable: the versions in which it may be None.
        default: what an absent field means; left out: zero, "", b"", an empty list, a struct of defaults.
        tag: its number in the tag section; it is tagged in `tagged`, or wherever it exists if that is not given.
        ignorable: a value that the version lacks is dropped instead of refused.
        json: its name in Kafka's JSON where that is not the camelCase of the Python name.
    """
    tagged_versions = Versions.parse(tagged or versions) if tag >= 0 else Versions.parse("none")
    if default is IMPLIED and wire_type.shape not in (Shape.ARRAY, Shape.STRUCT):
        default = wire_type.zero
    return Field(
        name="",
        json_name=json,
        type=wire_type,
        versions=Versions.parse(versions),
        nullable=Versions.parse(nullable),
        tagged=tagged_versions,
        tag=tag,
        default=default,
        ignorable=ignorable,
        flexible=flexible,
    )
