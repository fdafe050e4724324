"""Generates, for one class and version, the Python function that encodes it.

The generated function packs runs of fixed-size fields with one `Struct` each and joins the parts once. It does not
look for the reason of a failure: when a value does not fit, `faults.find_fault` walks the declaration and names the
field.
"""

import struct
from typing import Any, Final

from fastquorum.wire.codec.faults import explain_encode
from fastquorum.wire.codec.source import FIRST_BYTE, Source, wire_fields
from fastquorum.wire.codec.varint import Malformed, uvarint, uvarint_tail
from fastquorum.wire.message import Struct
from fastquorum.wire.types import IMPLIED, STRING_BYTES_MAX, Field, Shape, WireType

TAGS_END: Final = 1 << 32
"""Above every tag."""
FAULTS: Final = (Malformed, struct.error, AttributeError, TypeError, ValueError, OverflowError)
"""What a value that does not fit its declaration raises inside a generated encoder."""


def _check_unknown(unknown: tuple[tuple[int, bytes], ...], declared: tuple[int, ...]) -> None:
    last = -1
    for tag, _ in unknown:
        if tag <= last or tag in declared:
            raise Malformed("not ascending, or declared")
        last = tag


def _unknown_between(unknown: tuple[tuple[int, bytes], ...], after: int, before: int) -> bytes:
    """The kept entries that stand between two declared tags."""
    return b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in unknown if after < tag < before)


SCOPE: Final[dict[str, Any]] = {
    "uvarint": uvarint,
    "uvarint_tail": uvarint_tail,
    "check_unknown": _check_unknown,
    "unknown_between": _unknown_between,
    "pack_array": struct.pack,
    "Malformed": Malformed,
    "FAULTS": FAULTS,
}


class EncoderSource(Source):
    """Writes the encoder of one class at one version."""

    def __init__(self, cls: type[Struct], version: int, flexible: bool) -> None:
        super().__init__({**SCOPE, "explain": explain_encode, "cls": cls})
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.run: list[tuple[str, str]] = []
        """Pending fixed-size writes: (value, code)."""
        self.sink = "add"
        """The local that takes finished parts."""

    def build(self) -> Any:
        self.emit("try:")
        self.depth = 2
        self.emit("parts = []", "add = parts.append")
        self.write_struct("m", self.cls)
        self.flush()
        self.emit("return b''.join(parts)")
        self.depth = 1
        self.emit("except FAULTS as fault:", f"    explain(cls, m, {self.version}, fault)")
        return self.compile("encode", "m", f"encode {self.cls.__qualname__} v{self.version}")

    # --- runs -------------------------------------------------------------------------------------------------------

    def put(self, value: str, code: str) -> None:
        self.run.append((value, code))

    def flush(self) -> None:
        """Write the pending run."""
        if self.run:
            pack = self.packer("pack", "".join(code for _, code in self.run))
            self.emit(f"{self.sink}({pack}({', '.join(value for value, _ in self.run)}))")
            self.run = []

    def put_uvarint(self, name: str) -> None:
        """Write the varint of local `name`: its first byte closes the pending run."""
        self.put(f"{name} if {name} < 128 else {name} & 127 | 128", FIRST_BYTE)
        self.flush()
        self.emit(f"if {name} > 127: {self.sink}(uvarint_tail({name}))")

    # --- structs ----------------------------------------------------------------------------------------------------

    def write_struct(self, source: str, cls: type[Struct]) -> None:
        plain, tagged, absent = wire_fields(cls.__wire__.fields, self.version)
        lost = [self.differs(f"{source}.{each.name}", each) for each in absent if not each.ignorable]
        if not self.flexible:
            lost.append(f"{source}.unknown_tags")
        if lost:
            self.emit(f"if {' or '.join(lost)}: raise Malformed('not in this version')")
        for each in plain:
            self.write_field(f"{source}.{each.name}", each)
        if self.flexible:
            self.write_tags(source, tagged)

    def differs(self, value: str, each: Field) -> str:
        """An expression: is `value` not the field's default?"""
        if each.default is not IMPLIED:
            if each.default is None:
                return f"{value} is not None"
            plain = isinstance(each.default, str | int)
            literal = repr(each.default) if plain else self.constant("default", each.default)
            return value if literal == "''" and not each.nullable.has(self.version) else f"{value} != {literal}"
        if each.type.shape is Shape.ARRAY:
            return f"{value} != []" if each.nullable.has(self.version) else value
        return f"{value} != {self.constant('default', each.fresh_default())}"

    def write_tags(self, source: str, tagged: list[Field]) -> None:
        count, unknown = self.local("tags"), self.local("unknown")
        flags = [self.local("has") for _ in tagged]
        for flag, each in zip(flags, tagged, strict=True):
            self.emit(f"{flag} = 1 if {self.tag_differs(f'{source}.{each.name}', each)} else 0")
        self.emit(f"{unknown} = {source}.unknown_tags")
        self.emit(f"{count} = {' + '.join([*flags, f'len({unknown})'])}")
        self.put_uvarint(count)
        self.emit(f"if {count}:")
        self.depth += 1
        self.emit(f"if {unknown}: check_unknown({unknown}, {tuple(each.tag for each in tagged)})")
        after = -1
        for flag, each in zip(flags, tagged, strict=True):
            if each.tag > after + 1:
                self.emit(f"if {unknown}: {self.sink}(unknown_between({unknown}, {after}, {each.tag}))")
            after = each.tag
            self.emit(f"if {flag}:")
            self.depth += 1
            self.write_tag(f"{source}.{each.name}", each)
            self.depth -= 1
        self.emit(f"if {unknown}: {self.sink}(unknown_between({unknown}, {after}, {TAGS_END}))")
        self.depth -= 1

    def write_tag(self, value: str, each: Field) -> None:
        """Write tag, size and value of a field that is not at its default. Common shapes know their size beforehand."""
        assert each.tag < 128
        match each.type.shape:
            case Shape.FIXED:
                self.put(str(each.tag), FIRST_BYTE)
                self.put(str(each.type.size), FIRST_BYTE)
                self.write_fixed(value, each.type)
                self.flush()
            case Shape.STRING if each.default is None or not each.is_nullable(self.version):
                data, size = self.local("v"), self.local("n")
                self.emit(f"{data} = {value}.encode()", f"{size} = len({data}) + 1")
                self.put(str(each.tag), FIRST_BYTE)
                self.put(size, FIRST_BYTE)
                self.put(size, FIRST_BYTE)
                self.emit(f"if {size} < 128:")
                self.depth += 1
                self.flush()
                self.emit(f"{self.sink}({data})")
                self.depth -= 1
                self.emit("else:")
                self.depth += 1
                self.write_sized_tag(value, each)
                self.depth -= 1
            case _:
                self.write_sized_tag(value, each)

    def write_sized_tag(self, value: str, each: Field) -> None:
        """Write tag, size and value by writing the value aside first."""
        part, sink, payload = self.local("part"), self.sink, self.local("v")
        self.emit(f"{part}s = []", f"{part} = {part}s.append")
        self.sink = part
        self.write_field(value, each)
        self.flush()
        self.sink = sink
        self.emit(f"{payload} = b''.join({part}s)")
        self.emit(f"{sink}({bytes((each.tag,))!r} + uvarint(len({payload})) + {payload})")

    def tag_differs(self, value: str, each: Field) -> str:
        """Return an expression like `differs`; a tagged struct is compared by field, which spares building a
        default."""
        if each.default is IMPLIED and each.type.shape is Shape.STRUCT and not each.nullable.has(self.version):
            assert each.type.struct is not None
            nested = each.type.struct.__wire__.fields
            if all(inner.default is not IMPLIED for inner in nested):
                name = self.local("s")
                self.emit(f"{name} = {value}")
                parts = [self.differs(f"{name}.{inner.name}", inner) for inner in nested]
                return " or ".join([*parts, f"{name}.unknown_tags"])
        return self.differs(value, each)

    # --- fields -----------------------------------------------------------------------------------------------------

    def write_field(self, value: str, each: Field) -> None:
        self.write_value(value, each.type, each.is_nullable(self.version), self.flexible and each.flexible)

    def write_value(self, value: str, wire_type: WireType[Any], nullable: bool, compact: bool) -> None:
        match wire_type.shape:
            case Shape.FIXED:
                self.write_fixed(value, wire_type)
            case Shape.STRUCT:
                self.write_nested(value, wire_type, nullable)
            case Shape.ARRAY:
                assert wire_type.element is not None
                items = self.write_size(value, Shape.ARRAY, nullable, compact)
                self.write_array(items, wire_type.element, compact)
            case shape:
                data = self.write_size(value, shape, nullable, compact)
                self.emit(f"{self.sink}({data})")

    def write_fixed(self, value: str, wire_type: WireType[Any]) -> None:
        if wire_type.name == "uuid":
            name = self.local("id")
            self.emit(f"{name} = {value}", f"if len({name}) != 16: raise Malformed('not a uuid')")
            value = name
        self.put(value, wire_type.code)

    def write_size(self, value: str, shape: Shape, nullable: bool, compact: bool) -> str:
        """Write the length or count of `value`; the name of the local that holds what follows it (empty for null)."""
        data, size = self.local("v"), self.local("n")
        empty = "()" if shape is Shape.ARRAY else "b''"
        self.emit(f"{data} = {value}")
        if nullable:
            self.emit(f"if {data} is None: {data} = {empty}; {size} = -1", "else:")
            self.depth += 1
        if shape is Shape.STRING:
            self.emit(f"{data} = {data}.encode()")
        self.emit(f"{size} = len({data})")
        if shape is Shape.STRING:
            self.emit(f"if {size} > {STRING_BYTES_MAX}: raise Malformed('string too long')")
        if nullable:
            self.depth -= 1
        if compact:
            self.emit(f"{size} += 1")
            self.put_uvarint(size)
        else:
            self.put(size, "h" if shape is Shape.STRING else "i")
            self.flush()
        return data

    def write_array(self, items: str, element: WireType[Any], compact: bool) -> None:
        if element.shape is Shape.FIXED and element.name != "uuid":
            self.emit(f"if {items}: {self.sink}(pack_array(f'>{{len({items})}}{element.code}', *{items}))")
            return
        item = self.local("o")
        self.emit(f"for {item} in {items}:")
        self.depth += 1
        self.write_value(item, element, False, compact)
        self.flush()
        self.depth -= 1

    def write_nested(self, value: str, wire_type: WireType[Any], nullable: bool) -> None:
        assert wire_type.struct is not None
        name = self.local("s") if "." in value else value
        if nullable:
            self.flush()
            self.emit(f"{name} = {value}", f"if {name} is None: {self.sink}(b'\\xff')", "else:")
            self.depth += 1
            self.put("1", "b")
        elif name != value:
            self.emit(f"{name} = {value}")
        self.write_struct(name, wire_type.struct)
        if nullable:
            self.flush()
            self.depth -= 1
