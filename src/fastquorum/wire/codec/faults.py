"""Why a message cannot be encoded: walks the declaration beside the value and names the first field that does not fit.

Slow and plain on purpose; it runs only after a generated encoder has failed.
"""

import struct
from typing import Any, NoReturn

from fastquorum.errors import WireError
from fastquorum.wire.codec.source import wire_fields
from fastquorum.wire.message import Struct
from fastquorum.wire.types import STRING_BYTES_MAX, Field, Shape, WireType


def explain_encode(cls: type[Struct], message: Struct, version: int, fault: Exception) -> NoReturn:
    """Raise the WireError that tells why `message` has no bytes as a `cls` in `version`; `fault` itself if it is our
    bug."""
    if not isinstance(message, cls):
        raise WireError(f"is {_kind(message)}, expected {cls.__qualname__}", cls.__qualname__, version) from fault
    flexible = type(message).__wire__.flexible.has(version)
    found = find_fault(message, version, flexible)
    if found is None:
        raise fault
    path, detail = found
    raise WireError(detail, type(message).__qualname__, version, path) from fault


def find_fault(value: Struct, version: int, flexible: bool, path: str = "") -> tuple[str, str] | None:
    """(field path, what is wrong), or None if `value` fits."""
    for each in type(value).__wire__.fields:
        where = f"{path}.{each.name}".lstrip(".")
        try:
            inner = getattr(value, each.name)
        except AttributeError:
            return where, "is not set"
        if each.versions.has(version):
            found = _value_fault(inner, each.type, each.is_nullable(version), version, flexible, where)
        else:
            found = _absent_fault(inner, each, where)
        if found is not None:
            return found
    return _tags_fault(value, version, flexible, path)


def _absent_fault(value: Any, each: Field, path: str) -> tuple[str, str] | None:
    if each.ignorable or value == each.fresh_default():
        return None
    return path, f"this version cannot carry it, and {value!r} is not its default (present in versions {each.versions})"


def _tags_fault(value: Struct, version: int, flexible: bool, path: str) -> tuple[str, str] | None:
    where = f"{path}.unknown_tags".lstrip(".")
    unknown: Any = value.unknown_tags
    if not isinstance(unknown, tuple):
        return where, f"is {_kind(unknown)}, expected a tuple of (tag, bytes)"
    if unknown and not flexible:
        return where, "this version has no tagged fields"
    _, tagged, _ = wire_fields(type(value).__wire__.fields, version)
    declared = [each.tag for each in tagged]
    last = -1
    for entry in unknown:
        match entry:
            case (int(tag), bytes()) if tag >= 0:
                if tag in declared:
                    return where, f"tag {tag} is a declared field"
                if tag <= last:
                    return where, f"tag {tag} comes after tag {last}"
                last = tag
            case _:
                return where, f"{entry!r} is not (tag, bytes)"
    return None


def _value_fault(
    value: Any, wire_type: WireType[Any], nullable: bool, version: int, flexible: bool, path: str
) -> tuple[str, str] | None:
    if value is None:
        return None if nullable else (path, "is None, which this version does not allow")
    match wire_type.shape:
        case Shape.FIXED:
            return _fixed_fault(value, wire_type, path)
        case Shape.STRING:
            return _string_fault(value, path)
        case Shape.BYTES:
            if not isinstance(value, bytes | bytearray | memoryview):
                return path, f"is {_kind(value)}, expected bytes"
        case Shape.ARRAY:
            assert wire_type.element is not None
            if not isinstance(value, list | tuple):
                return path, f"is {_kind(value)}, expected a list"
            for index, item in enumerate(value):
                found = _value_fault(item, wire_type.element, False, version, flexible, f"{path}[{index}]")
                if found is not None:
                    return found
        case Shape.STRUCT:
            assert wire_type.struct is not None
            if not isinstance(value, wire_type.struct):
                return path, f"is {_kind(value)}, expected {wire_type.struct.__qualname__}"
            return find_fault(value, version, flexible, path)
    return None


def _fixed_fault(value: Any, wire_type: WireType[Any], path: str) -> tuple[str, str] | None:
    if wire_type.name == "uuid":
        fits = isinstance(value, bytes) and len(value) == 16
    else:
        try:
            struct.pack(">" + wire_type.code, value)
            fits = True
        except (struct.error, OverflowError):
            fits = False
    return None if fits else (path, f"{value!r} is not of type {wire_type.name}")


def _string_fault(value: Any, path: str) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return path, f"is {_kind(value)}, expected a str"
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        return path, f"cannot be encoded as UTF-8: {error.reason} at character {error.start}"
    if size > STRING_BYTES_MAX:
        return path, f"{size} bytes are over the {STRING_BYTES_MAX} of a string"
    return None


def _kind(value: Any) -> str:
    return f"of type {type(value).__name__}"
