"""A message as JSON text, by its layout: fields in wire order, then those that are tagged and not at their default.

A field looks as Kafka's `*DataJsonConverter` classes print it: Uuids are their 22 characters, bytes base64,
and numbers that JSON does not have are strings. Unknown tagged fields have no JSON form.
"""

import base64
import json
import math
from typing import Any

from fastquorum.kernels.messages import FieldLayout, Fresh, StructLayout, ValueKind, ValueLayout


def message_text(message: Any, layout: StructLayout) -> str:
    """The JSON object of `message`, without a blank."""
    return _text(_struct_form(message, layout))


def default_text(field: FieldLayout) -> str:
    """What the default of a field would look like."""
    return _text(_form(_default(field), field.value))


def _text(form: Any) -> str:
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def _default(field: FieldLayout) -> Any:
    if field.default is not Fresh.FRESH:
        return field.default
    if field.value.kind is ValueKind.ARRAY:
        return []
    assert field.value.struct is not None
    return field.value.struct.cls()


def _struct_form(message: Any, layout: StructLayout) -> dict[str, Any]:
    form = {each.json_name: _form(getattr(message, each.name), each.value) for each in layout.plain}
    for each in layout.tagged:
        value = getattr(message, each.name)
        if value != _default(each):
            form[each.json_name] = _form(value, each.value)
    return form


def _form(value: Any, layout: ValueLayout) -> Any:
    if value is None:
        return None
    match layout.kind:
        case ValueKind.STRUCT:
            assert layout.struct is not None
            return _struct_form(value, layout.struct)
        case ValueKind.ARRAY:
            assert layout.element is not None
            element = layout.element
            return [_form(each, element) for each in value]
        case ValueKind.BYTES:
            return base64.b64encode(value).decode("ascii")
        case ValueKind.UUID:
            return str(value)
        case ValueKind.FLOAT64 if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value
