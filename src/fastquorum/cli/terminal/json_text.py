"""JSON text as Kafka's tools print it: Jackson's compact form, Java's way of writing doubles."""

import math
from decimal import Decimal
from typing import Any, Final

_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
}


def jackson_text(value: Any) -> str:
    """The text of a JSON value made of dicts, lists, strings, numbers, booleans and None."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return java_double(value)
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case dict():
            return "{" + ",".join(f"{jackson_text(key)}:{jackson_text(inner)}" for key, inner in value.items()) + "}"
        case _:
            return "[" + ",".join(map(jackson_text, value)) + "]"


def java_double(value: float) -> str:
    """`Double.toString` of Java 19 and later: the shortest digits (of those with one or two, the nearest); plain from
    0.001 up to 10 million, else as 1.0E7.
    """
    if math.isnan(value) or math.isinf(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f'"{name}"'  # JSON has no such numbers; Jackson quotes them
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value) if "e" not in repr(value) else f"{Decimal(repr(value)):f}"
    shortest = Decimal(repr(value))
    if len(shortest.as_tuple().digits) == 1:
        shortest = Decimal(f"{value:.1e}")
    sign, digits, exponent = shortest.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    exponent += len(digits) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{exponent}"
