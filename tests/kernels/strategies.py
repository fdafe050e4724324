"""What the kernel tests are fed with, and how two kernel sets' answers are made comparable."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Attribute, Columns, Compression, Header, Record

INT64 = st.integers(-(2**63), 2**63 - 1)
_PROSE = ("detail", "hint")
"""Fields written for people: the twins may word them differently."""


def blobs(size_max: int = 300) -> st.SearchStrategy[bytes]:
    """Bytes whose length prefix takes one or two bytes."""
    return st.one_of(st.binary(max_size=8), st.binary(max_size=size_max), st.integers(60, 70).map(bytes))


HEADERS = st.lists(st.builds(Header, st.text(max_size=6), st.none() | st.binary(max_size=6)), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(
        Record,
        value=st.none() | blobs(),
        key=st.none() | blobs(20),
        headers=HEADERS,
        timestamp_ms=st.one_of(st.just(-1), st.integers(0, 2**42), INT64),
        offset=st.just(-1),
    ),
    min_size=1,
    max_size=12,
)
COMPRESSIONS = st.sampled_from(Compression)
FLAGS = st.sampled_from(
    [0, Attribute.LOG_APPEND_TIME, Attribute.TRANSACTIONAL, Attribute.CONTROL, Attribute.DELETE_HORIZON, 0x78]
).map(int)
PLACEMENTS = st.fixed_dictionaries(
    {
        "base_offset": st.one_of(st.integers(0, 1000), st.integers(0, 2**62)),
        "leader_epoch": st.integers(0, 2**31 - 1),
        "timestamp_ms": st.one_of(st.integers(0, 2**42), INT64),
        "attributes": st.builds(lambda kind, flags: int(kind) | flags, COMPRESSIONS, FLAGS),
        "producer_id": st.one_of(st.just(-1), INT64),
        "producer_epoch": st.integers(-1, 2**15 - 1),
        "base_sequence": st.integers(-1, 2**31 - 1),
    }
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A good batch, made by the pure kernels."""
    from fastquorum.kernels import pure

    return pure.encode_records(draw(RECORDS), **draw(PLACEMENTS))


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Good batches that follow one another, as a log holds them."""
    from fastquorum.kernels import pure

    offset, epoch, parts = draw(st.integers(0, 1000)), draw(st.integers(0, 5)), []
    for _ in range(draw(st.integers(1, 6))):
        values = draw(st.lists(blobs(2000), min_size=1, max_size=4))
        attributes = draw(st.sampled_from([0, 0, int(Attribute.CONTROL)]))
        parts.append(
            pure.encode_values(
                values, base_offset=offset, leader_epoch=epoch, timestamp_ms=draw(INT64), attributes=attributes
            )
        )
        offset, epoch = offset + len(values), epoch + draw(st.integers(0, 1))
    return b"".join(parts)


@st.composite
def mutated(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    """Good bytes with something wrong: flipped bits, overwritten bytes, a cut, a zero tail, noise behind."""
    data = bytearray(draw(source))
    for _ in range(draw(st.integers(0, 3))):
        # Half of the damage hits a header, where the checks are.
        i = draw(st.one_of(st.integers(0, min(70, len(data) - 1)), st.integers(0, len(data) - 1)))
        data[i] = draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])))
    tail = draw(st.one_of(st.just(b""), st.integers(1, 80).map(bytes), st.binary(max_size=80)))
    cut = draw(st.one_of(st.just(len(data)), st.integers(0, len(data))))
    return bytes(data[:cut]) + tail


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What a call came to, in a form that can be compared: its value, or its error's class and fields."""
    try:
        return "value", comparable(call(*args, **kwargs))
    except FastQuorumError as error:
        return type(error), {name: value for name, value in error.as_fields().items() if name not in _PROSE}


def comparable(value: Any) -> Any:
    """Columns compare by their contents, arrays by their numbers and type; everything else as it is."""
    if isinstance(value, Columns):
        return tuple(bytes(part) if name == "data" else comparable(part) for name, part in value._asdict().items())
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    return value
