"""A message's declared fields as rows of a table and as JSON, for all versions or for one.

Read from the declarations (`Message.__wire__`) and, for one version, from `fastquorum.wire.layout`; nothing about any
message is written here.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fastquorum.types import ZERO_UUID
from fastquorum.wire import LayoutField, Message, Struct, layout
from fastquorum.wire.types import IMPLIED, NO_VERSIONS, Field

_INDENT: Final = "  "


class PlacedField(NamedTuple):
    """A field and its place in a message."""

    field: Field
    path: str
    """The path as in a layout."""
    depth: int


def placed_fields(cls: type[Struct], path: str = "", depth: int = 0) -> Iterator[PlacedField]:
    """Yield every field in the order of declaration; the fields of a struct follow it."""
    for each in cls.__wire__.fields:
        here = f"{path}.{each.name}".lstrip(".")
        yield PlacedField(each, here, depth)
        inner = each.type if each.type.element is None else each.type.element
        if inner.struct is not None:
            yield from placed_fields(inner.struct, here if inner is each.type else f"{here}[]", depth + 1)


def fields_table(cls: type[Message], version: int | None) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    if version is None:
        header = ("FIELD", "TYPE", "VERSIONS", "TAG", "NULLABLE", "DEFAULT", "NOTES")
        return header, [_row(each, cls) for each in placed_fields(cls)]
    fields = {each.path: each.field for each in placed_fields(cls)}
    rows = [_layout_row(entry, fields) for entry in layout(cls, version)]
    return ("FIELD", "TYPE", "BEGINS", "TAG", "NULLABLE", "DEFAULT"), rows


def _row(placed: PlacedField, cls: type[Message]) -> tuple[object, ...]:
    each = placed.field
    tag = "" if each.tag < 0 else f"{each.tag} in {each.tagged}" if each.tagged != each.versions else str(each.tag)
    notes = [note for note, holds in (("ignorable", each.ignorable), ("never compact", not each.flexible)) if holds]
    return (
        _INDENT * placed.depth + each.json_name,
        each.type.name,
        each.versions,
        tag,
        "" if each.nullable == NO_VERSIONS else each.nullable,
        default_text(each),
        ", ".join(notes),
    )


def _layout_row(entry: LayoutField, fields: dict[str, Field]) -> tuple[object, ...]:
    if entry.type == "tags":
        return (f"{_INDENT * entry.depth}(tags)", "tags", "uvarint", "", "", "")
    each = fields[entry.path]
    fixed = f"{entry.size} byte{'s' if entry.size > 1 else ''}"
    begins = fixed if entry.framing == "fixed" else entry.framing
    tag = "" if entry.tag < 0 else entry.tag
    nullable = "yes" if entry.nullable else ""
    return (f"{_INDENT * entry.depth}{each.json_name}", entry.type, begins, tag, nullable, default_text(each))


def default_text(each: Field) -> str:
    """Return the default as JSON; empty if it is the type's own zero."""
    if each.default is IMPLIED or (each.default is not None and each.default == each.type.zero):
        return ""
    return json.dumps(_default_json(each.default))


def _default_json(default: Any) -> Any:
    return (
        str(default)
        if isinstance(default, type(ZERO_UUID))
        else default.hex()
        if isinstance(default, bytes)
        else default
    )


def fields_json(cls: type[Struct], version: int | None) -> list[dict[str, Any]]:
    """Return the fields in the form of Kafka's message definitions; with a version only its fields."""
    return [_field_json(each, version) for each in cls.__wire__.fields if version is None or each.versions.has(version)]


def _field_json(each: Field, version: int | None) -> dict[str, Any]:
    described: dict[str, Any] = {"name": each.json_name, "type": each.type.name, "versions": str(each.versions)}
    if each.tag >= 0 and (version is None or each.is_tagged(version)):
        described |= {"tag": each.tag, "taggedVersions": str(each.tagged)}
    if each.nullable != NO_VERSIONS:
        described["nullableVersions"] = str(each.nullable)
    if default_text(each):
        described["default"] = _default_json(each.default)
    if each.ignorable:
        described["ignorable"] = True
    if not each.flexible:
        described["flexibleVersions"] = "none"
    inner = each.type if each.type.element is None else each.type.element
    if inner.struct is not None:
        described["fields"] = fields_json(inner.struct, version)
    return described
