"""Frames out of streams, and requests with their responses, without a socket."""

import itertools
import json
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.cli.wire.exchanges import NOT_ANSWERED, REQUEST_COST_BYTES, Exchanges, WireExchange
from fastquorum.cli.wire.frames import HEAD_BYTES, PLAUSIBLE_BYTES_MAX, CapturedFrame, FrameCutter
from fastquorum.cli.wire.recording import Origin, error_codes, exchange_line, table_row
from fastquorum.wire import encode_request, request_header
from fastquorum.wire.messages.produce import ProduceRequest
from tests.cli.sniffing import framed
from tests.wire.golden import frames

ORIGIN = Origin("h1:9093", 3, "127.0.0.1:5")


def metadata(number: int) -> bytes:
    return struct.pack(">hhih", 3, 1, number, -1) + struct.pack(">i", -1)


def produce(number: int, acks: int) -> bytes:
    body = ProduceRequest(acks=acks)
    return encode_request(request_header(body, 9, number, "test"), body)


def answer(number: int) -> bytes:
    return framed(struct.pack(">i", number))


class Connection:
    """Exchanges with a clock that counts."""

    def __init__(self, frame_bytes_max: int = 10_000) -> None:
        self.seen: list[WireExchange] = []
        self.exchanges = Exchanges(self.seen.append, frame_bytes_max)
        self.now_us = 0

    def asks(self, *requests: bytes) -> None:
        self.now_us += 10
        self.exchanges.on_request_bytes(b"".join(map(framed, requests)), self.now_us)

    def answers(self, *numbers: int) -> None:
        self.now_us += 10
        self.exchanges.on_response_bytes(b"".join(map(answer, numbers)), self.now_us)

    def ids(self) -> list[tuple[int | None, int | None]]:
        """Correlation ids of what came out since the last call."""
        found = [
            (
                None if each.request is None else struct.unpack_from(">i", each.request.data, 4)[0],
                None if each.response is None else struct.unpack_from(">i", each.response.data)[0],
            )
            for each in self.seen
        ]
        self.seen.clear()
        return found


def test_a_response_belongs_to_the_request_with_its_id() -> None:
    one = Connection()
    one.asks(metadata(1), metadata(2))
    one.answers(1)
    assert [(each.at_us, each.latency_us) for each in one.seen] == [(10, 10)]
    assert one.ids() == [(1, 1)]
    one.answers(2)
    assert one.ids() == [(2, 2)]


def test_an_id_that_is_used_again_is_answered_in_order() -> None:
    one = Connection()
    one.asks(metadata(1))
    one.asks(metadata(1))
    one.answers(1, 1)
    assert [each.at_us for each in one.seen] == [10, 20]


def test_a_request_that_is_never_answered_comes_out_at_once_but_in_its_turn() -> None:
    one = Connection()
    one.asks(produce(1, acks=0))
    assert [each.unanswered for each in one.seen] == [NOT_ANSWERED]
    assert one.ids() == [(1, None)]
    one.asks(produce(2, acks=-1), produce(3, acks=0), metadata(4), produce(5, acks=0))
    assert one.ids() == []
    one.answers(2)
    assert one.ids() == [(2, 2), (3, None)]
    one.answers(4)
    assert one.ids() == [(4, 4), (5, None)]


def test_a_node_that_answers_out_of_order_is_understood() -> None:
    one = Connection()
    one.asks(produce(0, acks=1), metadata(1), produce(2, acks=0), metadata(3))
    one.answers(3, 0, 1)
    assert one.ids() == [(3, 3), (0, 0), (1, 1), (2, None)]


def test_an_answer_to_nothing_comes_out_alone() -> None:
    one = Connection()
    one.answers(9)
    line = exchange_line(one.seen[0], ORIGIN, 0)
    assert line["response_error"] == "no pending request has its correlation id"
    assert one.ids() == [(None, 9)]


def test_what_is_kept_open_is_bounded_and_nothing_is_lost() -> None:
    one = Connection(frame_bytes_max=5 * REQUEST_COST_BYTES)
    for number in range(1000):
        one.asks(metadata(number))
        assert one.exchanges._open_bytes <= 10 * REQUEST_COST_BYTES
    one.exchanges.on_end("over", one.now_us)
    assert [each.unanswered for each in one.seen[:2]] == ["it was not answered before too many more requests came"] * 2
    assert one.seen[-1].unanswered == "over"
    assert one.ids() == [(number, None) for number in range(1000)]


def test_too_few_bytes_for_a_header_are_a_request_all_the_same() -> None:
    one = Connection()
    one.asks(b"", b"\0\3", b"\0\3\0\1\0")
    one.exchanges.on_end("over", 0)
    lines = [exchange_line(each, ORIGIN, 0) for each in one.seen]
    assert [line["request"] for line in lines] == ["", "0003", "0003000100"]
    assert all(line["request_error"] for line in lines)
    assert all(table_row(line, with_server=True) for line in lines)


def test_a_stream_that_is_not_kafkas_is_let_go_of() -> None:
    one = Connection()
    one.exchanges.on_request_bytes(b"\xff\xff\xff\xffxyz", 1)
    one.exchanges.on_request_bytes(framed(metadata(1)), 2)
    one.answers(1)
    one.exchanges.on_end("over", 3)
    assert [each.lost for each in one.seen] == ["this is another protocol: the length in front of a frame would be -1"]


def test_no_frame_is_too_odd_to_be_written_down() -> None:
    chance = random.Random(7)
    seen: list[WireExchange] = []
    pairs = list(zip(frames()[::2], frames()[1::2], strict=True))
    for _ in range(1000):
        exchanges = Exchanges(seen.append, 5000)
        request, answered = (bent(frame.raw, chance) for frame in chance.choice(pairs))
        exchanges.on_request_bytes(framed(request), 1)
        exchanges.on_response_bytes(framed(answered), 2)
        exchanges.on_end("over", 3)
    lines = [exchange_line(each, ORIGIN, 0) for each in seen]
    assert sum("request_json" in line and "response_json" in line for line in lines) > 100
    for line in lines:
        assert json.loads(json.dumps(line, allow_nan=False)) == line
        assert table_row(line, with_server=False).startswith(("0", "1", "2"))


def bent(frame: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, gone or added, or none."""
    found = bytearray(frame)
    for _ in range(chance.choice((0, 1, 3))):
        at = chance.randrange(len(found))
        found[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    return bytes(found)


def test_errors_are_found_wherever_they_stand() -> None:
    assert list(error_codes({"errorCode": 0, "topics": [{"errorCode": 3}, {"partitions": [{"errorCode": 6}]}]})) == [
        3,
        6,
    ]


@settings(max_examples=200)
@given(
    frames=st.lists(st.binary(max_size=200), max_size=8),
    tail=st.binary(max_size=12),
    cuts=st.lists(st.integers(0, 1800), max_size=20),
    limit=st.integers(1, 250),
)
def test_frames_come_out_the_same_however_the_stream_is_cut(
    frames: list[bytes], tail: bytes, cuts: list[int], limit: int
) -> None:
    stream = b"".join(map(framed, frames)) + framed(bytes(1000) + tail)[: len(tail)]
    cutter = FrameCutter(limit)
    found: list[CapturedFrame] = []
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    for start, end in itertools.pairwise(edges):
        found += cutter.feed(stream[start:end])
    assert [frame.length for frame in found] == [len(frame) for frame in frames]
    for frame, sent in zip(found, frames, strict=True):
        assert frame.data == (sent if len(sent) <= limit else sent[:HEAD_BYTES])
    rest = cutter.rest()
    assert (rest is None) is (not tail)
    if rest is not None:
        assert not rest.is_over


@pytest.mark.parametrize("length", [-1, -(2**31), PLAUSIBLE_BYTES_MAX + 1])
def test_an_absurd_length_ends_the_search(length: int) -> None:
    cutter = FrameCutter(1000)
    assert cutter.feed(struct.pack(">i", length) + bytes(100)) == []
    assert f"would be {length}" in cutter.lost
    assert cutter.rest() is None
