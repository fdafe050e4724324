"""The open batch: what it seals equals encode_values, and what does not fit changes nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, Kernels

PLACE = {"base_offset": 100, "leader_epoch": 4, "timestamp_ms": 1234}


def test_it_seals_what_encode_values_makes(kernels: Kernels) -> None:
    values = [b"", b"a" * 63, bytearray(b"b" * 64), memoryview(b"c" * 9000)]
    accumulator = kernels.Accumulator()
    accumulator.open(**PLACE)
    assert (accumulator.is_open, accumulator.record_count, accumulator.size_bytes) == (True, 0, BATCH_HEADER_BYTES)
    assert [accumulator.append(value) for value in values] == [100, 101, 102, 103]
    assert accumulator.append_many(values) == 104
    assert (accumulator.base_offset, accumulator.next_offset, accumulator.record_count) == (100, 108, 8)
    size = accumulator.size_bytes
    batch = accumulator.seal()
    assert batch == kernels.encode_values(values * 2, **PLACE)
    assert len(batch) == size
    accumulator.open(**PLACE)
    accumulator.append(b"again")
    assert accumulator.seal() == kernels.encode_values([b"again"], **PLACE)


def test_closed_it_has_nothing(kernels: Kernels) -> None:
    accumulator = kernels.Accumulator()
    closed = (False, -1, -1, 0, 0)

    def state() -> tuple[object, ...]:
        return (
            accumulator.is_open,
            accumulator.base_offset,
            accumulator.next_offset,
            accumulator.record_count,
            accumulator.size_bytes,
        )

    assert state() == closed
    accumulator.discard()
    accumulator.open(**PLACE)
    accumulator.append(b"x")
    accumulator.discard()
    assert state() == closed
    accumulator.open(**PLACE)
    accumulator.append(b"x")
    accumulator.seal()
    assert state() == closed


def test_misuse(kernels: Kernels) -> None:
    accumulator = kernels.Accumulator()
    for call in (lambda: accumulator.append(b""), lambda: accumulator.append_many([b""]), accumulator.seal):
        with pytest.raises(UsageError):
            call()
    accumulator.open(**PLACE)
    for call in (lambda: accumulator.open(**PLACE), accumulator.seal, lambda: accumulator.append_many([])):
        with pytest.raises(UsageError):
            call()
    assert accumulator.is_open
    accumulator.discard()
    for bad in ({"base_offset": -1}, {"leader_epoch": -1}, {"leader_epoch": 2**31}, {"timestamp_ms": 2**63}):
        with pytest.raises(UsageError):
            accumulator.open(**(PLACE | bad))
        assert not accumulator.is_open
    for limit in (-1, 0, BATCH_HEADER_BYTES, 2**31):
        with pytest.raises(UsageError):
            kernels.Accumulator(limit)


def test_offsets_do_not_run_over(kernels: Kernels) -> None:
    """The largest next offset is 2^63 - 1; a value that would move it further is refused and changes nothing."""
    accumulator = kernels.Accumulator()
    accumulator.open(2**63 - 3, 0, 0)
    with pytest.raises(UsageError):
        accumulator.append_many([b"x"] * 3)
    assert accumulator.append_many([b"x"] * 2) == 2**63 - 3
    with pytest.raises(UsageError):
        accumulator.append(b"x")
    assert (accumulator.next_offset, accumulator.record_count) == (2**63 - 1, 2)
    assert kernels.scan(accumulator.seal()).next_offset == 2**63 - 1


def test_what_does_not_fit_changes_nothing(kernels: Kernels) -> None:
    limit = len(kernels.encode_values([b"x" * 20, b"y" * 20], **PLACE))
    accumulator = kernels.Accumulator(limit)
    accumulator.open(**PLACE)
    assert accumulator.append(b"x" * 20) == 100
    assert accumulator.append(b"y" * 21) == -1
    assert accumulator.append_many([b"y", b"z" * 20]) == -1
    with pytest.raises(RecordTooLarge) as caught:
        accumulator.append(b"y" * 60)
    alone = len(kernels.encode_values([b"y" * 60], **PLACE))
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (alone, limit)
    with pytest.raises(RecordTooLarge) as caught:
        accumulator.append_many([b"y" * 20] * 3)
    assert caught.value.size_bytes == len(kernels.encode_values([b"y" * 20] * 3, **PLACE))
    assert (accumulator.record_count, accumulator.next_offset) == (1, 101)
    assert accumulator.append(b"y" * 20) == 101
    assert accumulator.seal() == kernels.encode_values([b"x" * 20, b"y" * 20], **PLACE)


@settings(max_examples=50)
@given(
    groups=st.lists(st.lists(st.binary(max_size=90), min_size=1, max_size=3), max_size=30), limit=st.integers(62, 800)
)
def test_against_a_model(kernels: Kernels, groups: list[list[bytes]], limit: int) -> None:
    accumulator = kernels.Accumulator(limit)
    accumulator.open(**PLACE)
    taken: list[bytes] = []
    for group in groups:
        if len(kernels.encode_values(group, **PLACE)) > limit:
            with pytest.raises(RecordTooLarge):
                accumulator.append_many(group)
        elif len(kernels.encode_values(taken + group, **PLACE)) > limit:
            assert accumulator.append_many(group) == -1
        else:
            assert accumulator.append_many(group) == 100 + len(taken)
            taken += group
        assert accumulator.next_offset == 100 + len(taken)
    if taken:
        assert accumulator.seal() == kernels.encode_values(taken, **PLACE)
