"""`fastquorum wire encode`: the frames of `wire decode`'s output, made again from their JSON alone."""

import argparse

from fastquorum.cli.terminal.arguments import explain
from fastquorum.cli.wire.lines import Line, api_key, each_line, whole
from fastquorum.errors import UsageError
from fastquorum.wire import RequestHeader, ResponseHeader, encode, find_api, from_json


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Read JSON lines with request_header and request_json, response_header and response_json (either pair may be "
        "missing), as `wire decode` prints them.\n"
        "Print them with `request` and `response` added, made from these alone. A line without a request must have "
        "api_key and api_version.",
        "fastquorum wire decode < frames.jsonl | fastquorum wire encode",
    )


def run(arguments: argparse.Namespace) -> int:
    return each_line(encode_line)


def encode_line(line: Line) -> Line:
    """The line, with its frames in hex. UsageError, WireError."""
    has_request = _has(line, "request")
    has_response = _has(line, "response")
    if not has_request and not has_response:
        raise UsageError("both request_header with request_json and response_header with response_json are missing")
    key, version = _which(line, has_request)
    api = find_api(key, version)
    added: Line = {}
    answered = whole(line, "response_version") if "response_version" in line else version
    for kind, there, header, body, header_version, spoken in (
        ("request", has_request, RequestHeader, api.request, api.request_header_version(version), version),
        ("response", has_response, ResponseHeader, api.response, api.response_header_version(answered), answered),
    ):
        if there:
            head = from_json(header, header_version, line[f"{kind}_header"])
            rest = from_json(body, spoken, line[f"{kind}_json"])
            added[kind] = (encode(head, header_version) + encode(rest, spoken)).hex()
    return {**line, **added}


def _has(line: Line, kind: str) -> bool:
    there = [name for name in (f"{kind}_header", f"{kind}_json") if name in line]
    if len(there) == 1:
        raise UsageError(f"{kind}_header and {kind}_json belong together, only {there[0]} is given")
    return bool(there)


def _which(line: Line, has_request: bool) -> tuple[int, int]:
    """The request's header says which API and version; without one, the line does."""
    if has_request:
        header = line["request_header"]
        if not isinstance(header, dict):
            raise UsageError("request_header is not a JSON object")
        return whole(header, "requestApiKey"), whole(header, "requestApiVersion")
    if "api_key" not in line:
        raise UsageError("api_key is missing")
    return api_key(line["api_key"]), whole(line, "api_version")
