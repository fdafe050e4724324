"""`fastquorum wire decode`: frames in hex to the JSON that Kafka's own converters print."""

import argparse

from fastquorum.cli.arguments import explain
from fastquorum.cli.wire_lines import Line, api_key, each_line, whole
from fastquorum.errors import UsageError, WireError
from fastquorum.wire import decode, decode_request_header, decode_response_header, find_api, to_json


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Read JSON lines with api_key, api_version and the frames `request` and `response` (either may be missing) in "
        "hex, without their 4-byte length.\nPrint them with request_header, request_json, response_header and "
        "response_json added; bytes and records are base64.",
        """echo '{"api_key": 18, "api_version": 0, "request": "00120000000000010000"}' | fastquorum wire decode""",
    )


def run(arguments: argparse.Namespace) -> int:
    return each_line(decode_line)


def decode_line(line: Line) -> Line:
    """The line, with its frames as JSON. UsageError, WireError."""
    if "api_key" not in line:
        raise UsageError("api_key is missing")
    key, version = api_key(line["api_key"]), whole(line, "api_version")
    api = find_api(key, version)
    if "request" not in line and "response" not in line:
        raise UsageError("neither request nor response is there")
    added: Line = {}
    if "request" in line:
        frame = _bytes(line, "request")
        header, position = decode_request_header(frame)
        if (header.request_api_key, header.request_api_version) != (key, version):
            raise WireError(
                f"the frame is of API {header.request_api_key} version {header.request_api_version}, "
                f"the line says API {key} version {version}",
                "RequestHeader",
            )
        added["request_header"] = to_json(header, api.request_header_version(version))
        added["request_json"] = to_json(decode(api.request, version, frame[position:]), version)
    if "response" in line:
        frame = _bytes(line, "response")
        answer, position = decode_response_header(frame, key, version)
        added["response_header"] = to_json(answer, api.response_header_version(version))
        added["response_json"] = to_json(decode(api.response, version, frame[position:]), version)
    return {**line, **added}


def _bytes(line: Line, name: str) -> bytes:
    try:
        return bytes.fromhex(line[name])
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} is not hex: {error}") from error
