"""Both twins make the same of any frame: well-formed, damaged, cut, with bytes put in or left out, or random.

The layouts are written twice, in Python and in C++, and wire/ can only be asked about the former.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.kernels import load
from fastquorum.kernels.lane import LaneState, Output
from fastquorum.kernels.pure import batch_headers
from fastquorum.kernels.pure.lane.compact import VERSIONS
from fastquorum.types import ZERO_UUID
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from tests.lane.builders import (
    Following,
    Leading,
    Make,
    fetch_request,
    fetch_response,
    handed_up,
    value_batch,
)
from tests.lane.conftest import TWINS

Outcome = tuple[list[Output], bytes, LaneState]
Mutation = Callable[[bytes], bytes]
FIRST_CORRELATION_ID = 0x4000_0000
"""A follower's lane begins with it."""
MAKES = [Make(lane, load(name)) for name, lane in TWINS.items()]  # type: ignore[arg-type]

versions = st.sampled_from(VERSIONS)
int64s = st.sampled_from([-(2**63), -(2**31), -1, 0, 1, 2**31 - 1, 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)
positions = st.integers(0, 400)


@st.composite
def mutations(draw: st.DrawFn) -> Mutation:
    """A function of a frame: what of it arrives."""
    kind = draw(st.sampled_from(["whole", "changed", "changed twice", "cut", "longer", "put in", "left out", "random"]))
    at, other, byte = draw(positions), draw(positions), draw(st.integers(0, 255))
    data = draw(st.binary(max_size=200)) if kind == "random" else b""

    def mutated(frame: bytes) -> bytes:
        place = at % len(frame)
        if kind in ("changed", "changed twice"):
            changed = bytearray(frame)
            changed[place] = byte
            if kind == "changed twice":
                changed[other % len(frame)] = byte ^ 1
            return bytes(changed)
        return {
            "whole": frame,
            "cut": frame[:place],
            "longer": frame + bytes([byte]),
            "put in": frame[:place] + bytes([byte]) + frame[place:],
            "left out": frame[:place] + frame[place + 1 :],
            "random": data,
        }[kind]

    return mutated


def led(make: Make, version: int, frame: bytes) -> Outcome:
    leader = Leading(make)
    leader.append(b"a")
    leader.sync()
    leader.admit(2, version=version)
    leader.append(b"b")
    out = leader.lane.on_frame(20, frame, leader.now_us)
    return out, leader.log.bytes, leader.lane.freeze(leader.now_us)


def followed(make: Make, version: int, frame: bytes) -> Outcome:
    follower = Following(make, version=version)
    out = follower.lane.on_frame(70, frame, follower.now_us)
    return out, follower.log.bytes, follower.lane.freeze(follower.now_us)


REQUEST = {
    "offset": 3,
    "epoch": 5,
    "last_epoch": 5,
    "correlation_id": 7,
    "high_watermark": 2,
    "max_wait_ms": 500,
    "max_bytes": 1 << 20,
}
"""A Fetch that continues, as `led` has the log."""
LONG = {"offset", "high_watermark", "log_start_offset"}


@settings(max_examples=200)
@given(
    version=versions,
    unusual=st.sampled_from(["", "", *REQUEST]),
    number=int64s,
    has_cluster=st.booleans(),
    has_directory=st.booleans(),
    mutated=mutations(),
)
def test_a_leader_makes_the_same_of_a_request(
    version: int, unusual: str, number: int, has_cluster: bool, has_directory: bool, mutated: Mutation
) -> None:
    def change(message: FetchRequest) -> None:
        message.cluster_id = message.cluster_id if has_cluster else None
        if not has_directory:
            message.topics[0].partitions[0].replica_directory_id = ZERO_UUID

    fields: dict[str, Any] = REQUEST | ({unusual: fitting(unusual, number)} if unusual else {})
    frame = mutated(fetch_request(2, version=version, change=change, **fields))
    outcomes = [led(make, version, frame) for make in MAKES]
    assert outcomes[0] == outcomes[1]


RESPONSE = {"high_watermark": 1, "leader_id": 1, "epoch": 5, "correlation_id": FIRST_CORRELATION_ID}


@settings(max_examples=200)
@given(
    version=versions,
    unusual=st.sampled_from(["", "", *RESPONSE, "log_start_offset"]),
    number=int64s,
    count=st.integers(0, 3),
    hosts=st.lists(st.text(max_size=20), max_size=2),
    mutated=mutations(),
)
def test_a_follower_makes_the_same_of_a_response(
    version: int, unusual: str, number: int, count: int, hosts: list[str], mutated: Mutation
) -> None:
    def change(message: FetchResponse) -> None:
        if unusual == "log_start_offset":
            message.responses[0].partitions[0].log_start_offset = number
        if version >= 16:
            message.node_endpoints = [FetchResponse.NodeEndpoint(node_id=1, host=host, port=9) for host in hosts]

    fields: dict[str, Any] = RESPONSE | ({unusual: fitting(unusual, number)} if unusual in RESPONSE else {})
    records = value_batch(1, 5, count) if count else b""
    frame = mutated(fetch_response(records=records, version=version, change=change, **fields))
    outcomes = [followed(make, version, frame) for make in MAKES]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("make", MAKES, ids=TWINS)
def test_what_is_not_mutated_is_not_handed_up(make: Make, version: int) -> None:
    out, _, _ = led(make, version, fetch_request(2, version=version, **REQUEST))
    assert not handed_up(out)
    _, log, _ = followed(make, version, fetch_response(records=value_batch(1, 5), version=version, **RESPONSE))
    assert len(batch_headers(log)) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_any_byte_changed_left_out_or_put_in_makes_no_difference_between_them(version: int) -> None:
    request = fetch_request(2, version=version, **REQUEST)
    response = fetch_response(records=value_batch(1, 5), version=version, **RESPONSE)
    for play, whole in ((led, request), (followed, response)):
        for at, byte in enumerate(whole):
            ends = whole[:at], whole[at + 1 :]
            for between in (bytes([byte ^ 1]), b"", bytes([byte, byte])):
                frame = between.join(ends)
                outcomes = [play(make, version, frame) for make in MAKES]
                assert outcomes[0] == outcomes[1], frame


def fitting(field: str, number: int) -> int:
    """The number, or its lowest 32 bits if the field has no more."""
    return number if field in LONG else (number & 0xFFFF_FFFF) - (number & 0x8000_0000) * 2
