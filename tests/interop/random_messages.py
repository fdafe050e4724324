"""Random messages drawn from the declarations alone, and a census of what occurred in them.

The first message of a version is all defaults, the second has every null; of the others every eighth has an array of
hundreds of elements, each of the version's arrays in turn. The same seed gives the same messages.
"""

import random
import sys
from collections import Counter
from enum import Enum
from typing import Any, Final

from fastquorum.types import Uuid
from fastquorum.wire import Message, Struct, layout
from fastquorum.wire.types import Field, Shape, WireType

LARGE_MIN: Final = 200
"""Elements of an array that counts as large."""
UNKNOWN_TAG_MIN: Final = 100
"""Above every declared tag: Kafka refuses a tag that belongs to another version, and we keep it."""
TAG_MAX: Final = 2**31 - 1
SIZES: Final = (0, 1, 2, 5, 20, 125, 126, 127, 128, 1000)
"""Lengths of strings and bytes. 126 is the last one with a compact length of one byte."""
LARGE_SIZES: Final = (16_382, 16_383, 16_384, 32_767)


class _Kind(Enum):
    DEFAULTS = "defaults"
    NULLS = "nulls"
    ANY = "any"


class RandomMessages:
    """The random messages of one version of one class."""

    def __init__(self, cls: type[Message], version: int, seed: int) -> None:
        self.cls = cls
        self.version = version
        self._random = random.Random(f"{cls.__name__} {version} {seed}")
        self._arrays = array_paths(cls, version)
        self._drawn = 0
        self._kind = _Kind.DEFAULTS
        self._large = ""
        """The path of the array that is large in this message."""

    def draw(self) -> Message:
        number, self._drawn = self._drawn, self._drawn + 1
        self._kind = {0: _Kind.DEFAULTS, 1: _Kind.NULLS}.get(number, _Kind.ANY)
        self._large = self._arrays[number // 8 % len(self._arrays)] if number % 8 == 2 and self._arrays else ""
        message: Message = self._struct(self.cls, self.cls.__wire__.flexible.has(self.version), "")
        return message

    def _struct(self, cls: type[Struct], flexible: bool, path: str) -> Any:
        values = {
            each.name: self._field(each, flexible, f"{path}.{each.name}".lstrip("."))
            for each in cls.__wire__.fields
            if each.versions.has(self.version)
        }
        if flexible and self._kind is _Kind.ANY and self._random.random() < 0.4:
            values["unknown_tags"] = self._unknown_tags()
        return cls(**values)

    def _field(self, each: Field, flexible: bool, path: str) -> Any:
        chance, nullable = self._random, each.is_nullable(self.version)
        holds_large = self._large.startswith((path + "[]", path + "."))
        null_chance = {_Kind.DEFAULTS: 0.0, _Kind.NULLS: 1.0, _Kind.ANY: 0.25}[self._kind]
        if nullable and not holds_large and self._large != path and chance.random() < null_chance:
            return None
        if self._kind is _Kind.DEFAULTS:
            # A default that this version has no bytes for (a null) becomes an empty value.
            value = each.fresh_default()
            return _EMPTY[each.type.shape] if value is None and not nullable else value
        if each.is_tagged(self.version) and not holds_large and chance.random() < 0.25:
            return each.fresh_default() if nullable or each.default is not None else _EMPTY[each.type.shape]
        return self._value(each.type, flexible, path, holds_large)

    def _value(self, wire_type: WireType[Any], flexible: bool, path: str, holds_large: bool) -> Any:
        if wire_type.struct is not None:
            return self._struct(wire_type.struct, flexible, path)
        if wire_type.element is None:
            return self._scalar(wire_type)
        if path == self._large:
            count = self._random.randrange(LARGE_MIN, 2 * LARGE_MIN)
        elif holds_large or self._kind is _Kind.NULLS:
            count = 1
        else:
            count = self._random.randrange(3)
        return [self._value(wire_type.element, flexible, path + "[]", False) for _ in range(count)]

    def _scalar(self, wire_type: WireType[Any]) -> Any:
        chance = self._random
        match wire_type.name:
            case "bool":
                return chance.random() < 0.5
            case "float64":  # -0.0 equals 0.0 but prints otherwise
                return (chance.random() - 0.5) * 10 ** chance.randrange(40) + 0.0
            case "uuid":
                return Uuid(chance.randbytes(16))
            case "string":
                return self._text()
            case "bytes" | "records":
                return chance.randbytes(self._size())
            case name:
                return self._integer(8 * wire_type.size, name == "uint16")

    def _integer(self, bits: int, unsigned: bool) -> int:
        """Draw an integer: as many small ones as large ones, of either sign, and the extremes."""
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if self._random.random() < 0.125:
            return self._random.choice((low, -1 if low else 0, high))
        value = self._random.getrandbits(self._random.randrange(bits) + unsigned)
        return value if unsigned or self._random.random() < 0.5 else -value - 1

    def _size(self) -> int:
        chance = self._random
        if not self._large and chance.random() < 0.01:
            return chance.choice(LARGE_SIZES)
        return chance.choice(SIZES if chance.random() < 0.25 else SIZES[:4])

    def _text(self) -> str:
        """Any characters, of one to four bytes each; a string's size counts bytes."""
        chance, left, text = self._random, self._size(), []
        if left > 1000:
            return "x" * (left - 2) + "é"
        while left > 0:
            code = chance.randrange(1, 128) if chance.random() < 0.75 else chance.randrange(sys.maxunicode + 1)
            width = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
            if width <= left and not 0xD800 <= code < 0xE000:
                text.append(chr(code))
                left -= width
        return "".join(text)

    def _unknown_tags(self) -> tuple[tuple[int, bytes], ...]:
        chance = self._random
        entries = {}
        for _ in range(chance.randrange(1, 3)):
            tag = UNKNOWN_TAG_MIN + chance.randrange((TAG_MAX - UNKNOWN_TAG_MIN) >> chance.randrange(28))
            entries[tag] = chance.randbytes(self._size())
        return tuple(sorted(entries.items()))


_EMPTY: Final[dict[Shape, Any]] = {Shape.STRING: "", Shape.BYTES: b"", Shape.ARRAY: []}


def array_paths(cls: type[Message], version: int) -> list[str]:
    """The paths of a version's arrays, those inside other arrays included."""
    return [each.path for each in layout(cls, version) if each.type.startswith("[]")]


class Census:
    """What occurred, and where."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Numbers of messages by content: a null, an empty array, a large array, an unknown tag, a tagged field."""
        self._found: set[tuple[str, int, str, str]] = set()

    def take(self, message: Message, version: int) -> set[str]:
        """Count a message; return its kinds of content."""
        cls = type(message)
        seen: set[tuple[str, str]] = set()
        _survey(message, version, "", seen)
        self._found.update((cls.__name__, version, path, what) for path, what in seen)
        has = {what for _, what in seen}
        self.counts.update(has)
        return has

    def missing(self, cls: type[Message], version: int) -> list[str]:
        """What could have occurred in a version and has not: nulls, empty and large arrays, unknown tags."""
        wanted = []
        for each in layout(cls, version):
            if each.type == "tags":
                wanted.append((each.path.removesuffix("(tags)").removesuffix("."), "unknown tag"))
            if each.nullable:
                wanted.append((each.path, "null"))
            if each.type.startswith("[]"):
                wanted += [(each.path, "empty array"), (each.path, "large array")]
        return [
            f"{cls.__name__} v{version} {path}: {what}"
            for path, what in wanted
            if (cls.__name__, version, path, what) not in self._found
        ]


def _survey(value: Struct, version: int, path: str, seen: set[tuple[str, str]]) -> None:
    if value.unknown_tags:
        seen.add((path, "unknown tag"))
    for each in type(value).__wire__.fields:
        if not each.versions.has(version):
            continue
        inner, where = getattr(value, each.name), f"{path}.{each.name}".lstrip(".")
        if each.is_tagged(version) and inner != each.fresh_default():
            seen.add((where, "tagged field"))
        if inner is None:
            seen.add((where, "null"))
        elif each.type.shape is Shape.STRUCT:
            _survey(inner, version, where, seen)
        elif each.type.name == "records":
            seen.add((where, "records"))
        elif each.type.element is not None:
            if not inner:
                seen.add((where, "empty array"))
            if len(inner) >= LARGE_MIN:
                seen.add((where, "large array"))
            if each.type.element.struct is not None:
                for item in inner:
                    _survey(item, version, where + "[]", seen)
