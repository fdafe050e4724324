"""`fastquorum wire decode`: frames in hex to the JSON that Kafka's own converters print."""

import argparse

from fastquorum.cli.terminal.arguments import explain
from fastquorum.cli.wire.lines import Line, api_key, each_line, frame_bytes, whole
from fastquorum.errors import UsageError, WireError
from fastquorum.wire import (
    ApiKey,
    ErrorCode,
    decode,
    decode_request_header,
    decode_response_header,
    find_api,
    to_json,
)


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Read JSON lines with api_key, api_version and the frames `request` and `response` (either may be missing) in "
        "hex, without their 4-byte length.\n"
        "Print them with request_header, request_json, response_header and response_json added; bytes and records are "
        "base64. If an ApiVersions request was refused for its version, the response has version 0, and "
        "response_version says so.",
        """echo '{"api_key": 18, "api_version": 0, "request": "00120000000000010000"}' | fastquorum wire decode""",
    )


def run(arguments: argparse.Namespace) -> int:
    return each_line(decode_line)


def decode_line(line: Line) -> Line:
    """The line, with its frames as JSON. UsageError, WireError."""
    if "api_key" not in line:
        raise UsageError("api_key is missing")
    key, version = api_key(line["api_key"]), whole(line, "api_version")
    find_api(key, version)
    if "request" not in line and "response" not in line:
        raise UsageError("both request and response are missing")
    added: Line = {}
    if "request" in line:
        added |= request_fields(key, version, frame_bytes(line, "request"))
    if "response" in line:
        added |= response_fields(key, version, frame_bytes(line, "response"))
    return {**line, **added}


def request_fields(key: int, version: int, frame: bytes) -> Line:
    """What a line says about a request of this API and version. WireError."""
    api = find_api(key, version)
    header, position = decode_request_header(frame)
    if (header.request_api_key, header.request_api_version) != (key, version):
        raise WireError(
            f"the frame is of API {header.request_api_key} version {header.request_api_version}, "
            f"the line says API {key} version {version}",
            "RequestHeader",
        )
    header_version = api.request_header_version(version)
    return {
        "request_header_version": header_version,
        "request_header": to_json(header, header_version),
        "request_json": to_json(decode(api.request, version, frame[position:]), version),
    }


def response_fields(key: int, version: int, frame: bytes) -> Line:
    """What a line says about the answer to a request of this API and version. WireError."""
    added: Line = {}
    if _is_refused_handshake(key, version, frame):
        version = added["response_version"] = 0
    api = find_api(key, version)
    header_version = api.response_header_version(version)
    header, position = decode_response_header(frame, key, version)
    return {
        **added,
        "response_header_version": header_version,
        "response_header": to_json(header, header_version),
        "response_json": to_json(decode(api.response, version, frame[position:]), version),
    }


def _is_refused_handshake(key: int, version: int, frame: bytes) -> bool:
    """A node that does not know a version of ApiVersions says so in version 0, whatever was asked (KIP-511)."""
    refused = frame[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    return key == ApiKey.API_VERSIONS and version > 0 and refused
