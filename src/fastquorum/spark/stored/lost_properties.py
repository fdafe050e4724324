"""A directory of ours whose `fastquorum.properties` is lost, or another cluster's: whether it is one, and what its log
holds.

Without that file it would be taken for Kafka's, and records of users for damaged metadata: its first record says what
it is.
"""

from collections.abc import Collection, Iterable
from typing import Final

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import load
from fastquorum.spark.stored.stores import store_of
from fastquorum.storage.identity import LogKind, is_of_another_cluster, is_of_quorum, meta_by_kafka
from fastquorum.storage.properties import parse_properties
from fastquorum.wire.records.metadata import decode_metadata_record

_LOOK_BYTES: Final = 1 << 20


def is_blank(own: bytes) -> bool:
    """Return whether nothing is left of our properties: the file is empty, or a crash left zeros in it."""
    return not own.strip(b"\0 \t\r\n")


def are_properties_lost(names: Collection[str], meta: bytes | None, own: bytes | None) -> bool:
    """Return whether a directory with these files, relative to it, is one of ours of which nothing says what its log
    holds. `meta`, `own`: its properties, Kafka's and ours; None: there are none."""
    if own is not None:
        return is_blank(own) or (meta is not None and _are_apart(meta, own))
    return meta is not None and not meta_by_kafka(meta) and is_of_quorum(names.__contains__)


def _are_apart(meta: bytes, own: bytes) -> bool:
    """Return whether ours are of another cluster, and say nothing of this directory."""
    try:
        return is_of_another_cluster(parse_properties(meta), parse_properties(own))
    except ValueError:
        return False


def kind_by_records(segments: Iterable[str]) -> LogKind:
    """By the first record that is neither a control record nor damaged; METADATA if there is none."""
    kernels = load("native")
    for path in segments:
        store = store_of(path)
        try:
            data = store.read(path, 0, min(_LOOK_BYTES, store.size(path)))
            for info in kernels.batch_headers(data):
                if info.is_control or not info.crc_valid:
                    continue
                (value, *_) = [each.value for each in kernels.decode_records(data, info.position)]
                return _kind_of(value)
        except FastQuorumError:
            continue
    return LogKind.METADATA


def _kind_of(value: bytes | None) -> LogKind:
    try:
        decode_metadata_record(value or b"")
    except FastQuorumError:
        return LogKind.USER
    return LogKind.METADATA
