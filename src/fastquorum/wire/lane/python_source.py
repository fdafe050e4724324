"""Python source of one Fetch layout: a parser and an encoder, from declarations and a table of roles.

Knows the wire types, not what Fetch means (`generate_python` says that). A run is a stretch of fixed-size values that
one `struct.Struct` reads or writes; counts and lengths that the steady state fixes are bytes that a run compares.
Source: KIP-482 (compact types, tags).
"""

import itertools
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from fastquorum.types import ZERO_UUID
from fastquorum.wire.codec.source import wire_fields
from fastquorum.wire.codec.varint import uvarint
from fastquorum.wire.message import Struct
from fastquorum.wire.types import Field, Shape

INDENT: Final = "    "
ONE_BYTE: Final = 0x7F
"""The largest varint of one byte."""


class Kind(Enum):
    """What the steady state makes of a field."""

    CONST = "const"
    """Always this value: a parser demands it, an encoder writes it."""
    ANY = "any"
    """A parser passes over it; an encoder writes the value, or its argument of that name."""
    FIXED = "fixed"
    """The same in every frame of a connection: a parser returns it, an encoder is made with it."""
    VARY = "vary"
    """Another one in every frame: a parser returns it, an encoder takes it at each call."""
    STRUCT = "struct"
    """A struct whose fields have roles of their own."""
    ONE = "one"
    """An array of exactly one struct."""
    OPTIONAL_ONE = "optional_one"
    """A tagged array that a parser passes over; an encoder writes one struct unless the argument `name` is None."""
    NONE = "none"
    """An empty array, or a tagged field that is absent."""


@dataclass(frozen=True, slots=True)
class Role:
    """A field's part in the steady state."""

    kind: Kind
    value: Any = None
    name: str = ""


Roles = dict[str, Role]
Part = tuple[type[Struct], int]
"""A class and the version of it (a header's differs from its body's)."""


def names(roles: Roles, *kinds: Kind) -> list[str]:
    """The names that roles of these kinds give, each once, in the order of the table."""
    return list(dict.fromkeys(role.name for role in roles.values() if role.name and role.kind in kinds))


class ParserSource:
    """Writes the body of `(frame: bytes) -> tuple | None`."""

    def __init__(self, roles: Roles, parts: tuple[Part, ...], structs: dict[str, str]) -> None:
        self.roles = roles
        self.structs = structs
        self.lines: list[str] = []
        self.depth = 2
        self.codes: list[str] = []
        self.targets: list[str] = []
        self.checks: list[str] = []
        self.size = 0
        self.taken: set[str] = set()
        for cls, self.version in parts:
            self.read_struct(cls, "")
        self.flush()
        self.emit("if at != len(frame):", INDENT + "return None")

    def body(self, results: dict[str, Any]) -> list[str]:
        """The function's lines; `results` are the names returned and what they are where the version lacks them."""
        values = [name if name in self.taken else repr(absent) for name, absent in results.items()]
        return [
            f"{INDENT}at = 0",
            f"{INDENT}try:",
            *self.lines,
            f"{INDENT}except (IndexError, struct.error):",
            f"{INDENT * 2}return None",
            f"{INDENT}return {', '.join(values)}",
        ]

    def emit(self, *lines: str) -> None:
        self.lines.extend(INDENT * self.depth + line for line in lines)

    # --- runs -------------------------------------------------------------------------------------------------------

    def skip(self, size: int) -> None:
        self.codes.append(f"{size}x")
        self.size += size

    def take(self, code: str, name: str) -> None:
        self.codes.append(code)
        self.targets.append(name)
        self.size += struct.calcsize(">" + code)
        self.taken.add(name)

    def expect(self, code: str, value: Any) -> None:
        name = f"c{len(self.checks)}"
        self.codes.append(code)
        self.targets.append(name)
        self.checks.append(f"{name} != {value!r}")
        self.size += struct.calcsize(">" + code)

    def flush(self) -> None:
        """Read the pending run."""
        if not self.codes:
            return
        if self.targets:
            run = self.structs.setdefault("".join(self.codes), f"_RUN_{len(self.structs)}")
            left = ", ".join(self.targets) if len(self.targets) > 1 else f"({self.targets[0]},)"
            self.emit(f"{left} = {run}.unpack_from(frame, at)")
        if self.checks:
            self.emit(f"if {' or '.join(self.checks)}:", INDENT + "return None")
        self.emit(f"at += {self.size}")
        self.codes, self.targets, self.checks, self.size = [], [], [], 0

    # --- fields -----------------------------------------------------------------------------------------------------

    def read_struct(self, cls: type[Struct], prefix: str) -> None:
        plain, tagged, _ = wire_fields(cls.__wire__.fields, self.version)
        for each in plain:
            self.read_field(prefix + each.name, each)
        known = [each for each in tagged if self.roles[prefix + each.name].kind is not Kind.NONE]
        if not known:
            self.expect("B", 0)
            return
        self.take("B", "tags")
        self.flush()
        for each in known:
            self.read_tag(prefix + each.name, each)
        self.emit("if tags:", INDENT + "return None")

    def read_field(self, path: str, each: Field) -> None:
        role = self.roles[path]
        match each.type.shape, role.kind:
            case Shape.FIXED, Kind.CONST:
                self.expect(each.type.code, role.value)
            case Shape.FIXED, Kind.ANY:
                self.skip(each.type.size)
            case Shape.FIXED, _:
                self.take(each.type.code, role.name)
            case Shape.STRING, Kind.CONST:
                text = role.value.encode()
                self.expect("B", len(text) + 1)
                if text:
                    self.expect(f"{len(text)}s", text)
            case Shape.STRING, Kind.ANY if not each.flexible:
                self.take("h", "size")
                self.flush()
                self.emit("if size > 0:", INDENT + "at += size", "elif size < -1:", INDENT + "return None")
            case Shape.BYTES, Kind.VARY:
                self.read_bytes(role.name)
            case Shape.ARRAY, Kind.ONE:
                self.expect("B", 2)
                self.read_struct(element_of(each), path + ".")
            case Shape.ARRAY, Kind.NONE:
                self.expect("B", 1)
            case _:
                raise NotImplementedError(f"{path}: {each.type.shape} as {role.kind}")

    def read_bytes(self, name: str) -> None:
        """A length that may take several bytes, and then the first and the last position of what it measures."""
        self.take("B", "size")
        self.flush()
        self.emit(
            f"if size > {ONE_BYTE}:",
            INDENT + "size, at = read_uvarint(frame, at - 1)",
            "if not size:",
            INDENT + "return None",
            f"{name}_start = at",
            f"{name}_end = at = at + size - 1",
        )
        self.taken |= {f"{name}_start", f"{name}_end"}

    def read_tag(self, path: str, each: Field) -> None:
        role = self.roles[path]
        assert each.tag <= ONE_BYTE
        inner = tag_members(path, each, self.roles, self.version)
        for name, default in inner:
            self.emit(f"{name} = {default!r}")
        self.emit(f"if tags and frame[at] == {each.tag}:")
        self.depth += 1
        match each.type.shape, role.kind:
            case Shape.FIXED, _:
                self.skip(1)
                self.expect("B", each.type.size)
                self.take(each.type.code, role.name)
            case Shape.STRUCT, Kind.STRUCT:
                assert each.type.struct is not None
                fields = wire_fields(each.type.struct.__wire__.fields, self.version)[0]
                self.skip(1)
                self.expect("B", sum(field.type.size for field in fields) + 1)
                self.read_struct(each.type.struct, path + ".")
            case Shape.STRING, Kind.FIXED:
                self.emit("size = frame[at + 1]")
                self.emit(f"if not 0 < size <= {ONE_BYTE} or frame[at + 2] != size:", INDENT + "return None")
                self.emit(f"{role.name} = frame[at + 3 : at + 2 + size]", "at += 2 + size")
                self.taken.add(role.name)
            case Shape.ARRAY, Kind.OPTIONAL_ONE:
                self.emit("size, at = read_uvarint(frame, at + 1)", "at += size")
            case _:
                raise NotImplementedError(f"{path}: tagged {each.type.shape} as {role.kind}")
        self.flush()
        self.emit("tags -= 1")
        self.depth -= 1


class EncoderSource:
    """Writes the body of `(fixed arguments) -> encoder of the varying ones`."""

    def __init__(self, roles: Roles, parts: tuple[Part, ...]) -> None:
        self.roles = roles
        self.parts: list[tuple[str, str | bytes]] = []
        """What stands one after another: ("fixed", bytes or an expression), (code, a name), ("bytes", a name)."""
        for cls, self.version in parts:
            self.write_struct(cls, "")

    def body(self, arguments: str) -> list[str]:
        """The function's lines; `arguments` is the inner function's signature."""
        made: list[str] = []
        joined: list[str] = []
        formats: list[str] = []
        values: list[str] = []

        def close_run() -> None:
            if any(not value.startswith("fixed_") for value in values):
                made.append(f'pack_{len(made)} = struct.Struct(f">{"".join(formats)}").pack')
                joined.append(f"pack_{len(made) - 1}({', '.join(values)})")
            else:
                joined.extend(values)
            formats.clear()
            values.clear()

        for code, value in merged(self.parts):
            match code:
                case "fixed":
                    name = f"fixed_{len(made)}"
                    made.append(f"{name} = {value}")
                    formats.append(f"{{len({name})}}s")
                    values.append(name)
                case "bytes":
                    close_run()
                    joined.extend((f"uvarint(len({value}) + 1)", value))
                case _:
                    formats.append(code)
                    values.append(value)
        if values:
            close_run()
        result = joined[0] if len(joined) == 1 else f'b"".join(({", ".join(joined)}))'
        return [
            *(INDENT + line for line in made),
            "",
            f"{INDENT}def encode({arguments}) -> bytes:",
            f"{INDENT * 2}return {result}",
            "",
            f"{INDENT}return encode",
        ]

    def const(self, data: bytes) -> None:
        self.parts.append(("fixed", data))

    def fixed(self, expression: str) -> None:
        self.parts.append(("fixed", expression))

    def write_struct(self, cls: type[Struct], prefix: str) -> None:
        plain, tagged, _ = wire_fields(cls.__wire__.fields, self.version)
        for each in plain:
            self.write_field(prefix + each.name, each)
        known = [each for each in tagged if self.roles[prefix + each.name].kind is not Kind.NONE]
        conditions = [self.condition(prefix + each.name, each) for each in known]
        always = conditions.count("")
        if always == len(known):
            self.const(bytes([always]))
        else:
            self.fixed(f"bytes(({' + '.join([str(always), *(f'({text})' for text in conditions if text)])},))")
        for each, condition in zip(known, conditions, strict=True):
            self.write_tag(prefix + each.name, each, condition)

    def condition(self, path: str, each: Field) -> str:
        """When a tagged field is there; "" for always (in the steady state it is not at its default)."""
        role = self.roles[path]
        if role.kind is Kind.OPTIONAL_ONE or (role.kind is Kind.FIXED and each.default is None):
            return f"{role.name} is not None"
        return f"{role.name} != {bytes(ZERO_UUID)!r}" if each.type.name == "uuid" else ""

    def write_field(self, path: str, each: Field) -> None:
        role = self.roles[path]
        compact = each.flexible
        match each.type.shape, role.kind:
            case Shape.FIXED, Kind.VARY:
                self.parts.append((each.type.code, role.name))
            case Shape.FIXED, _ if role.name:
                self.fixed(role.name if each.type.name == "uuid" else f'struct.pack(">{each.type.code}", {role.name})')
            case Shape.FIXED, _:
                self.const(struct.pack(">" + each.type.code, role.value))
            case Shape.STRING, Kind.CONST:
                self.const(b"\0" if role.value is None else uvarint(len(role.value.encode()) + 1) + role.value.encode())
            case Shape.STRING, _:
                size = f"uvarint(len({role.name}) + 1)" if compact else f'struct.pack(">h", len({role.name}))'
                self.fixed(f"{size} + {role.name}")
            case Shape.BYTES, Kind.VARY:
                self.parts.append(("bytes", role.name))
            case Shape.ARRAY, Kind.ONE:
                self.const(b"\2")
                self.write_struct(element_of(each), path + ".")
            case Shape.ARRAY, Kind.NONE:
                self.const(b"\1")
            case _:
                raise NotImplementedError(f"{path}: {each.type.shape} as {role.kind}")

    def write_tag(self, path: str, each: Field, condition: str) -> None:
        outer, self.parts = self.parts, []
        if each.type.shape is Shape.STRUCT:
            assert each.type.struct is not None
            self.write_struct(each.type.struct, path + ".")
        elif each.type.shape is Shape.ARRAY:
            self.const(b"\2")
            self.write_struct(element_of(each), path + ".")
        else:
            self.write_field(path, each)
        inner, self.parts = self.parts, outer
        if inner[0][0] != "fixed":
            self.const(bytes([each.tag, each.type.size]))
            self.parts.extend(inner)
            return
        ((_, payload),) = merged(inner)
        tagged = f"tagged({each.tag}, {payload})"
        self.fixed(f'({tagged} if {condition} else b"")' if condition else tagged)


def element_of(each: Field) -> type[Struct]:
    """The struct class that an array field holds."""
    assert each.type.element is not None
    assert each.type.element.struct is not None
    return each.type.element.struct


def tag_members(path: str, each: Field, roles: Roles, version: int) -> list[tuple[str, Any]]:
    """The names that a tagged field gives, with what they are where it is absent."""
    role = roles[path]
    if role.kind is Kind.OPTIONAL_ONE:
        return []
    if role.kind is not Kind.STRUCT:
        return [(role.name, bytes(each.default) if isinstance(each.default, bytes) else each.default)]
    assert each.type.struct is not None
    members = wire_fields(each.type.struct.__wire__.fields, version)[0]
    named = [(roles[f"{path}.{member.name}"], member.default) for member in members]
    return [(inner.name, default) for inner, default in named if inner.name and inner.kind is not Kind.ANY]


def merged(parts: list[tuple[str, str | bytes]]) -> list[tuple[str, str]]:
    """Join neighbouring fixed parts into one expression; constants become one literal."""
    result: list[tuple[str, str]] = []
    for code, group in itertools.groupby(parts, lambda part: part[0] if isinstance(part[1], str) else "fixed"):
        if code != "fixed":
            result.extend((code, str(value)) for _, value in group)
            continue
        terms: list[str] = []
        literal = b""
        for _, value in group:
            if isinstance(value, bytes):
                literal += value
                continue
            terms.extend((repr(literal), value) if literal else (value,))
            literal = b""
        if literal:
            terms.append(repr(literal))
        result.append(("fixed", " + ".join(terms)))
    return result
