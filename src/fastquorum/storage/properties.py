"""Java's properties text, as in Kafka's `meta.properties`: enough to read what Kafka writes and to be read by it."""

from typing import Final

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_MUST_ESCAPE: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def format_properties(values: dict[str, str], comment: str = "") -> bytes:
    """Lines `key=value` in the order given."""
    lines = [f"# {comment}"] if comment else []
    lines += [f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}" for key, value in values.items()]
    return ("\n".join(lines) + "\n").encode("ascii")


def parse_properties(data: bytes) -> dict[str, str]:
    """Later keys win, as in Java. ValueError for a broken \\u escape; nothing else is an error in this format."""
    values: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        key, rest = _split(line)
        values[_unescape(key)] = _unescape(rest)
    return values


def _escape(text: str, *, is_key: bool) -> str:
    parts = []
    for at, char in enumerate(text):
        if char in _MUST_ESCAPE:
            parts.append(_MUST_ESCAPE[char])
        elif char in "=:#!" or (char == " " and (is_key or at == 0)):
            parts.append("\\" + char)
        elif not " " <= char <= "~":
            units = char.encode("utf-16-be")
            parts += [f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)]
        else:
            parts.append(char)
    return "".join(parts)


def _logical_lines(text: str) -> list[str]:
    """Without comments and blank lines; a line that ends in an odd number of backslashes goes on in the next."""
    lines: list[str] = []
    pending = ""
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        lines.append(pending)
        pending = ""
    if pending:
        lines.append(pending)
    return lines


def _split(line: str) -> tuple[str, str]:
    """Key and value as written: the key ends at the first unescaped `=`, `:` or blank."""
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    units: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and at < len(text):
            char = text[at]
            at += 1
            if char == "u":
                char = chr(int(text[at : at + 4], 16))
                at += 4
            else:
                char = _ESCAPES.get(char, char)
        units.append(char)
    return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
