"""A metadata log begins with the feature levels it was formatted with; other logs, and logs with records, do not."""

from fastquorum.node.records.bootstrap_records import first_values, is_without_records
from fastquorum.storage.identity import LogKind
from fastquorum.wire.records.cluster import ConfigRecord, FeatureLevelRecord
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record
from tests.lane.builders import value_batch
from tests.node.rig import Rig

LEVELS = tuple(
    encode_metadata_record(FeatureLevelRecord(name=name, feature_level=level), 0)
    for name, level in (("metadata.version", 30), ("group.version", 1))
)
ELR = encode_metadata_record(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1), 0)


def kinds(values: tuple[bytes, ...]) -> list[str]:
    return [type(decode_metadata_record(value)[0]).__name__ for value in values]


def stored(rig: Rig) -> list[bytes]:
    """The values of what is no control batch."""
    data = rig.log.read(0, 1 << 20)
    found: list[bytes] = []
    for info in rig.kernels.batch_headers(data):
        if not info.is_control:
            found += [value or b"" for value in rig.kernels.decode_values(data, info.position)]
    return found


def test_they_stand_in_a_transaction_as_kafka_s_controller_writes_them() -> None:
    assert kinds(first_values(LEVELS)) == [
        "BeginTransactionRecord",
        "FeatureLevelRecord",
        "FeatureLevelRecord",
        "EndTransactionRecord",
    ]
    assert kinds(first_values((*LEVELS, ELR)))[-2:] == ["ConfigRecord", "EndTransactionRecord"]
    assert first_values(()) == ()


def test_software_that_knows_no_transactions_is_given_none() -> None:
    """metadata.version 13 (3.6-IV1) is the first that has them."""
    old, first = (
        encode_metadata_record(FeatureLevelRecord(name="metadata.version", feature_level=level), 0)
        for level in (12, 13)
    )
    assert first_values((old,)) == (old,)
    assert kinds(first_values((first,)))[0] == "BeginTransactionRecord"


def test_the_least_isr_of_the_cluster_is_the_controllers_own() -> None:
    """Kafka's brokers take it over their own, so that nothing else may stand there."""
    (config,) = (
        record
        for value in first_values((*LEVELS, ELR), 2)
        if isinstance(record := decode_metadata_record(value)[0], ConfigRecord)
    )
    assert (config.name, config.value) == ("min.insync.replicas", "2")


def test_the_first_leader_appends_them_before_anything_else() -> None:
    rig = Rig(kind=LogKind.METADATA, first_records=LEVELS)
    rig.lead()
    ticket = rig.append(LEVELS[0])
    rig.sync()
    assert stored(rig) == [*first_values(LEVELS), LEVELS[0]]
    assert ticket.offsets == [5]
    assert rig.replica.high_watermark == rig.log.end_offset == 6
    assert not is_without_records(rig.kernels, rig.log)


def test_a_log_with_records_has_had_them() -> None:
    rig = Rig(1, 2, 3, kind=LogKind.METADATA, first_records=LEVELS)
    rig.log.append_batch(value_batch(0, 1), base_offset=0, next_offset=1, epoch=1, timestamp_ms=1)
    rig.log.request_flush()
    rig.sync()
    rig.lead()
    assert len(stored(rig)) == 1


def test_without_any_nothing_is_appended() -> None:
    rig = Rig(kind=LogKind.METADATA)
    rig.lead()
    assert stored(rig) == []
