"""Python source under construction: what the encoder's and the decoder's generators share.

A run is a stretch of fixed-size values that one precompiled `struct.Struct` reads or writes. The first byte of a
varint belongs to the run before it: nearly every length, count and tag count in this protocol takes one byte.
"""

import struct
from typing import Any, Final

from fastquorum.wire.types import Field, Shape, WireType

FIRST_BYTE: Final = "B"


def wire_fields(fields: tuple[Field, ...], version: int) -> tuple[list[Field], list[Field], list[Field]]:
    """Split a declaration for one version: fields in wire order, tagged fields by tag, fields the version lacks."""
    present = [each for each in fields if each.versions.has(version)]
    plain = [each for each in present if not each.is_tagged(version)]
    tagged = sorted((each for each in present if each.is_tagged(version)), key=lambda each: each.tag)
    absent = [each for each in fields if not each.versions.has(version)]
    return plain, tagged, absent


def foreign_tags(fields: tuple[Field, ...], version: int) -> tuple[int, ...]:
    """Tags that the declaration has in other versions: in this one they are an error, not an unknown field."""
    return tuple(sorted(each.tag for each in fields if each.tag >= 0 and not each.is_tagged(version)))


def size_min(wire_type: WireType[Any], version: int, flexible: bool) -> int:
    """The fewest bytes a value of this type takes: what bounds a count before anything is allocated for it."""
    match wire_type.shape:
        case Shape.FIXED:
            return wire_type.size
        case Shape.STRING:
            return 1 if flexible else 2
        case Shape.BYTES | Shape.ARRAY:
            return 1 if flexible else 4
        case Shape.STRUCT:
            assert wire_type.struct is not None
            plain, _, _ = wire_fields(wire_type.struct.__wire__.fields, version)
            sizes = (
                1
                if each.type.shape is Shape.STRUCT and each.is_nullable(version)
                else size_min(each.type, version, flexible and each.flexible)
                for each in plain
            )
            return sum(sizes) + flexible


class Source:
    """Lines of one function, its constants, and numbered local names."""

    def __init__(self, scope: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self.scope = scope
        self.depth = 1
        self._names = 0

    def emit(self, *lines: str) -> None:
        self.lines.extend("    " * self.depth + line for line in lines)

    def local(self, stem: str) -> str:
        """A fresh local name."""
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        """A fresh global name bound to `value`."""
        name = self.local(stem)
        self.scope[name] = value
        return name

    def packer(self, method: str, codes: str) -> str:
        """The name of a `struct.Struct` method for these codes; the same codes share one."""
        name = f"{method}_{codes.replace('?', 'bool')}"
        self.scope.setdefault(name, getattr(struct.Struct(">" + codes), method))
        return name

    def compile(self, name: str, signature: str, title: str) -> Any:
        """Compile the lines into a function."""
        text = f"def {name}({signature}):\n" + "\n".join(self.lines) + "\n"
        exec(compile(text, f"<{title}>", "exec"), self.scope)
        function = self.scope[name]
        function.source = text
        return function
