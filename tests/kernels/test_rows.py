"""Rows of records with their JSON text: the twins agree on every byte, and with what people are shown."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastquorum.cli.terminal.json_text import jackson_text
from fastquorum.errors import CorruptionError, DecompressedTooLarge, FastQuorumError, UsageError
from fastquorum.kernels import Attribute, Compression, Kernels, Record
from fastquorum.kernels.rows import NO_TYPE, Packed, RowFault, RowFilter, Rows, Want, control_row_type
from fastquorum.types import Uuid
from fastquorum.wire import to_json
from fastquorum.wire.records.cluster import ClientQuotaRecord, FeatureLevelRecord
from fastquorum.wire.records.control import ControlRecordType, encode_control_record
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.metadata import METADATA_RECORDS, decode_metadata_record, encode_metadata_record
from fastquorum.wire.records.row_layouts import ROW_TYPE_NAMES, record_layouts
from fastquorum.wire.records.topics import PartitionChangeRecord, TopicRecord
from tests.wire.strategies import messages

from .conftest import Twins
from .strategies import batches, logs, mutated

EVERYTHING = Want.VALUES | Want.KEYS | Want.HEADERS | Want.TEXTS
ANY_MESSAGE = st.sampled_from(sorted(METADATA_RECORDS)).flatmap(
    lambda key: st.integers(
        METADATA_RECORDS[key].__wire__.versions.first, METADATA_RECORDS[key].__wire__.versions.last
    ).flatmap(lambda version: messages(METADATA_RECORDS[key], version, True).map(lambda message: (message, version)))
)
FILTERS = st.builds(
    RowFilter,
    offset_min=st.integers(0, 1010),
    offset_max=st.integers(0, 1020),
    epoch_min=st.integers(0, 5),
    epoch_max=st.integers(0, 10),
    timestamp_ms_min=st.integers(-(2**63), 2**42),
    timestamp_ms_max=st.integers(0, 2**63 - 1),
    types=st.none() | st.frozensets(st.integers(-128, 127), max_size=5),
)


def packed(column: Packed | None) -> list[bytes | None] | None:
    if column is None:
        return None
    assert column.ends.dtype == np.int32
    ends = column.ends.tolist()
    assert ends[0] == 0
    assert ends[-1] == len(column.data)
    parts = [column.data[start:end] for start, end in itertools.pairwise(ends)]
    return [part if valid else None for part, valid in zip(parts, column.valid.tolist(), strict=True)]


def plain(rows: Rows) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, column in rows._asdict().items():
        shown[name] = (
            packed(column) if column is None or isinstance(column, Packed) else (column.dtype, column.tolist())
        )
    return shown


def collect(kernels: Kernels, data: bytes, *arguments: Any, position: int = 0, **options: Any) -> Any:
    """What one kernel set makes of it: where it ended, and the rows; or its error."""
    limits = {name: options.pop(name) for name in ("verify_crc", "rows_max", "bytes_max") if name in options}
    reader = kernels.RowReader(record_layouts(), *arguments, **options)
    try:
        end: Any = reader.read(data, position, **limits)
    except FastQuorumError as error:
        end = (type(error), vars(error) if isinstance(error, CorruptionError) else None)
    count = len(reader)
    rows = plain(reader.take())
    assert (len(rows["offsets"][1]), len(reader)) == (count, 0)
    return end, rows


def same(twins: Twins, data: bytes, *arguments: Any, **options: Any) -> Any:
    pure, native = (collect(kernels, data, *arguments, **options) for kernels in twins)
    assert native == pure
    return native


def batch_of(kernels: Kernels, values: list[bytes], **options: Any) -> bytes:
    return kernels.encode_values(values, **{"base_offset": 0, "leader_epoch": 1, "timestamp_ms": 5, **options})


@settings(max_examples=300)
@example(drawn=(ClientQuotaRecord(entity=[], key="", value=math.inf, remove=False), 0))
@given(drawn=ANY_MESSAGE)
def test_the_text_of_a_record_is_what_people_are_shown(twins: Twins, drawn: Any) -> None:
    message, version = drawn
    value = encode_metadata_record(message, version)
    _, rows = same(twins, batch_of(twins.pure, [value]))
    (text,) = rows["texts"]
    assert json.loads(text) == json.loads(jackson_text(to_json(message, version)))
    assert ROW_TYPE_NAMES[rows["types"][1][0]].replace("_", "").lower() == type(message).__name__.lower()
    assert rows["versions"][1] == [version]
    assert rows["faults"][1] == [RowFault.NONE]


@settings(max_examples=300)
@given(value=mutated(ANY_MESSAGE.map(lambda drawn: encode_metadata_record(*drawn))) | st.binary(max_size=40))
def test_what_is_no_record_is_told_and_kept(twins: Twins, value: bytes) -> None:
    _, rows = same(twins, batch_of(twins.pure, [value]), EVERYTHING)
    assert rows["values"] == [value]
    (fault,) = rows["faults"][1]
    assert (rows["texts"] == [None]) == (fault != RowFault.NONE)
    try:
        decode_metadata_record(value)
    except FastQuorumError:
        assert fault != RowFault.NONE
    else:
        assert fault == RowFault.NONE


@settings(max_examples=200)
@given(
    data=st.one_of(batches(), logs()),
    want=st.integers(0, 15),
    wanted=st.just(RowFilter()) | FILTERS,
    is_metadata=st.booleans(),
    rows_max=st.integers(1, 20),
    bytes_max=st.integers(1, 3000),
)
def test_the_twins_agree_on_any_batches(
    twins: Twins, data: bytes, want: int, wanted: RowFilter, **options: Any
) -> None:
    position = 0
    while position < len(data):
        end, rows = same(twins, data, want, wanted, position=position, **options)
        assert end > position
        for offset, timestamp in zip(rows["offsets"][1], rows["timestamps_ms"][1], strict=True):
            assert wanted.offset_min <= offset < wanted.offset_max
            assert wanted.timestamp_ms_min <= timestamp < wanted.timestamp_ms_max
        position = end


@settings(max_examples=300)
@given(data=mutated(st.one_of(batches(), logs())), verify_crc=st.booleans(), want=st.integers(0, 15))
def test_the_twins_agree_on_damaged_batches(twins: Twins, data: bytes, verify_crc: bool, want: int) -> None:
    same(twins, data, want, verify_crc=verify_crc)


def test_rows_come_from_as_many_batches_as_there_is_room_for(kernels: Kernels) -> None:
    data = b"".join(batch_of(kernels, [b"x"] * 4, base_offset=at) for at in range(0, 40, 4))
    reader = kernels.RowReader((), Want.VALUES, is_metadata=False)
    end = reader.read(data, rows_max=10)
    assert len(reader) == 12
    assert reader.read(data, end) == len(data)
    assert reader.take().offsets.tolist() == list(range(40))


def test_what_stands_behind_good_batches_is_the_next_calls_error(kernels: Kernels) -> None:
    good = batch_of(kernels, [b"good"])
    bad = bytearray(batch_of(kernels, [b"bad"], base_offset=1))
    bad[-1] ^= 1
    reader = kernels.RowReader((), is_metadata=False)
    assert reader.read(good + bad) == len(good)
    with pytest.raises(CorruptionError, match="crc") as caught:
        reader.read(good + bad, len(good))
    assert (caught.value.position, caught.value.offset) == (len(good), 1)
    assert reader.take().offsets.tolist() == [0]


def test_a_batch_must_begin_where_the_last_one_ended(kernels: Kernels) -> None:
    first, gap = batch_of(kernels, [b"a", b"b"]), batch_of(kernels, [b"c"], base_offset=3)
    reader = kernels.RowReader((), is_metadata=False)
    assert reader.next_offset == -1
    assert reader.read(first + gap) == len(first)
    assert reader.next_offset == 2
    with pytest.raises(CorruptionError, match="offset"):
        reader.read(first + gap, len(first))
    reader.next_offset = -1
    assert reader.read(first + gap, len(first)) == len(first + gap)
    assert reader.next_offset == 4


def test_a_compressed_batch_that_grows_too_large_is_refused_where_it_stands(kernels: Kernels) -> None:
    good = batch_of(kernels, [b"good"])
    bomb = batch_of(kernels, [bytes(1 << 20)], base_offset=1, attributes=int(Compression.GZIP))
    reader = kernels.RowReader((), Want.VALUES, is_metadata=False, decompressed_bytes_max=1 << 16)
    assert reader.read(good + bomb) == len(good)
    with pytest.raises(DecompressedTooLarge) as caught:
        reader.read(good + bomb, len(good))
    assert caught.value.offset == 1


def test_control_records_are_rows_of_their_own_types(kernels: Kernels) -> None:
    key, value = encode_control_record(LeaderChangeMessage(leader_id=7))
    placed = {"base_offset": 3, "leader_epoch": 2, "timestamp_ms": 9, "attributes": int(Attribute.CONTROL)}
    data = kernels.encode_records([Record(value, key)], **placed)
    reader = kernels.RowReader(record_layouts())
    assert reader.read(data) == len(data)
    rows = reader.take()
    assert rows.types.tolist() == [control_row_type(ControlRecordType.LEADER_CHANGE)]
    assert ROW_TYPE_NAMES[int(rows.types[0])] == "LEADER_CHANGE"
    assert rows.texts is not None
    assert json.loads(rows.texts.data)["leaderId"] == 7


def test_of_types_that_nobody_wants_there_is_no_row_but_of_a_type_that_nobody_can_tell(kernels: Kernels) -> None:
    topic = TopicRecord(name="a", topic_id=Uuid(bytes(16)))
    values = [encode_metadata_record(topic, 0), b"\x02broken", encode_metadata_record(FeatureLevelRecord(name="f"), 0)]
    reader = kernels.RowReader(record_layouts(), Want.TEXTS, RowFilter(types=frozenset({12})))
    reader.read(batch_of(kernels, values))
    rows = reader.take()
    assert rows.types.tolist() == [NO_TYPE, 12]
    assert rows.faults.tolist() == [RowFault.MALFORMED, RowFault.NONE]


def test_a_record_of_a_later_version_is_named_and_not_read(kernels: Kernels) -> None:
    known = encode_metadata_record(PartitionChangeRecord(topic_id=Uuid(bytes(16))), 0)
    later = known[:2] + b"\x63" + known[3:]
    unknown = known[:1] + b"\x7f" + known[2:]
    reader = kernels.RowReader(record_layouts(), EVERYTHING)
    reader.read(batch_of(kernels, [later, unknown]))
    rows = reader.take()
    assert [ROW_TYPE_NAMES.get(each) for each in rows.types.tolist()] == ["PARTITION_CHANGE_RECORD", None]
    assert rows.versions.tolist() == [99, 0]
    assert rows.faults.tolist() == [RowFault.UNKNOWN_VERSION, RowFault.UNKNOWN_TYPE]
    assert packed(rows.values) == [later, unknown]
    assert packed(rows.texts) == [None, None]


def test_a_buffer_has_no_position_outside(kernels: Kernels) -> None:
    for position in (-1, 4):
        with pytest.raises(UsageError, match="outside"):
            kernels.RowReader(()).read(b"abc", position)


@pytest.mark.parametrize("number", [-129, 128])
def test_a_type_is_a_small_number(kernels: Kernels, number: int) -> None:
    with pytest.raises(UsageError, match="not a type of rows"):
        kernels.RowReader((), Want.TEXTS, RowFilter(types=frozenset({number})))
