"""Fetch 12-18 in the steady state's shape: parsers and encoders of its requests.

A parser answers None unless the frame (without its length prefix) has exactly that shape: one topic, one partition, no
session, no tag that Kafka 4.3 does not know. Tests hold both to the declarations in `wire.messages.fetch`, which this
room may not import. Source: KIP-595, KIP-853, KIP-1166.
"""

import struct
from collections.abc import Callable
from typing import Final

from fastquorum.kernels.pure.lane.compact import NAMED_TOPIC, VERSIONS, tagged, uvarint

RequestFields = tuple[int, bytes | None, int, int, int, bytes | None, int, int, int, bytes | None, int]
"""correlation_id, cluster_id, replica_id, max_wait_ms, max_bytes, topic_id, leader_epoch, fetch_offset,
last_fetched_epoch, directory_id, high_watermark. The topic id and the directory id are None where the version lacks
them; so is the cluster id where it is left out."""
RequestEncoder = Callable[[int, int, int, int, int], bytes]
"""(correlation_id, leader_epoch, fetch_offset, last_fetched_epoch, high_watermark)"""
RequestParser = Callable[[bytes], RequestFields | None]
RequestEncoderMaker = Callable[[int, bytes, bytes | None, int, int, int, bytes, bytes], RequestEncoder]

_API_KEY: Final = 1
_UNKNOWN_WATERMARK: Final = 0x7FFF_FFFF_FFFF_FFFF
_ZERO_UUID: Final = bytes(16)
_CLUSTER_ID_MAX: Final = 0x7F
"""A longer one is not the steady state's: its length is not one byte."""
# What stands before the topic, and behind it: no session, one topic; partition 0.
_ONE_TOPIC: Final = b"\0\0\0\0\xff\xff\xff\xff\2"
_ONE_PARTITION: Final = b"\2\0\0\0\0"
_HEAD: Final = struct.Struct(">h2xih")
_BEHIND_PARTITION: Final = struct.Struct(">BBBB")
_WATERMARK: Final = struct.Struct(">q")
_REPLICA: Final = struct.Struct(">i8xB")
# Tags, each with the size of what follows it.
_DIRECTORY_TAG: Final = b"\0\x10"
_WATERMARK_TAG: Final = b"\1\x08"
_REPLICA_TAG: Final = b"\1\x0d"


def _parser(version: int) -> RequestParser:
    is_named, has_replica = version < 13, version < 15
    body = struct.Struct(f">B{'i' if has_replica else ''}i4xi1x9s{'19s' if is_named else '16s'}5siqi12xB")

    def parse(frame: bytes) -> RequestFields | None:
        try:
            api_key, correlation_id, size = _HEAD.unpack_from(frame)
            at = _HEAD.size + max(size, 0)
            values = body.unpack_from(frame, at)
            wait_ms, bytes_max, one_topic, topic, one_partition, epoch, offset, last_epoch, tags = values[-9:]
            is_steady = one_topic == _ONE_TOPIC and one_partition == _ONE_PARTITION and values[0] == 0
            if not is_steady or api_key != _API_KEY or size < -1 or (is_named and topic != NAMED_TOPIC):
                return None
            tail = _parse_tail(version, frame, at + body.size, tags)
        except (IndexError, struct.error):
            return None
        if tail is None:
            return None
        cluster_id, replica_id, directory_id, high_watermark = tail
        if has_replica:
            replica_id = values[1]
        topic_id = None if is_named else topic
        known = (correlation_id, cluster_id, replica_id, wait_ms, bytes_max, topic_id)
        return (*known, epoch, offset, last_epoch, directory_id, high_watermark)

    return parse


def _parse_tail(version: int, frame: bytes, at: int, tags: int) -> tuple[bytes | None, int, bytes | None, int] | None:
    """cluster_id, replica_id, directory_id and high_watermark, from the partition's tags on."""
    directory_id = None if version < 17 else _ZERO_UUID
    if version >= 17 and tags and frame.startswith(_DIRECTORY_TAG, at):
        directory_id = frame[at + 2 : at + 18]
        at, tags = at + 18, tags - 1
    high_watermark = _UNKNOWN_WATERMARK
    if version >= 18 and tags and frame.startswith(_WATERMARK_TAG, at):
        (high_watermark,) = _WATERMARK.unpack_from(frame, at + 2)
        at, tags = at + 10, tags - 1
    topic_tags, forgotten, rack, more = _BEHIND_PARTITION.unpack_from(frame, at)
    if (tags, topic_tags, forgotten, rack) != (0, 0, 1, 1):
        return None
    at += _BEHIND_PARTITION.size
    cluster_id = None
    if more and frame[at] == 0:
        size = frame[at + 1]
        if not 0 < size <= _CLUSTER_ID_MAX or frame[at + 2] != size:
            return None
        cluster_id = frame[at + 3 : at + 2 + size]
        at, more = at + 2 + size, more - 1
    replica_id = -1
    if version >= 15 and more and frame.startswith(_REPLICA_TAG, at):
        replica_id, state_tags = _REPLICA.unpack_from(frame, at + 2)
        at, more = at + 15, more - 1 + state_tags
    if more or at != len(frame):
        return None
    return cluster_id, replica_id, directory_id, high_watermark


def _encoder_maker(version: int) -> RequestEncoderMaker:
    has_directory, has_watermark, has_state = version >= 17, version >= 18, version >= 15

    def make(
        api_version: int,
        client_id: bytes,
        cluster_id: bytes | None,
        replica_id: int,
        max_wait_ms: int,
        max_bytes: int,
        topic_id: bytes,
        directory_id: bytes,
    ) -> RequestEncoder:
        replica = struct.pack(">i", replica_id)
        head = struct.pack(">hh", _API_KEY, api_version)
        middle = struct.pack(">h", len(client_id)) + client_id + b"\0" + (b"" if has_state else replica)
        middle += struct.pack(">i4xi1x", max_wait_ms, max_bytes) + _ONE_TOPIC
        middle += (NAMED_TOPIC if version < 13 else topic_id) + _ONE_PARTITION
        names_directory = has_directory and directory_id != _ZERO_UUID
        tail = struct.pack(">q4xB", -1, names_directory + has_watermark)
        tail += tagged(0, directory_id) if names_directory else b""
        last = b"\0\1\1" + bytes([(cluster_id is not None) + has_state])
        last += b"" if cluster_id is None else tagged(0, uvarint(len(cluster_id) + 1) + cluster_id)
        last += tagged(1, replica + struct.pack(">qB", -1, 0)) if has_state else b""
        tail += _WATERMARK_TAG if has_watermark else last
        layout = f">{len(head)}si{len(middle)}siqi{len(tail)}s" + (f"q{len(last)}s" if has_watermark else "")
        pack = struct.Struct(layout).pack

        def encode(correlation_id: int, epoch: int, offset: int, last_epoch: int, high_watermark: int) -> bytes:
            if has_watermark:
                return pack(head, correlation_id, middle, epoch, offset, last_epoch, tail, high_watermark, last)
            return pack(head, correlation_id, middle, epoch, offset, last_epoch, tail)

        return encode

    return make


REQUEST_PARSERS: Final = {version: _parser(version) for version in VERSIONS}
REQUEST_ENCODERS: Final = {version: _encoder_maker(version) for version in VERSIONS}
