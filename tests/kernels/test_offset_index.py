"""A segment's offset index: the twins against each other, and against a list of every batch."""

import struct
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fastquorum.errors import UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, INDEX_INTERVAL_BYTES, Kernels, OffsetIndex, load

from .conftest import Twins
from .strategies import INT64, outcome

INT32_MAX = 2**31 - 1
STEP = INDEX_INTERVAL_BYTES


def header(last_offset_delta: int) -> bytes:
    """Return the part of a batch that the index looks at; every other byte is one that it must not mistake for the
    delta."""
    return b"\xaa" * 23 + struct.pack(">i", last_offset_delta) + b"\xaa" * (BATCH_HEADER_BYTES - 27)


def entries(index: OffsetIndex) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">ii", index.encode()))


def test_a_real_batch_is_listed_by_its_last_offset(kernels: Kernels) -> None:
    index = kernels.OffsetIndex(100)
    assert (index.base_offset, len(index), index.encode(), index.lookup(100)) == (100, 0, b"", 0)
    batch = kernels.encode_values([b"a", b"b", b"c"], base_offset=110, leader_epoch=1, timestamp_ms=0)
    for buffer, at in ((batch, 0), (bytearray(b"#" + batch), 1), (memoryview(b"##" + batch + b"#"), 2)):
        index.truncate_to(0)
        index.add(buffer, at, 110, 5000)
        assert entries(index) == [(12, 5000)]
    assert [index.lookup(offset) for offset in (0, 99, 100, 111, 112, 10_000)] == [0, 0, 0, 0, 5000, 5000]


def test_entries_keep_their_distance(kernels: Kernels) -> None:
    index = kernels.OffsetIndex(0)
    positions = [0, STEP - 1, STEP, 2 * STEP - 1, 2 * STEP + 7, 3 * STEP + 6, 3 * STEP + 7]
    for offset, position in enumerate(positions):
        index.add(header(0), 0, offset, position)
    assert entries(index) == [(2, STEP), (4, 2 * STEP + 7), (6, 3 * STEP + 7)]
    for end, left in ((3 * STEP + 8, 3), (3 * STEP + 7, 2), (STEP + 1, 1), (STEP, 0), (-1, 0)):
        index.truncate_to(end)
        assert len(index) == left
    index.add(header(0), 0, 9, STEP)
    assert entries(index) == [(9, STEP)], "what was cut off leaves no distance to keep"


@pytest.mark.parametrize(
    ("base_offset", "delta", "position"),
    [
        (49, 0, STEP),  # before the segment
        (40, 9, STEP),
        (50 + INT32_MAX, 1, STEP),
        (50 + 2**32, 0, STEP),
        (2**63 - 1, INT32_MAX, STEP),
        (-(2**63), 0, STEP),
        (50, -1, STEP),
        (60, 0, INT32_MAX + 1),
        (60, 0, 2**63 - 1),
    ],
)
def test_what_kafkas_entry_cannot_hold_is_not_listed(
    kernels: Kernels, base_offset: int, delta: int, position: int
) -> None:
    index = kernels.OffsetIndex(50)
    index.add(header(delta), 0, base_offset, position)
    assert entries(index) == []
    index.add(header(0), 0, 60, STEP)
    index.add(header(0), 0, 60, 2 * STEP)
    index.add(header(0), 0, 59, 3 * STEP)
    index.add(header(0), 0, 50 + INT32_MAX, INT32_MAX)
    assert entries(index) == [(10, STEP), (INT32_MAX, INT32_MAX)], "offsets ascend, up to the largest"
    assert index.lookup(49 + INT32_MAX) == STEP
    assert index.lookup(2**63 - 1) == INT32_MAX


@pytest.mark.parametrize("at", [-1, 1, 2**40])
def test_a_header_must_fit_into_the_buffer(kernels: Kernels, at: int) -> None:
    index = kernels.OffsetIndex(0)
    with pytest.raises(UsageError):
        index.add(header(0), at, 0, STEP)
    with pytest.raises(UsageError):
        index.add(header(0)[:-1], 0, 0, STEP)
    assert len(index) == 0
    index.add(b"", at, 0, STEP - 1)
    assert len(index) == 0, "none is due, and none is read"


@settings(max_examples=100)
@given(batches=st.lists(st.tuples(st.integers(1, 50), st.integers(61, 3 * STEP)), max_size=30), cut=st.integers(0, 31))
def test_a_lookup_is_safe_and_near(kernels: Kernels, batches: list[tuple[int, int]], cut: int) -> None:
    index, log, offset, position = kernels.OffsetIndex(7), [], 7, 0
    for records, size in batches:
        index.add(header(records - 1), 0, offset, position)
        log.append((offset, position))
        offset, position = offset + records, position + size
    if cut < len(log):
        offset, position = log[cut]
        index.truncate_to(position)
        del log[cut:]
    for wanted in range(7, offset):
        holding = max(at for first, at in log if first <= wanted)
        found = index.lookup(wanted)
        assert found <= holding
        assert found in [at for _, at in log]
        assert not [at for _, at in log if found + STEP <= at < holding], "a nearer one had been due"


class IndexMachine(RuleBasedStateMachine):
    """Any sequence of calls leaves both indexes the same."""

    twins: Twins
    OFFSETS = st.integers(-2, 400) | INT64
    POSITIONS = st.integers(-1, 20 * STEP) | st.integers(INT32_MAX - 2 * STEP, INT32_MAX + 2 * STEP) | INT64

    def __init__(self) -> None:
        super().__init__()
        self.start_again(0)

    def both(self, name: str, *args: Any) -> None:
        assert outcome(getattr(self.native, name), *args) == outcome(getattr(self.pure, name), *args)

    @rule(base_offset=st.integers(-1, 100) | INT64)
    def start_again(self, base_offset: int) -> None:
        self.pure = self.twins.pure.OffsetIndex(base_offset)
        self.native = self.twins.native.OffsetIndex(base_offset)
        self.next = (base_offset, 0)

    @rule(delta=st.integers(0, 9), size=st.integers(61, 3 * STEP))
    def append(self, delta: int, size: int) -> None:
        offset, position = self.next
        if offset + delta < 2**63 - 1:
            self.both("add", header(delta), 0, offset, position)
            self.next = (offset + delta + 1, position + size)

    @rule(
        delta=st.integers(-(2**31), INT32_MAX) | st.integers(-2, 9),
        at=st.integers(-1, 4),
        offset=OFFSETS,
        position=POSITIONS,
    )
    def add_anything(self, delta: int, at: int, offset: int, position: int) -> None:
        self.both("add", b"###" + header(delta), at, offset, position)

    @rule(position=POSITIONS)
    def truncate_to(self, position: int) -> None:
        self.both("truncate_to", position)

    @rule(offset=OFFSETS)
    def look_up(self, offset: int) -> None:
        self.both("lookup", offset)

    @invariant()
    def equal(self) -> None:
        assert self.native.base_offset == self.pure.base_offset
        assert len(self.native) == len(self.pure)
        assert self.native.encode() == self.pure.encode()
        for relative, position in entries(self.pure):
            assert self.native.lookup(self.pure.base_offset + relative) == position


def test_any_sequence_of_calls(twins: Twins) -> None:
    class Machine(IndexMachine):
        pass

    Machine.twins = twins
    run_state_machine_as_test(Machine, settings=settings(max_examples=100, stateful_step_count=25, deadline=None))


def test_the_native_one_is_read_while_it_grows() -> None:
    count = 10_000
    index = load("native").OffsetIndex(0)
    seen: list[bytes] = []
    is_done = Event()

    def read() -> None:
        while not is_done.is_set():
            seen.append(index.encode())  # without the GIL

    reader = Thread(target=read)
    reader.start()
    try:
        for number in range(count):
            index.add(header(0), 0, number, (number + 1) * STEP)
    finally:
        is_done.set()
        reader.join()
    whole = index.encode()
    assert whole == b"".join(struct.pack(">ii", number, (number + 1) * STEP) for number in range(count))
    assert all(whole.startswith(part) for part in seen)
