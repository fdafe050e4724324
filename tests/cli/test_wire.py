"""`wire decode` and `wire encode` against Kafka's own frames and converters."""

import gzip
import json
from typing import Any

import pytest

from fastquorum.cli.wire.decode import decode_line
from fastquorum.cli.wire.encode import encode_line
from fastquorum.errors import FastQuorumError
from tests.cli.conftest import in_process
from tests.wire.golden import GOLDEN, blank_records

JSON_NAMES = ("request_header", "request_json", "response_header", "response_json")
REQUESTS = ("api_key", "api_version", "server", "request", "response")
HANDSHAKE = {"api_key": 18, "api_version": 0, "request": "00120000000000010000"}


def golden() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "wire.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def jsonl(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_every_golden_line_decodes_as_kafka_prints_it_and_encodes_back() -> None:
    pairs = golden()
    decoded = in_process("wire", "decode", stdin=jsonl([{name: pair[name] for name in REQUESTS} for pair in pairs]))
    assert decoded.code == 0, decoded.err
    lines = [json.loads(line) for line in decoded.out.splitlines()]
    assert len(lines) == len(pairs)
    for line, pair in zip(lines, pairs, strict=True):
        assert {name: line[name] for name in REQUESTS} == {name: pair[name] for name in REQUESTS}
        assert line["request_header"] == pair["request_header"]
        assert blank_records(line["request_json"]) == blank_records(pair["request_json"])
        assert blank_records(line["response_json"]) == blank_records(pair["response_json"])
        assert line["response_header"] == {"correlationId": pair["request_header"]["correlationId"]}
    encoded = in_process("wire", "encode", stdin=jsonl([{name: line[name] for name in JSON_NAMES} for line in lines]))
    assert encoded.code == 0, encoded.err
    for text, pair in zip(encoded.out.splitlines(), pairs, strict=True):
        made = json.loads(text)
        assert (made["request"], made["response"]) == (pair["request"], pair["response"])


@pytest.mark.parametrize("key", [18, "18", "ApiVersions", "API_VERSIONS"])
def test_an_api_is_named_by_number_or_name(key: object) -> None:
    assert decode_line({**HANDSHAKE, "api_key": key})["request_header"]["correlationId"] == 1


def test_records_are_base64() -> None:
    produce = next(pair for pair in golden() if pair["api"] == "Produce")
    data = decode_line(produce)["request_json"]["topicData"][0]["partitionData"][0]
    assert data["records"].startswith("AAAA")


def test_a_response_alone_needs_api_and_version() -> None:
    pair = golden()[0]
    alone = {name: pair[name] for name in ("api_key", "api_version", "response")}
    decoded = decode_line(alone)
    assert (
        encode_line({name: decoded[name] for name in ("api_key", "api_version", *JSON_NAMES[2:])})["response"]
        == (pair["response"])
    )


BAD = [
    "not json",
    "[1]",
    "{}",
    '{"api_key": 18}',
    '{"api_key": 18, "api_version": 0}',
    '{"api_key": 18, "api_version": 0, "request": "xyz"}',
    '{"api_key": 18, "api_version": 0, "request": 12}',
    '{"api_key": 18, "api_version": 0, "request": "001200000000"}',
    '{"api_key": 18, "api_version": 0, "request": "0012000000000001000000"}',
    '{"api_key": 18, "api_version": 1, "request": "00120000000000010000"}',
    '{"api_key": 18, "api_version": 99, "request": "00120063000000010000"}',
    '{"api_key": 999, "api_version": 0, "request": "00"}',
    '{"api_key": "Nonsense", "api_version": 0, "request": "00"}',
    '{"api_key": true, "api_version": 0, "request": "00"}',
    '{"api_key": null, "api_version": 0, "response": "00"}',
    '{"api_key": 18, "api_version": "x", "response": "00"}',
    "\x00",
]


@pytest.mark.parametrize("command", ["decode", "encode"])
def test_bad_lines_are_named_and_the_others_go_on(command: str) -> None:
    good = HANDSHAKE if command == "decode" else decode_line(HANDSHAKE)
    bad = BAD if command == "decode" else ["not json", "[1]", "{}", '{"request_header": {}, "request_json": {}}']
    bad_encode = [
        '{"request_json": {}}',
        '{"request_header": 5, "request_json": {}}',
        json.dumps({**decode_line(HANDSHAKE), "request_json": {"surprise": 1}}),
        '{"response_header": {"correlationId": 1}, "response_json": {}}',
    ]
    lines = [json.dumps(good)]
    for line in bad + (bad_encode if command == "encode" else []):
        lines += [line, json.dumps(good)]
    ran = in_process("wire", command, stdin="\n".join(lines) + "\n")
    assert ran.code == 2
    assert len(ran.out.splitlines()) == (len(lines) + 1) // 2
    named = [line.split(":")[0] for line in ran.err.splitlines()]
    assert named == [f"line {number}" for number in range(2, len(lines) + 1, 2)]


def test_any_cut_of_a_frame_is_a_clear_error() -> None:
    request = golden()[0]["request"]
    for size in range(0, min(len(request), 400), 2):
        with pytest.raises(FastQuorumError):
            decode_line({**golden_line(), "request": request[:size]})


def golden_line() -> dict[str, Any]:
    pair = golden()[0]
    return {"api_key": pair["api_key"], "api_version": pair["api_version"]}
