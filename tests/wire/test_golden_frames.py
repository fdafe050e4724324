"""Every golden frame decodes to what Kafka's own classes print, and encodes back to the same bytes."""

import json

import pytest

from fastquorum import wire

from .golden import Frame, blank_records, frames

ALL = pytest.mark.parametrize("frame", frames(), ids=lambda frame: frame.id)


@ALL
def test_decodes_to_kafkas_json(frame: Frame) -> None:
    if frame.kind == "request":
        header, body = wire.decode_request(frame.raw)
        version = wire.request_header_version(frame.api_key, frame.version)
        assert wire.to_json(header, version) == frame.header
    else:
        _, body = wire.decode_response(frame.raw, frame.api_key, frame.version)
    ours = blank_records(wire.to_json(body, frame.version))
    assert json.dumps(ours) == json.dumps(frame.json)  # the order of the keys counts, too


@ALL
def test_encodes_to_the_same_bytes(frame: Frame) -> None:
    if frame.kind == "request":
        header, body = wire.decode_request(frame.raw)
        assert wire.encode_request(header, body) == frame.raw
    else:
        correlation_id, body = wire.decode_response(frame.raw, frame.api_key, frame.version)
        assert wire.encode_response(correlation_id, frame.api_key, frame.version, body) == frame.raw


@ALL
def test_survives_the_way_through_json(frame: Frame) -> None:
    if frame.kind == "request":
        _, body = wire.decode_request(frame.raw)
    else:
        _, body = wire.decode_response(frame.raw, frame.api_key, frame.version)
    text = json.dumps(wire.to_json(body, frame.version))
    assert wire.from_json(type(body), frame.version, json.loads(text)) == body


@ALL
def test_any_buffer_will_do(frame: Frame) -> None:
    for buffer in (bytearray(frame.raw), memoryview(frame.raw)):
        if frame.kind == "request":
            assert wire.decode_request(buffer) == wire.decode_request(frame.raw)
        else:
            ours = wire.decode_response(buffer, frame.api_key, frame.version)
            assert ours == wire.decode_response(frame.raw, frame.api_key, frame.version)


def test_the_advertised_versions_are_kafkas() -> None:
    """Where a golden broker or controller lists an API that is declared here, it lists our range."""
    listed = 0
    for frame in frames():
        if frame.api != "ApiVersions" or frame.kind != "response":
            continue
        for each in frame.json["apiKeys"]:
            api = wire.API.get(each["apiKey"])
            if api is not None:
                assert (api.name, *api.advertised) == (api.name, each["minVersion"], each["maxVersion"])
                listed += 1
    assert listed > 200


@ALL
def test_header_versions_are_kafkas(frame: Frame) -> None:
    ours = wire.request_header_version if frame.kind == "request" else wire.response_header_version
    assert ours(frame.api_key, frame.version) == frame.header_version
