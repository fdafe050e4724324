"""Every record of the golden metadata logs decodes to the JSON that kafka-dump-log prints, and encodes back."""

import json

import pytest

from fastquorum.kernels import load
from fastquorum.wire import to_json
from fastquorum.wire.codec.codec import codec_of
from fastquorum.wire.records.control import (
    ControlRecordType,
    control_type,
    decode_control_record,
    encode_control_record,
)
from fastquorum.wire.records.metadata import (
    METADATA_RECORDS,
    decode_metadata_record,
    encode_metadata_record,
    record_type_name,
)

from .golden import CLUSTER, LogRecord, dumped_records, log_records

LOG = "__cluster_metadata-0/00000000000000000000.log"
CHECKPOINT = "__cluster_metadata-0/00000000000000003829-0000000003.checkpoint"

LABELS = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange: ",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader ",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter ",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion ",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters ",
}


NATIVE = codec_of(load("native"))


def as_dumped(record: LogRecord) -> str:
    """The record as kafka-dump-log prints it; checks on the way that it encodes back."""
    if record.control:
        assert record.key is not None
        kind, message = decode_control_record(record.key, record.value)
        assert kind is control_type(record.key)
        assert encode_control_record(message) == (record.key, record.value)
        return LABELS[kind] + json.dumps(to_json(message, 0), separators=(",", ":"))
    message, version = decode_metadata_record(record.value)
    assert decode_metadata_record(record.value, NATIVE) == (message, version)
    assert encode_metadata_record(message, version) == record.value
    assert encode_metadata_record(message, version, NATIVE) == record.value
    value = {"type": record_type_name(type(message)), "version": version, "data": to_json(message, version)}
    return "payload: " + json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize(
    ("file", "dump"),
    [
        (f"c1/{LOG}", "dump-c1.txt.gz"),
        (f"c2/{LOG}", "dump-c2.txt.gz"),
        (f"c1/{CHECKPOINT}", "dump-c1-checkpoint-3829.txt.gz"),
    ],
)
def test_records_are_what_kafka_dumps(file: str, dump: str) -> None:
    expected = dumped_records(dump)
    ours = [(record.offset, as_dumped(record)) for record in log_records(CLUSTER / file)]
    assert len(ours) == len(expected) > 500
    for got, wanted in zip(ours, expected, strict=True):
        assert got == wanted


def test_the_26_records_of_kafka_are_there() -> None:
    assert sorted(METADATA_RECORDS) == [*range(6), *range(7, 13), 14, 15, *range(17, 29)]
