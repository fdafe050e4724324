"""JSON lines, one frame pair each: what the `wire` commands have in common.

A line is an object with `api_key`, `api_version` and the two frames (without their 4-byte length) as hex, as JSON, or
both. Fields that are not ours pass through untouched.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from fastquorum.errors import FastQuorumError, UsageError
from fastquorum.wire import ApiKey

Line = dict[str, Any]


def each_line(convert: Callable[[Line], Line]) -> int:
    """Convert stdin to stdout, in order. A bad line is named on stderr, and the others go on; the exit code."""
    bad = 0
    for number, text in enumerate(sys.stdin.buffer, 1):
        if not text.strip():
            continue
        try:
            print(json.dumps(convert(parse_line(text))), flush=True)
        except FastQuorumError as error:
            bad += 1
            print(f"line {number}: {error}", file=sys.stderr)
    return UsageError.exit_code if bad else 0


def parse_line(text: bytes) -> Line:
    """A JSON object. UsageError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("is not a JSON object")
    return value


def api_key(value: object, what: str = "api_key") -> int:
    """A number, a number as text, or a name: 18, "18", "ApiVersions", "API_VERSIONS". UsageError naming what it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value.removeprefix("-").isdecimal():
            return int(value)
        wanted = value.replace("_", "").lower()
        for key in ApiKey:
            if key.name.replace("_", "").lower() == wanted:
                return key
    raise UsageError(f"{what}: {value!r} is not an API", "`fastquorum wire spec` lists them")


def frame_bytes(line: Line, name: str) -> bytes:
    """A frame in hex. UsageError."""
    try:
        return bytes.fromhex(line[name])
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} is not hex: {error}") from error


def whole(line: Line, name: str) -> int:
    """An integer field, as a number or as text."""
    value = line.get(name)
    if isinstance(value, str) and value.removeprefix("-").isdecimal():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{name}: {value!r} is not a whole number" if name in line else f"{name} is missing")
    return value
