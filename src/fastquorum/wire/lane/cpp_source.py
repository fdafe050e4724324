"""C++ source of one Fetch layout: a parser and a writer, from declarations and a table of roles.

Knows the wire types, not what Fetch means (`roles` says that). The text uses `FrameReader` and `FrameWriter`
of `ext/core/fetch_frames.h`. Source: KIP-482 (compact types, tags).
"""

from typing import Any, Final

from fastquorum.wire.codec.source import wire_fields
from fastquorum.wire.codec.varint import uvarint
from fastquorum.wire.lane.roles import ONE_BYTE, Kind, Part, Roles, element_of, tag_members
from fastquorum.wire.message import Struct
from fastquorum.wire.types import Field, Shape

INDENT: Final = "    "
INTEGERS: Final = {
    "b": "std::int8_t",
    "B": "std::uint8_t",
    "h": "std::int16_t",
    "i": "std::int32_t",
    "q": "std::int64_t",
}
UUID: Final = "const std::uint8_t *"
ZERO: Final = "zero_uuid"


def literal(data: bytes) -> str:
    """A string literal and its size, as two arguments."""
    return '"' + "".join(f"\\{byte:03o}" for byte in data) + f'", {len(data)}'


class CppParser:
    """Writes the body of `(FrameReader in, Fields *fields) -> bool`."""

    def __init__(self, roles: Roles, parts: tuple[Part, ...], types: dict[str, str]) -> None:
        """`types` gathers each result's C++ type."""
        self.roles = roles
        self.types = types
        self.lines: list[str] = []
        self.depth = 1
        self.run: list[str] = []
        self.tag_counts = 0
        for cls, self.version in parts:
            self.read_struct(cls, "")
        self.flush()
        self.emit("return in.at_end();")

    def emit(self, *lines: str) -> None:
        self.lines.extend(INDENT * self.depth + line for line in lines)

    def flush(self) -> None:
        """Demand what was gathered."""
        if self.run:
            self.emit(f"if (!({' && '.join(self.run)})) return false;")
            self.run = []

    def take(self, each: Field, name: str) -> None:
        if each.type.name == "uuid":
            self.types[name] = UUID
            self.run.append(f"in.take_uuid(&fields->{name})")
        else:
            self.types[name] = INTEGERS[each.type.code]
            self.run.append(f"in.take(&fields->{name})")

    def expect(self, code: str, value: int) -> None:
        self.run.append(f"in.expect<{INTEGERS[code]}>({value})")

    def read_struct(self, cls: type[Struct], prefix: str) -> None:
        plain, tagged, _ = wire_fields(cls.__wire__.fields, self.version)
        for each in plain:
            self.read_field(prefix + each.name, each)
        known = [each for each in tagged if self.roles[prefix + each.name].kind is not Kind.NONE]
        if not known:
            self.expect("B", 0)
            return
        tags = f"tags_{self.tag_counts}"
        self.tag_counts += 1
        self.emit(f"std::uint8_t {tags};")
        self.run.append(f"in.take(&{tags})")
        self.flush()
        for each in known:
            self.read_tag(prefix + each.name, each, tags)
        self.run.append(f"{tags} == 0")

    def read_field(self, path: str, each: Field) -> None:
        role = self.roles[path]
        match each.type.shape, role.kind:
            case Shape.FIXED, Kind.CONST:
                self.expect(each.type.code, role.value)
            case Shape.FIXED, Kind.ANY:
                self.run.append(f"in.skip({each.type.size})")
            case Shape.FIXED, _:
                self.take(each, role.name)
            case Shape.STRING, Kind.CONST:
                text = role.value.encode()
                self.run.append(f"in.expect_bytes({literal(bytes([len(text) + 1]) + text)})")
            case Shape.STRING, Kind.ANY if not each.flexible:
                self.run.append("in.skip_string()")
            case Shape.BYTES, Kind.VARY:
                self.types[role.name] = "Span"
                self.run.append(f"in.take_bytes(&fields->{role.name})")
            case Shape.ARRAY, Kind.ONE:
                self.expect("B", 2)
                self.read_struct(element_of(each), path + ".")
            case Shape.ARRAY, Kind.NONE:
                self.expect("B", 1)
            case _:
                raise NotImplementedError(f"{path}: {each.type.shape} as {role.kind}")

    def read_tag(self, path: str, each: Field, tags: str) -> None:
        role = self.roles[path]
        assert each.tag <= ONE_BYTE
        for name, default in tag_members(path, each, self.roles, self.version):
            self.emit(f"fields->{name} = {_default(default)};")
        self.emit(f"if ({tags} != 0 && in.next_is({each.tag})) {{")
        self.depth += 1
        match each.type.shape, role.kind:
            case Shape.FIXED, _:
                self.run.append("in.skip(1)")
                self.expect("B", each.type.size)
                self.take(each, role.name)
            case Shape.STRUCT, Kind.STRUCT:
                assert each.type.struct is not None
                members = wire_fields(each.type.struct.__wire__.fields, self.version)[0]
                self.run.append("in.skip(1)")
                self.expect("B", sum(member.type.size for member in members) + 1)
                self.read_struct(each.type.struct, path + ".")
            case Shape.STRING, Kind.FIXED:
                self.types[role.name] = "Span"
                self.run += ["in.skip(1)", f"in.take_tagged_string(&fields->{role.name})"]
            case Shape.ARRAY, Kind.OPTIONAL_ONE:
                self.run += ["in.skip(1)", "in.skip_tagged()"]
            case _:
                raise NotImplementedError(f"{path}: tagged {each.type.shape} as {role.kind}")
        self.flush()
        self.emit(f"--{tags};")
        self.depth -= 1
        self.emit("}")


def _default(value: Any) -> str:
    if value is None:
        return "Span{}"
    return ZERO if isinstance(value, bytes) else str(value)


class CppWriter:
    """Writes the statements that put a frame together: `head`, and `tail` for what follows the records, if any do."""

    def __init__(self, roles: Roles, parts: tuple[Part, ...]) -> None:
        self.roles = roles
        self.head: list[str] = []
        self.tail: list[str] = []
        self._lines = self.head
        self._depth = 1
        self._payloads = 0
        self._literal = b""
        self._out = "out"
        for cls, self.version in parts:
            self.write_struct(cls, "")
        self.flush()

    def emit(self, *lines: str) -> None:
        self.flush()
        self._lines.extend(INDENT * self._depth + line for line in lines)

    def flush(self) -> None:
        """Write the constant bytes that were gathered."""
        if self._literal:
            data, self._literal = self._literal, b""
            self._lines.append(f"{INDENT * self._depth}{self._out}.bytes({literal(data)});")

    def write_struct(self, cls: type[Struct], prefix: str) -> None:
        plain, tagged, _ = wire_fields(cls.__wire__.fields, self.version)
        for each in plain:
            self.write_field(prefix + each.name, each)
        known = [each for each in tagged if self.roles[prefix + each.name].kind is not Kind.NONE]
        conditions = [self.condition(prefix + each.name, each) for each in known]
        always = conditions.count("")
        if always == len(known):
            self._literal += bytes([always])
        else:
            count = " + ".join([str(always), *(f"({text})" for text in conditions if text)])
            self.emit(f"{self._out}.put(static_cast<std::uint8_t>({count}));")
        for each, condition in zip(known, conditions, strict=True):
            self.write_tag(prefix + each.name, each, condition)

    def condition(self, path: str, each: Field) -> str:
        """When a tagged field is there; "" for always (in the steady state it is not at its default)."""
        role = self.roles[path]
        if role.kind is Kind.OPTIONAL_ONE or (role.kind is Kind.FIXED and each.default is None):
            return f"fixed.{role.name}.data != nullptr"
        return f"!is_zero(fixed.{role.name})" if each.type.name == "uuid" else ""

    def write_field(self, path: str, each: Field) -> None:
        role = self.roles[path]
        out = self._out
        match each.type.shape, role.kind:
            case Shape.FIXED, Kind.VARY:
                self.emit(f"{out}.put(varying.{role.name});")
            case Shape.FIXED, _ if role.name:
                put = "uuid" if each.type.name == "uuid" else "put"
                self.emit(f"{out}.{put}(fixed.{role.name});")
            case Shape.FIXED, _:
                self._literal += role.value.to_bytes(each.type.size, "big", signed=True)
            case Shape.STRING, Kind.CONST:
                text = b"" if role.value is None else role.value.encode()
                self._literal += b"\0" if role.value is None else uvarint(len(text) + 1) + text
            case Shape.STRING, _:
                self.emit(f"{out}.{'compact' if each.flexible else 'text'}(fixed.{role.name});")
            case Shape.BYTES, Kind.VARY:
                self.emit(f"{out}.uvarint(static_cast<std::uint64_t>(varying.{role.name}_size) + 1);")
                self._lines = self.tail
            case Shape.ARRAY, Kind.ONE:
                self._literal += b"\2"
                self.write_struct(element_of(each), path + ".")
            case Shape.ARRAY, Kind.NONE:
                self._literal += b"\1"
            case _:
                raise NotImplementedError(f"{path}: {each.type.shape} as {role.kind}")

    def write_tag(self, path: str, each: Field, condition: str) -> None:
        """The payload is written apart: its size stands before it."""
        payload, outer = f"payload_{self._payloads}", self._out
        self._payloads += 1
        self.emit(f"if ({condition}) {{" if condition else "{")
        self._depth += 1
        self.emit(f"FrameWriter {payload};")
        self._out = payload
        if each.type.shape is Shape.STRUCT:
            assert each.type.struct is not None
            self.write_struct(each.type.struct, path + ".")
        elif each.type.shape is Shape.ARRAY:
            self._literal += b"\2"
            self.write_struct(element_of(each), path + ".")
        else:
            self.write_field(path, each)
        self.flush()
        self._out = outer
        self.emit(f"{outer}.tagged({each.tag}, {payload});")
        self._depth -= 1
        self.emit("}")
