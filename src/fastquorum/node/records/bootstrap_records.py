"""The first records of a metadata log: the feature levels it was formatted with, which its first leader appends before
anything else. Kafka's nodes stop at any other record while they know no metadata.version. Pure.

Source: Kafka `ActivationRecordsGenerator`; KIP-778 (metadata.version), KIP-868 (metadata transactions).
"""

from collections.abc import Sequence
from typing import Final

from fastquorum.controller.image.features import METADATA_VERSION, METADATA_VERSION_MIN, Level
from fastquorum.kernels import Kernels
from fastquorum.storage.log.log import Log
from fastquorum.wire.records.cluster import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from fastquorum.wire.records.metadata import decode_metadata_record, encode_metadata_record

_ELR: Final = "eligible.leader.replicas.version"
_NODES: Final = 4
"""The resource type of nodes in a ConfigRecord; an empty name means all of them."""
_LOOK_BYTES: Final = 64 * 1024


def first_values(bootstrap: Sequence[bytes], min_insync_replicas: int = 1) -> tuple[bytes, ...]:
    """What a first leader appends, in one batch, for the records of a bootstrap checkpoint; nothing if it has none.
    `min_insync_replicas`: what its controller was started with."""
    if not bootstrap:
        return ()
    decoded = [decode_metadata_record(value)[0] for value in bootstrap]
    levels = {each.name: each.feature_level for each in decoded if isinstance(each, FeatureLevelRecord)}
    records = list(bootstrap)
    if levels.get(_ELR, 0) > 0:
        # With eligible leader replicas the minimum has to be known for the whole cluster (KIP-966).
        value = str(min_insync_replicas)
        default = ConfigRecord(resource_type=_NODES, resource_name="", name="min.insync.replicas", value=value)
        records.append(encode_metadata_record(default, 0))
    if not Level(levels.get(METADATA_VERSION, METADATA_VERSION_MIN)).has_transactions:
        return tuple(records)  # one batch is all or nothing by itself
    begin = encode_metadata_record(BeginTransactionRecord(name="Bootstrap records"), 0)
    return (begin, *records, encode_metadata_record(EndTransactionRecord(), 0))


def is_without_records(kernels: Kernels, log: Log) -> bool:
    """Does the log hold control batches only, and begin at 0? Whatever stands behind a snapshot has had its first
    records."""
    offset = log.start_offset
    if offset > 0:
        return False
    while offset < log.end_offset:
        infos = kernels.batch_headers(log.read(offset, _LOOK_BYTES), verify_crc=False)
        if any(not info.is_control for info in infos):
            return False
        offset = infos[-1].last_offset + 1
    return True
