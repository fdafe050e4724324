"""Reading a recording back: what `wire sniff` wrote, or anybody in the same format; plain or gzip, a file or stdin."""

import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fastquorum.cli.wire.lines import Line, frame_bytes, parse_line
from fastquorum.errnos import reason
from fastquorum.errors import UsageError
from fastquorum.small_files import check_named_may_end

STDIN: Final = "-"
_GZIP_MAGIC: Final = b"\x1f\x8b"


class RecordedExchange(NamedTuple):
    """A recorded exchange with a whole request."""

    server: str
    connection: int
    """0 where the recording does not tell."""
    request: bytes
    response: bytes | None

    @property
    def api_key(self) -> int:
        return int.from_bytes(self.request[:2], "big", signed=True)

    @property
    def version(self) -> int:
        return int.from_bytes(self.request[2:4], "big", signed=True)


def line_texts(path: str) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of a recording, but empty ones. UsageError if it cannot be read."""
    if path != STDIN:
        check_named_may_end(path)
    try:
        with contextlib.ExitStack() as stack:
            source = sys.stdin.buffer if path == STDIN else stack.enter_context(open(path, "rb"))
            is_gzip = isinstance(source, io.BufferedReader) and source.peek(2)[:2] == _GZIP_MAGIC
            lines = gzip.GzipFile(fileobj=source) if is_gzip else source
            for number, text in enumerate(lines, 1):
                if text.strip():
                    yield number, text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path} is damaged: {error}") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {reason(error)}") from error


def count_lines(path: str) -> int:
    """How many `line_texts` will yield; 0 for what can be read only once."""
    return sum(1 for _ in line_texts(path)) if path != STDIN and Path(path).is_file() else 0


def recorded(text: bytes) -> RecordedExchange | None:
    """What there is to ask again on this line; None if no whole request was recorded. UsageError for a bad line."""
    line = parse_line(text)
    if "request" not in line:
        if "request_json" in line:
            raise UsageError("the request is given as JSON only", "let `fastquorum wire encode` add its bytes")
        if _was_sniffed(line):
            return None
        raise UsageError("request is missing")
    request = frame_bytes(line, "request")
    if not request:
        raise UsageError("request is empty")
    response = frame_bytes(line, "response") if "response" in line else None
    connection = line.get("connection", 0)
    if not isinstance(connection, int):
        raise UsageError(f"connection: {connection!r} is not a number")
    return RecordedExchange(str(line.get("server", "")), connection, request, response)


def _was_sniffed(line: Line) -> bool:
    """A response alone, or an exchange that was cut: `wire sniff` says why."""
    return any(name in line for name in ("error", "request_part", "response_error"))
