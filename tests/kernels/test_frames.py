"""The frame splitter: any chunking gives the same frames, and bad lengths are refused from four bytes."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import FrameError, UsageError
from fastquorum.kernels import Kernels


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@settings(max_examples=60)
@given(
    frames=st.lists(st.binary(max_size=40), max_size=8), chunks=st.lists(st.integers(1, 50), min_size=1, max_size=30)
)
def test_any_chunking_gives_the_same_frames(kernels: Kernels, frames: list[bytes], chunks: list[int]) -> None:
    stream = framed(*frames)
    splitter = kernels.FrameSplitter(40)
    got: list[bytes] = []
    position = i = 0
    while position < len(stream):
        size = chunks[i % len(chunks)]
        got += splitter.feed(memoryview(stream)[position : position + size])
        position, i = min(position + size, len(stream)), i + 1
        assert splitter.pending_bytes == position - len(framed(*got))
    assert got == frames
    assert splitter.feed(b"") == []


def test_whole_frames_in_one_feed(kernels: Kernels) -> None:
    splitter = kernels.FrameSplitter(10)
    assert splitter.feed(framed(b"", b"abc", b"0123456789") + b"\x00\x00") == [b"", b"abc", b"0123456789"]
    assert splitter.pending_bytes == 2
    assert splitter.feed(bytearray(b"\x00\x01x\x00")) == [b"x"]
    assert splitter.pending_bytes == 1


@pytest.mark.parametrize("length", [-1, -(2**31), 11, 2**31 - 1])
def test_a_bad_length_is_refused_from_its_four_bytes(kernels: Kernels, length: int) -> None:
    splitter = kernels.FrameSplitter(10)
    prefix = struct.pack(">i", length)
    assert splitter.feed(framed(b"good") + prefix[:3]) == [b"good"]
    for data in (prefix[3:], b"", framed(b"good")):
        with pytest.raises(FrameError) as caught:
            splitter.feed(data)
        assert caught.value == FrameError(length=length, limit=10)


def test_a_huge_frame_is_not_allocated_ahead(kernels: Kernels) -> None:
    splitter = kernels.FrameSplitter(2**31 - 1)
    assert splitter.feed(struct.pack(">i", 2**31 - 1) + b"abc") == []
    assert splitter.pending_bytes == 7


def test_a_limit_no_length_can_have(kernels: Kernels) -> None:
    for limit in (-1, 2**31):
        with pytest.raises(UsageError):
            kernels.FrameSplitter(limit)
