"""Messages as JSON values, exactly as Kafka's generated `*DataJsonConverter` classes print and read them.

Keys are camelCase, in declaration order. A version's fields are all there, except tagged fields at their default.
Uuids are their 22 characters, bytes and records base64. Unknown tagged fields have no JSON form. One deviation, in
reading: an unknown key is an error, because a misspelt tagged field would otherwise pass as its default.
"""

import base64
from typing import Any, TypeVar

from fastquorum.errors import WireError
from fastquorum.types import Uuid
from fastquorum.wire.codec.codec import check_version
from fastquorum.wire.codec.faults import find_fault
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import Field, Shape, WireType

M = TypeVar("M", bound=Message)


def to_json(message: Message, version: int) -> dict[str, Any]:
    """The JSON object of `message` in `version`. Raises WireError where `encode` would."""
    cls = type(message)
    check_version(cls, version)
    found = find_fault(message, version, cls.__wire__.flexible.has(version))
    if found is not None:
        path, detail = found
        raise WireError(detail, cls.__qualname__, version, path)
    return _struct_to_json(message, version)


def _struct_to_json(value: Struct, version: int) -> dict[str, Any]:
    out = {}
    for each in type(value).__wire__.fields:
        if each.versions.has(version):
            inner = getattr(value, each.name)
            if not each.is_tagged(version) or inner != each.fresh_default():
                out[each.json_name] = _to_json(inner, each.type, version)
    return out


def _to_json(value: Any, wire_type: WireType[Any], version: int) -> Any:
    if value is None:
        return None
    match wire_type.shape:
        case Shape.STRUCT:
            return _struct_to_json(value, version)
        case Shape.ARRAY:
            assert wire_type.element is not None
            element = wire_type.element
            return [_to_json(item, element, version) for item in value]
        case Shape.BYTES:
            return base64.b64encode(value).decode("ascii")
        case _:
            return str(value) if wire_type.name == "uuid" else value


def from_json(cls: type[M], version: int, value: object) -> M:
    """Build a message from its JSON object.

    Raises:
        WireError: a key is missing or unknown, or a value does not fit its field; `field` is its JSON path.
        UnsupportedVersion: the message has no such version.
    """
    check_version(cls, version)
    message: M = _Reader(cls, version).struct(cls, value, "")
    return message


class _Reader:
    """Reads one message; knows its name and version for errors."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.name = cls.__qualname__
        self.version = version

    def refuse(self, path: str, detail: str) -> WireError:
        return WireError(detail, self.name, self.version, path)

    def struct(self, cls: type[Any], value: object, path: str) -> Any:
        if not isinstance(value, dict):
            raise self.refuse(path, f"expected a JSON object, not {value!r}")
        present = [each for each in cls.__wire__.fields if each.versions.has(self.version)]
        known = {each.json_name for each in present}
        for key in value:
            if key not in known:
                raise self.refuse(f"{path}.{key}".lstrip("."), "this version has no such field")
        return cls(**{each.name: self.field(each, value, f"{path}.{each.json_name}".lstrip(".")) for each in present})

    def field(self, each: Field, parent: dict[str, object], path: str) -> Any:
        if each.json_name not in parent:
            if each.is_tagged(self.version):
                return each.fresh_default()
            raise self.refuse(path, "is missing")
        value = parent[each.json_name]
        if value is None:
            if not each.is_nullable(self.version):
                raise self.refuse(path, "is null, which this version does not allow")
            return None
        return self.value(each.type, value, path)

    def value(self, wire_type: WireType[Any], value: object, path: str) -> Any:
        match wire_type.shape:
            case Shape.STRUCT:
                assert wire_type.struct is not None
                return self.struct(wire_type.struct, value, path)
            case Shape.ARRAY:
                assert wire_type.element is not None
                if not isinstance(value, list):
                    raise self.refuse(path, f"expected a JSON array, not {value!r}")
                element = wire_type.element
                return [self.value(element, item, f"{path}[{index}]") for index, item in enumerate(value)]
            case _:
                return self.scalar(wire_type, value, path)

    def scalar(self, wire_type: WireType[Any], value: object, path: str) -> Any:
        match wire_type.name, value:
            case "bool", bool():
                return value
            case "string", str():
                return value
            case "uuid", str():
                try:
                    return Uuid.parse(value)
                except ValueError as error:
                    raise self.refuse(path, str(error)) from error
            case (("bytes" | "records"), str()):
                try:
                    return base64.b64decode(value, validate=True)
                except ValueError as error:
                    raise self.refuse(path, f"{value!r} is not base64: {error}") from error
            case "float64", int() | float() if not isinstance(value, bool):
                return float(value)
            case (("int8" | "int16" | "uint16" | "int32" | "int64"), int()) if not isinstance(value, bool):
                return self.integer(wire_type, value, path)
        raise self.refuse(path, f"{value!r} is not of type {wire_type.name}")

    def integer(self, wire_type: WireType[Any], value: int, path: str) -> int:
        bits = 8 * wire_type.size
        low, high = (0, 2**bits) if wire_type.name == "uint16" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        if not low <= value < high:
            raise self.refuse(path, f"{value} is not of type {wire_type.name}")
        return value
