"""Fetch and Vote: real frames decoded and encoded, against the peers' codecs and against one `struct` call.

`native` and `pure` are the codec that serves every version and every message; `lane` is the layout that the steady
state runs, generated from the same declarations. The bodies are those of Apache Kafka's own frames (`tests/golden`),
except for Fetch 11, the newest version that aiokafka speaks, which is made from one of them.
"""

import gzip
import json
import struct
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from bench import peers
from bench.cases.setting import Setting
from bench.measure import MICROSECONDS, Case, Contender, Goal, Role, python
from fastquorum.kernels import load
from fastquorum.kernels.pure.lane.fetch_requests import REQUEST_ENCODERS, REQUEST_PARSERS
from fastquorum.kernels.pure.lane.fetch_responses import RESPONSE_ENCODERS, RESPONSE_PARSERS
from fastquorum.types import METADATA_TOPIC_ID
from fastquorum.wire import Message, codec_of, decode, decode_request_header, encode
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import VoteRequest, VoteResponse

GOLDEN: Final = Path(__file__).parents[2] / "tests" / "golden" / "kafka-4.3.0" / "wire.jsonl.gz"
FETCH_18_REQUEST: Final = struct.Struct(">iiibiiB16sBiiqiqiBBB16sBBqBBBBBBB22sBBiqB")
VOTE_2_REQUEST: Final = struct.Struct(">B22siBB18sBiii16s16siq?BBB")
RESPONSE_HEADER_BYTES: Final = 5
"""A correlation id and no tags."""


class Frame(NamedTuple):
    cls: type[Message]
    version: int
    raw: bytes
    body: bytes
    floor: struct.Struct | None = None

    @property
    def name(self) -> str:
        return self.cls.__name__


def cases(setting: Setting) -> Iterator[Case]:
    for frame in frames():
        yield from _both_ways(frame)


@cache
def frames() -> tuple[Frame, ...]:
    with gzip.open(GOLDEN, "rt") as lines:
        pairs = [json.loads(line) for line in lines]
    # A voter's Fetch that is answered with one small batch; a pre-vote that is answered with the leader's endpoint.
    fetch = next(pair for pair in pairs if pair["api"] == "Fetch" and len(pair["response"]) // 2 == 178)
    vote = next(pair for pair in pairs if pair["api"] == "Vote" and len(pair["response"]) // 2 == 66)
    found = [
        _request(FetchRequest, fetch, FETCH_18_REQUEST),
        _response(FetchResponse, fetch),
        _request(VoteRequest, vote, VOTE_2_REQUEST),
        _response(VoteResponse, vote),
    ]
    return (*found, _older(found[0], 11))


def _request(cls: type[Message], pair: dict[str, Any], floor: struct.Struct) -> Frame:
    raw = bytes.fromhex(pair["request"])
    return Frame(cls, pair["api_version"], raw, raw[decode_request_header(raw)[1] :], floor)


def _response(cls: type[Message], pair: dict[str, Any]) -> Frame:
    raw = bytes.fromhex(pair["response"])
    return Frame(cls, pair["api_version"], raw, raw[RESPONSE_HEADER_BYTES:])


def _older(frame: Frame, version: int) -> Frame:
    message: Any = decode(frame.cls, frame.version, frame.body)
    message.cluster_id, message.replica_id = None, message.replica_state.replica_id
    message.replica_state = FetchRequest.ReplicaState()
    message.topics[0].topic = "__cluster_metadata"
    partition = message.topics[0].partitions[0]
    partition.last_fetched_epoch = -1
    return Frame(frame.cls, version, b"", encode(message, version))


def _both_ways(frame: Frame) -> Iterator[Case]:
    codecs = {name: _own(name, frame) for name in ("native", "pure")}
    if frame.cls in (FetchRequest, FetchResponse) and frame.version == 18:
        codecs["lane"] = _lane_request(frame) if frame.cls is FetchRequest else _lane_response(frame)
    theirs = peers.message_codecs(frame.name, frame.version, frame.body)
    codecs |= theirs
    if frame.floor is not None:
        codecs["struct"] = _struct(frame.floor, frame.body)
    goals = [
        goal
        for name in ("native", "lane")
        if name in codecs
        for goal in (Goal(of=name, at_most=1.5), Goal(of=name, against=tuple(theirs), at_least=5.0))
    ]
    for way in ("encode", "decode"):
        contenders = [_contender(name, codec, way, frame) for name, codec in codecs.items()]
        yield Case(f"{way} {frame.name}", f"v{frame.version}", MICROSECONDS, contenders, goals)


def _contender(name: str, codec: peers.Codec, way: str, frame: Frame) -> Contender:
    role = {"native": Role.NATIVE, "pure": Role.PURE, "lane": Role.OWN, "struct": Role.FLOOR}.get(name, Role.PEER)
    if way == "encode":
        contender = python(name, role, "encode()", encode=codec.encode)
    else:
        contender = python(name, role, "decode()", lambda: codec.encode_again(codec.decode()), decode=codec.decode)
    if name == "native" and contender.result() != frame.body:
        raise AssertionError(f"{frame.name} v{frame.version} does not come back as it was")
    return contender


def _own(name: Literal["native", "pure"], frame: Frame) -> peers.Codec:
    codec = codec_of(load(name)).of(frame.cls, frame.version)
    message = codec.decode(frame.body)
    return peers.Codec(partial(codec.encode, message), partial(codec.decode, frame.body), codec.encode)


def _struct(layout: struct.Struct, body: bytes) -> peers.Codec:
    fields = layout.unpack(body)
    return peers.Codec(lambda: layout.pack(*fields), lambda: layout.unpack(body), lambda again: layout.pack(*again))


def _lane_request(frame: Frame) -> peers.Codec:
    """Header and body together, as the lane makes and reads them; what is constant for a connection is set once."""
    header, header_bytes = decode_request_header(frame.raw)
    parse = REQUEST_PARSERS[frame.version]
    parsed = parse(frame.raw)
    assert parsed is not None
    _, cluster, replica, max_wait, max_bytes, topic, *_, directory, _ = parsed
    client: str = header.client_id  # type: ignore[assignment]  # Kafka's raft clients have one
    make = REQUEST_ENCODERS[frame.version]
    encode_frame = make(
        frame.version, client.encode(), cluster, replica, max_wait, max_bytes, topic or b"", directory or b""
    )

    def encode_again(fields: Any) -> bytes:
        correlation_id, *_, epoch, offset, last_epoch, _, watermark = fields
        return encode_frame(correlation_id, epoch, offset, last_epoch, watermark)[header_bytes:]

    correlation_id, *_, epoch, offset, last_epoch, _, watermark = parsed
    changing = (correlation_id, epoch, offset, last_epoch, watermark)
    return peers.Codec(lambda: encode_frame(*changing)[header_bytes:], lambda: parse(frame.raw), encode_again)


def _lane_response(frame: Frame) -> peers.Codec:
    parse = RESPONSE_PARSERS[frame.version]
    parsed = parse(frame.raw)
    assert parsed is not None
    leader: Any = decode(FetchResponse, frame.version, frame.body).node_endpoints[0]
    correlation_id, _, watermark, log_start, leader_id, epoch, start, end = parsed
    encode_frame = RESPONSE_ENCODERS[frame.version](
        METADATA_TOPIC_ID, leader_id, epoch, leader.host.encode(), leader.port
    )
    changing = (correlation_id, watermark, log_start, frame.raw[start:end])

    def encode_again(fields: Any) -> bytes:
        correlation_id, _, watermark, log_start, _, _, start, end = fields
        return encode_frame(correlation_id, watermark, log_start, frame.raw[start:end])[RESPONSE_HEADER_BYTES:]

    return peers.Codec(lambda: encode_frame(*changing)[RESPONSE_HEADER_BYTES:], lambda: parse(frame.raw), encode_again)
