"""Generates, for one class and version, the Python function that decodes it.

The generated function reads runs of fixed-size fields with one `Struct` each and checks every length and count
against the bytes that are left, and against the elements that the caller takes at most, before it allocates. Which
field an error belongs to costs the good path nothing: it is looked up from the failing line.
"""

import struct
from typing import Any, Final, NoReturn

from fastquorum.errors import WireError
from fastquorum.types import Uuid
from fastquorum.wire.codec.source import FIRST_BYTE, Source, foreign_tags, size_min, wire_fields
from fastquorum.wire.codec.varint import Malformed, read_uvarint
from fastquorum.wire.message import Struct
from fastquorum.wire.types import IMPLIED, STRING_BYTES_MAX, Field, Shape, WireType

FAULTS: Final = (Malformed, IndexError, struct.error, UnicodeDecodeError)
"""What malformed bytes raise inside a generated decoder; anything else is a bug of ours."""


def _too_long(what: str, size: int, left: int) -> Malformed:
    if size < 0:
        return Malformed(f"{what} {size} is negative")
    return Malformed(f"{what} needs {size} bytes, {left} are left")


def _too_many(what: str, count: int, room: int) -> Malformed:
    return Malformed(f"{what} of {count}, where {count + room} are taken")


def _read_unknown_tags(
    buffer: "bytes | memoryview", position: int, count: int, foreign: tuple[int, ...]
) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """Read the tag section of a struct that declares no tags; the entries and the position after them."""
    entries = []
    last = -1
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        if tag <= last:
            raise Malformed(f"tag {tag} comes after tag {last}")
        if tag in foreign:
            raise Malformed(f"tag {tag} belongs to another version")
        if size > len(buffer) - position:
            raise _too_long(f"tag {tag}", size, len(buffer) - position)
        entries.append((tag, bytes(buffer[position : position + size])))
        position += size
        last = tag
    return tuple(entries), position


def _text_of_view(view: memoryview) -> str:
    return str(view, "utf-8")


SCOPE: Final[dict[str, Any]] = {
    "new": object.__new__,
    "new_bytes": bytes.__new__,  # a Uuid without Uuid's own length check: its 16 bytes were read as such
    "Uuid": Uuid,
    "read_unknown_tags": _read_unknown_tags,
    "read_uvarint": read_uvarint,
    "Malformed": Malformed,
    "too_long": _too_long,
    "too_many": _too_many,
    "unpack_array": struct.unpack_from,
    "FAULTS": FAULTS,
    "absent": IMPLIED,
}


class DecoderSource(Source):
    """Writes the decoder of one class at one version."""

    def __init__(self, cls: type[Struct], version: int, flexible: bool, of_bytes: bool) -> None:
        super().__init__(dict(SCOPE))
        self.scope["text"] = bytes.decode if of_bytes else _text_of_view
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.run: list[tuple[str, str, str]] = []
        """Pending fixed-size reads: (target, code, path)."""
        self.after_run: list[str] = []
        self.trace: list[tuple[int, str, tuple[tuple[str, int], ...]]] = []
        """(first line, path, sizes of the run read there), ascending: which field a line belongs to."""

    def build(self) -> Any:
        self.emit("try:")
        self.depth = 2
        self.at("")
        self.emit("end = len(buf)")
        self.read_struct("m", self.cls, "")
        self.flush()
        self.emit("return m, pos")
        self.depth = 1
        self.emit("except FAULTS as fault:", "    explain(fault, pos, buf)")
        title = f"decode {self.cls.__qualname__} v{self.version}"
        self.scope["explain"] = Explainer(self.cls.__qualname__, self.version, self.trace, f"<{title}>")
        return self.compile("decode", "buf, pos, room", title)

    # --- runs and error positions -----------------------------------------------------------------------------------

    def at(self, path: str, sizes: tuple[tuple[str, int], ...] = ()) -> None:
        """Note that the lines emitted next belong to the field at `path`. Line 1 is the `def`."""
        self.trace.append((len(self.lines) + 2, path, sizes))

    def take(self, target: str, code: str, path: str) -> None:
        self.run.append((target, code, path))

    def flush(self) -> None:
        """Read the pending run."""
        if self.run:
            codes = "".join(code for _, code, _ in self.run)
            sizes = tuple((path, struct.calcsize(">" + code)) for _, code, path in self.run)
            self.at(self.run[0][2], sizes)
            if codes == FIRST_BYTE:
                self.emit(f"{self.run[0][0]} = buf[pos]")
            else:
                unpack = self.packer("unpack_from", codes)
                self.emit(f"{', '.join(target for target, _, _ in self.run)}, = {unpack}(buf, pos)")
            self.emit(f"pos += {struct.calcsize('>' + codes)}")
            self.run = []
        self.emit(*self.after_run)
        self.after_run = []

    def take_uvarint(self, name: str, path: str) -> None:
        """Read a varint into `name`: its first byte closes the pending run."""
        self.take(name, FIRST_BYTE, path)
        self.flush()
        self.at(path)
        self.emit(f"if {name} > 127: {name}, pos = read_uvarint(buf, pos - 1)")

    # --- structs ----------------------------------------------------------------------------------------------------

    def read_struct(self, target: str, cls: type[Struct], path: str) -> None:
        """Create `target` and read it. Ends with its last run still pending where the version has no tag section."""
        self.emit(f"{target} = new({self.constant(cls.__name__, cls)})")
        plain, tagged, absent = wire_fields(cls.__wire__.fields, self.version)
        for each in absent:
            self.set_default(target, each)
        for each in plain:
            self.read_field(f"{target}.{each.name}", each, f"{path}.{each.name}".lstrip("."))
        if not self.flexible:
            self.emit(f"{target}.unknown_tags = ()")
            return
        self.read_tag_section(target, tagged, path, cls.__wire__.fields)

    def set_default(self, target: str, each: Field) -> None:
        """Give a field that is not on the wire its default."""
        if each.default is not IMPLIED:
            literal = repr(each.default) if isinstance(each.default, str | int | None) else ""
            self.emit(f"{target}.{each.name} = {literal or self.constant('default', each.default)}")
        elif each.type.shape is Shape.ARRAY:
            self.emit(f"{target}.{each.name} = []")
        else:
            assert each.type.struct is not None
            self.set_struct_default(f"{target}.{each.name}", each.type.struct)

    def set_struct_default(self, target: str, cls: type[Struct]) -> None:
        name = self.local("d")
        self.emit(f"{target} = {name} = new({self.constant(cls.__name__, cls)})")
        for each in cls.__wire__.fields:
            self.set_default(name, each)
        self.emit(f"{name}.unknown_tags = ()")

    def read_tag_section(self, target: str, tagged: list[Field], path: str, fields: tuple[Field, ...]) -> None:
        tag_path = f"{path}.(tags)".lstrip(".")
        self.emit(f"{target}.unknown_tags = ()")
        fresh = {each.name: self.local("t") for each in tagged if each.default is IMPLIED}
        for each in tagged:
            if each.name not in fresh:
                self.set_default(target, each)
        for name in fresh.values():
            self.emit(f"{name} = absent")
        count = self.local("tags")
        self.take_uvarint(count, tag_path)
        self.emit(f"if {count}:")
        self.depth += 1
        self.emit(f"if {count} > (end - pos) // 2: raise too_long('tag section', 2 * {count}, end - pos)")
        self.take_room(count, "a tag section")
        foreign = foreign_tags(fields, self.version)
        if tagged:
            self.read_tags(target, count, tagged, path, fresh, foreign)
        else:
            self.emit(f"{target}.unknown_tags, pos = read_unknown_tags(buf, pos, {count}, {foreign})")
        self.depth -= 1
        for each in tagged:
            if each.name in fresh:
                self.emit(f"if {fresh[each.name]} is absent:")
                self.depth += 1
                self.set_default(target, each)
                self.depth -= 1
                self.emit(f"else: {target}.{each.name} = {fresh[each.name]}")

    def read_tags(
        self,
        target: str,
        count: str,
        tagged: list[Field],
        path: str,
        fresh: dict[str, str],
        foreign: tuple[int, ...],
    ) -> None:
        """Read a tag section that is not empty. `fresh` are the locals of fields whose default is a new object."""
        tag_path = f"{path}.(tags)".lstrip(".")
        last, tag, stop, index = (self.local(stem) for stem in ("last", "tag", "stop", "i"))
        unknown = self.local("unknown")
        self.emit(f"{last} = -1", f"{unknown} = []")
        self.emit(f"for {index} in range({count}):")
        self.depth += 1
        self.emit(f"{tag} = buf[pos]; {stop} = buf[pos + 1]")
        self.emit(f"if {tag} | {stop} < 128: pos += 2")
        self.emit(f"else: {tag}, pos = read_uvarint(buf, pos); {stop}, pos = read_uvarint(buf, pos)")
        self.emit(f"if {tag} <= {last}: raise Malformed(f'tag {{{tag}}} comes after tag {{{last}}}')")
        if foreign:
            self.emit(f"if {tag} in {foreign}: raise Malformed(f'tag {{{tag}}} belongs to another version')")
        self.emit(f"{last} = {tag}")
        self.emit(f"if {stop} > end - pos: raise too_long(f'tag {{{tag}}}', {stop}, end - pos)")
        self.emit(f"{stop} += pos")
        branch = "if"
        for each in tagged:
            self.emit(f"{branch} {tag} == {each.tag}:")
            branch = "elif"
            self.depth += 1
            field_path = f"{path}.{each.name}".lstrip(".")
            self.read_field(fresh.get(each.name, f"{target}.{each.name}"), each, field_path)
            self.flush()
            self.at(field_path)
            self.emit(f"if pos != {stop}: raise Malformed(f'its tagged size ends at {{{stop}}}, its value at {{pos}}')")
            self.depth -= 1
        self.at(tag_path)
        self.emit("else:")
        self.emit(f"    {unknown}.append(({tag}, bytes(buf[pos:{stop}])))")
        self.emit(f"    pos = {stop}")
        self.depth -= 1
        self.emit(f"if {unknown}: {target}.unknown_tags = tuple({unknown})")

    # --- fields -----------------------------------------------------------------------------------------------------

    def read_field(self, target: str, each: Field, path: str) -> None:
        self.read_value(target, each.type, each.is_nullable(self.version), self.flexible and each.flexible, path)

    def read_value(self, target: str, wire_type: WireType[Any], nullable: bool, compact: bool, path: str) -> None:
        match wire_type.shape:
            case Shape.FIXED:
                self.read_fixed(target, wire_type, path)
            case Shape.STRUCT:
                self.read_nested(target, wire_type, nullable, path)
            case shape:
                size = self.read_size(shape, compact, path)
                left = "is null, which this version does not allow"
                self.emit(f"if {size} < 0:")
                if nullable:
                    self.emit(f"    if {size} != -1: raise Malformed(f'length {{{size}}} is negative')")
                    self.emit(f"    {target} = None")
                else:
                    self.emit(f"    raise Malformed('{left}' if {size} == -1 else f'length {{{size}}} is negative')")
                self.emit("else:")
                self.depth += 1
                if shape is Shape.ARRAY:
                    assert wire_type.element is not None
                    self.read_array(target, wire_type.element, size, compact, path)
                else:
                    self.read_bytes(target, shape, size)
                self.depth -= 1

    def read_fixed(self, target: str, wire_type: WireType[Any], path: str) -> None:
        if wire_type.name == "uuid":
            raw = self.local("id")
            self.take(raw, wire_type.code, path)
            self.after_run.append(f"{target} = new_bytes(Uuid, {raw})")
        else:
            self.take(target, wire_type.code, path)

    def read_size(self, shape: Shape, compact: bool, path: str) -> str:
        """Read a length or count into a local: -1 for null."""
        size = self.local("n")
        if compact:
            self.take_uvarint(size, path)
            self.emit(f"{size} -= 1")
        else:
            self.take(size, "h" if shape is Shape.STRING else "i", path)
            self.flush()
            self.at(path)
        return size

    def read_bytes(self, target: str, shape: Shape, size: str) -> None:
        self.emit(f"if {size} > end - pos: raise too_long('length', {size}, end - pos)")
        if shape is Shape.STRING:
            limit = STRING_BYTES_MAX
            self.emit(f"if {size} > {limit}: raise Malformed(f'a string of {{{size}}} bytes is over {limit}')")
            self.emit(f"{target} = text(buf[pos:pos + {size}])")
        else:
            self.emit(f"{target} = bytes(buf[pos:pos + {size}])")
        self.emit(f"pos += {size}")

    def read_array(self, target: str, element: WireType[Any], size: str, compact: bool, path: str) -> None:
        bytes_min = max(1, size_min(element, self.version, compact))
        self.emit(f"if {size} * {bytes_min} > end - pos: raise too_long('array', {size} * {bytes_min}, end - pos)")
        self.take_room(size, "an array")
        if element.shape is Shape.FIXED and element.name != "uuid":
            self.emit(f"{target} = [*unpack_array(f'>{{{size}}}{element.code}', buf, pos)] if {size} else []")
            self.emit(f"pos += {size} * {element.size}")
            return
        items, item, index = self.local("items"), self.local("o"), self.local("i")
        self.emit(f"{target} = {items} = []", f"for {index} in range({size}):")
        self.depth += 1
        self.read_value(item, element, False, compact, path + "[]")
        self.flush()
        self.emit(f"{items}.append({item})")
        self.depth -= 1

    def take_room(self, count: str, what: str) -> None:
        """All arrays and tag sections of a message share the room that the caller gives it."""
        self.emit(f"room -= {count}", f"if room < 0: raise too_many('{what}', {count}, room)")

    def read_nested(self, target: str, wire_type: WireType[Any], nullable: bool, path: str) -> None:
        assert wire_type.struct is not None
        name = self.local("s") if "." in target else target
        if nullable:
            mark = self.local("mark")
            self.take(mark, "b", path)
            self.flush()
            self.at(path)
            self.emit(f"if {mark} == -1: {target} = None")
            self.emit(f"elif {mark} != 1: raise Malformed(f'null mark {{{mark}}} is neither -1 nor 1')")
            self.emit("else:")
            self.depth += 1
        self.read_struct(name, wire_type.struct, path)
        if nullable:
            self.flush()
        if name != target:
            self.emit(f"{target} = {name}")
        if nullable:
            self.depth -= 1


class Explainer:
    """Turns what a generated decoder caught into a WireError that names field and byte."""

    def __init__(
        self, message: str, version: int, trace: list[tuple[int, str, tuple[tuple[str, int], ...]]], filename: str
    ) -> None:
        self.message = message
        self.version = version
        self.trace = trace
        self.filename = filename

    def __call__(self, fault: Exception, position: int, buffer: "bytes | memoryview") -> NoReturn:
        line = 0
        frame = fault.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename == self.filename:
                line = frame.tb_lineno
            frame = frame.tb_next
        path, sizes = "", tuple[tuple[str, int], ...]()
        for first, candidate, run in self.trace:
            if first <= line:
                path, sizes = candidate, run
        if isinstance(fault, Malformed):
            detail = str(fault)
        elif isinstance(fault, UnicodeDecodeError):
            detail = f"invalid UTF-8: {fault.reason}"
            position += fault.start
        else:
            detail = f"the message ends here, at {len(buffer)} bytes"
            for name, size in sizes:
                path = name
                if position + size > len(buffer):
                    break
                position += size
        raise WireError(detail, self.message, self.version, path, position) from fault
