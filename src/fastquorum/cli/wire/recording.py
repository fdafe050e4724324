"""One line of a recording: an exchange in the format of `wire decode`, and in a line for people."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from fastquorum.cli.wire.decode import request_fields, response_fields
from fastquorum.cli.wire.exchanges import WireExchange
from fastquorum.cli.wire.frames import CapturedFrame
from fastquorum.cli.wire.lines import Line
from fastquorum.errors import UnsupportedVersion, WireError
from fastquorum.types import Micros
from fastquorum.wire import API, ApiKey
from fastquorum.wire.error_codes import error_name

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ERRORS_SHOWN: Final = 3


class Origin(NamedTuple):
    """Where a connection comes from and goes to."""

    server: str
    connection: int
    client: str


def exchange_line(exchange: WireExchange, origin: Origin, wall_us: Micros) -> Line:
    """The exchange as a line; `wall_us` is when it began, since 1970.

    A frame that is not all here, or not of a known API and version, has its bytes and the reason instead of its JSON.
    """
    request, response = exchange.request, exchange.response
    key, version = _which(request)
    line: Line = {} if key is None else {"api": api_name(key), "api_key": key, "api_version": version}
    line |= {
        **origin._asdict(),
        "timestamp": timestamp(wall_us),
        "latency_us": exchange.latency_us if exchange.latency_us >= 0 else None,
    }
    if exchange.lost:
        line["error"] = f"{exchange.lost}; the rest of this connection is passed on without being recorded"
    if request is not None:
        line |= _frame_fields("request", request, key, version)
    if response is not None:
        if request is None and response.is_whole:
            line |= {"response": response.data.hex(), "response_error": "no pending request has its correlation id"}
        else:
            line |= _frame_fields("response", response, key, version)
    elif exchange.unanswered:
        line["unanswered"] = exchange.unanswered
    return line


def _which(request: CapturedFrame | None) -> tuple[int | None, int]:
    if request is None or request.length < 0 or len(request.data) < 4:
        return None, -1
    return struct.unpack_from(">hh", request.data)


def _frame_fields(kind: str, frame: CapturedFrame, key: int | None, version: int) -> Line:
    if not frame.is_whole:
        size = f"of {frame.length} bytes" if frame.length >= 0 else "cut inside its length"
        why = "the first of them are recorded" if frame.is_over else "the connection ended inside it"
        return {f"{kind}_part": frame.data.hex(), f"{kind}_error": f"a frame {size}: {why}"}
    fields: Line = {kind: frame.data.hex()}
    if key is None:
        return {**fields, f"{kind}_error": f"{frame.length} bytes are too few for a header"}
    try:
        return fields | (request_fields if kind == "request" else response_fields)(key, version, frame.data)
    except UnsupportedVersion as error:
        return {**fields, f"{kind}_error": f"not declared here: {error.detail}"}
    except WireError as error:
        return {**fields, f"{kind}_error": str(error)}


def api_name(key: int) -> str:
    """Return the name of an API in Kafka's spelling; also of one that is not declared here."""
    if key in API:
        return API[key].name
    try:
        return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
    except ValueError:
        return f"API {key}"


def timestamp(wall_us: Micros) -> str:
    """ISO 8601 in UTC, to the microsecond."""
    moment = _EPOCH + timedelta(microseconds=wall_us)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def table_header(*, with_server: bool) -> str:
    return _cells("TIME", "CONN", "CLIENT", "SERVER" if with_server else None, "API", "LATENCY_MS", "SAID")


def table_row(line: Line, *, with_server: bool) -> str:
    """A line for people, in local time."""
    at = datetime.fromisoformat(line["timestamp"]).astimezone().strftime("%H:%M:%S.%f")[:-3]
    api = f"{line['api']} v{line['api_version']}" if "api" in line else "?"
    latency = "-" if line["latency_us"] is None else f"{line['latency_us'] / 1000:.3f}"
    server = line["server"] if with_server else None
    return _cells(at, str(line["connection"]), line["client"], server, api, latency, _outcome(line))


def _cells(at: str, connection: str, client: str, server: str | None, api: str, latency: str, outcome: str) -> str:
    """Return a line with columns of a fixed width, as later lines are unknown."""
    between = "" if server is None else f"{server:<21}  "
    return f"{at:<12}  {connection:>5}  {client:<21}  {between}{api:<30}  {latency:>10}  {outcome}".rstrip()


def _outcome(line: Line) -> str:
    """Return the error codes in the response, or the fault of the exchange."""
    for name in ("error", "request_error", "response_error", "unanswered"):
        if name in line:
            return str(line[name])
    codes = list(dict.fromkeys(error_codes(line.get("response_json"))))
    more = f" and {len(codes) - _ERRORS_SHOWN} more" if len(codes) > _ERRORS_SHOWN else ""
    return ", ".join(error_name(code) for code in codes[:_ERRORS_SHOWN]) + more


def error_codes(value: Any) -> Iterator[int]:
    """Every error code but 0, wherever it stands in a response's JSON."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "errorCode":
                if inner:
                    yield inner
            else:
                yield from error_codes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from error_codes(inner)
