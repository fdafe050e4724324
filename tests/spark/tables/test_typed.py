"""Typed columns of records: what the messages say, whatever their type and version, as their JSON has it too."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.errors import UsageError
from fastquorum.spark.scan import TableScan, read_table
from fastquorum.spark.stored.typed import record_types
from fastquorum.types import Uuid
from fastquorum.wire import Message
from fastquorum.wire.message import Struct
from fastquorum.wire.records.cluster import ClientQuotaRecord, NoOpRecord
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.metadata import METADATA_RECORDS, encode_metadata_record
from fastquorum.wire.records.metadata import record_type_name as name_of
from fastquorum.wire.records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from tests.spark.damage import make_log
from tests.wire.golden import CLUSTER
from tests.wire.strategies import messages

from .directories import KERNELS, batch, control, rows, write_log

C1 = CLUSTER / "c1"
VERSIONS = [
    (cls, version)
    for cls in METADATA_RECORDS.values()
    for version in range(cls.__wire__.versions.first, cls.__wire__.versions.last + 1)
]


def log_of(directory: Path, *values: bytes) -> Path:
    root = make_log(directory, 0, kind="metadata")
    write_log(root, {0: [KERNELS.encode_values(list(values), base_offset=0, leader_epoch=1, timestamp_ms=5)]})
    return root


def fields_of(message: Struct, version: int, kind: pa.DataType) -> dict[str, Any]:
    """Return every field of the type: null where this version has none."""
    known = {each.json_name: each for each in type(message).__wire__.fields}
    return {
        name: _plain(getattr(message, known[name].name), version, kind.field(name).type)
        if known[name].versions.has(version)
        else None
        for name in (field.name for field in kind)
    }


def _plain(value: Any, version: int, kind: pa.DataType) -> Any:
    if isinstance(value, Struct):
        return fields_of(value, version, kind)
    if isinstance(value, list):
        return [_plain(each, version, kind.value_type) for each in value]
    return str(value) if isinstance(value, Uuid) else value


@st.composite
def any_messages(draw: st.DrawFn) -> tuple[Message, int]:
    cls, version = draw(st.sampled_from(VERSIONS))
    return draw(messages(cls, version, flexible=True)), version


@given(drawn=st.lists(any_messages(), min_size=1, max_size=5))
@settings(deadline=None)
def test_any_message_is_its_struct(tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[Message, int]]) -> None:
    root = log_of(tmp_path_factory.mktemp("log"), *(encode_metadata_record(*each) for each in drawn))
    found = read_table(str(root), typed="true")
    for row, (message, version) in zip(found.to_pylist(), drawn, strict=True):
        structs = {name: row[name] for name in record_types() if row[name] is not None}
        kind = record_types().get(name_of(type(message)))
        expected = {} if kind is None else {kind.name: fields_of(message, version, kind.struct)}
        assert repr(structs) == repr(expected)  # NaN is not itself


def test_of_a_real_log_they_are_what_the_json_has() -> None:
    whole = rows(C1, "records")
    found = rows(C1, "records", typed="true")
    for row, typed in zip(whole, found, strict=True):
        data = json.loads(row["data"])
        struct = typed.get(row["type"]) or {}
        assert data.items() <= struct.items() or row["is_control"]
        assert {name for name in record_types() if typed[name] is not None} <= {row["type"]}


def test_one_column_for_each_type_however_many_are_asked_for() -> None:
    names = ("TOPIC_RECORD", "PARTITION_RECORD")
    both = read_table(str(C1), typed="true", types=",".join(names))
    assert both.schema.names[10:12] == list(names)
    assert "data" not in both.schema.names
    one = read_table(str(C1), typed="true", types="PARTITION_RECORD", columns="offset,PARTITION_RECORD")
    assert one.schema.names == ["offset", "PARTITION_RECORD"]
    assert one["PARTITION_RECORD"].to_pylist() == [each for each in both["PARTITION_RECORD"].to_pylist() if each]
    assert one.num_rows + sum(each is not None for each in both["TOPIC_RECORD"].to_pylist()) == both.num_rows


def test_control_records_have_structs_too(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [control(0, LeaderChangeMessage(version=1, leader_id=3, voters=[], granting_voters=[]))]})
    (row,) = rows(tmp_path, "control", typed="true", columns="LEADER_CHANGE")
    assert row["LEADER_CHANGE"]["leaderId"] == 3
    assert "PARTITION_RECORD" not in TableScan.of({"path": str(tmp_path), "table": "control", "typed": "true"}).columns


def test_an_older_version_lacks_fields_and_one_at_its_default_has_it(tmp_path: Path) -> None:
    records = [PartitionRecord(partition_id=1), PartitionChangeRecord(partition_id=1)]
    values = [encode_metadata_record(each, version) for each in records for version in (0, 2)]
    old, new, changed, _ = rows(log_of(tmp_path, *values), "records", typed="true")
    assert (old["PARTITION_RECORD"]["directories"], new["PARTITION_RECORD"]["directories"]) == (None, [])
    assert (old["PARTITION_RECORD"]["leaderRecoveryState"], changed["PARTITION_CHANGE_RECORD"]["leader"]) == (0, -2)
    assert changed["PARTITION_CHANGE_RECORD"]["isr"] is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 1.5])
def test_numbers_that_json_does_not_have(tmp_path: Path, value: float) -> None:
    record = encode_metadata_record(ClientQuotaRecord(key='"value":"NaN"', value=value), 0)
    (row,) = rows(log_of(tmp_path, record), "records", typed="true", types="CLIENT_QUOTA_RECORD")
    assert repr(row["CLIENT_QUOTA_RECORD"]["value"]) == repr(value)
    assert row["CLIENT_QUOTA_RECORD"]["key"] == '"value":"NaN"'


def test_what_cannot_be_read_is_null_and_named_as_ever(tmp_path: Path) -> None:
    good = encode_metadata_record(TopicRecord(name='a\n"b"', topic_id=Uuid(bytes(16))), 0)
    values = [good, good[:2] + b"\x63" + good[3:], encode_metadata_record(NoOpRecord(), 0)]
    first, later, nothing = rows(log_of(tmp_path, *values), "records", typed="true")
    assert first["TOPIC_RECORD"] == {"name": 'a\n"b"', "topicId": str(Uuid(bytes(16)))}
    assert (later["TOPIC_RECORD"], later["error"]) == (None, "version 99 of TOPIC_RECORD is unknown")
    assert (nothing["type"], nothing["error"]) == ("NO_OP_RECORD", None)
    assert later["value"] == values[1]


def test_user_records_have_none_and_other_tables_no_such_form(tmp_path: Path) -> None:
    write_log(make_log(tmp_path / "n1"), {0: [batch(0, 2)]})
    assert {row["TOPIC_RECORD"] for row in rows(tmp_path, "records", typed="true")} == {None}
    with pytest.raises(UsageError, match="option typed means nothing to table 'image'"):
        rows(C1, "image", typed="true")
