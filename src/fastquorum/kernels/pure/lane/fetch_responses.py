"""Fetch 12-18 in the steady state's shape: parsers and encoders of its responses.

A parser answers None unless the frame (without its length prefix) has exactly that shape: one topic, one partition, no
session, no error, no diverging epoch, no snapshot, no tag that Kafka 4.3 does not know. Tests hold both to the
declarations in `wire.messages.fetch`, which this room may not import. Source: KIP-595, KIP-853.
"""

import struct
from collections.abc import Callable
from typing import Final

from fastquorum.kernels.pure.lane.compact import NAMED_TOPIC, VERSIONS, read_uvarint, tagged, uvarint

ResponseFields = tuple[int, bytes | None, int, int, int, int, int, int]
"""correlation_id, topic_id, high_watermark, log_start_offset, leader_id, leader_epoch, records_start, records_end.
The leader is (-1, -1) where it is left out."""
ResponseEncoder = Callable[[int, int, int, bytes], bytes]
"""(correlation_id, high_watermark, log_start_offset, records)"""
ResponseParser = Callable[[bytes], ResponseFields | None]
ResponseEncoderMaker = Callable[[bytes, int, int, bytes | None, int], ResponseEncoder]

# What stands between the correlation id, the topic, the offsets and the records: no throttling, no error, no session,
# one topic; partition 0 without an error; no aborted transactions, no other replica to read from.
_ONE_TOPIC: Final = bytes(11) + b"\2"
_ONE_PARTITION: Final = b"\2" + bytes(6)
_NOTHING_ELSE: Final = b"\1\xff\xff\xff\xff"
_LEADER: Final = struct.Struct(">iiB")
_LEADER_TAG: Final = b"\1\x09"
"""With the size of what follows it."""
_ENDPOINTS_TAG: Final = 0


def _parser(version: int) -> ResponseParser:
    is_named = version < 13
    head = struct.Struct(f">i12s{'19s' if is_named else '16s'}7sq8xq5sB")

    def parse(frame: bytes) -> ResponseFields | None:
        try:
            correlation_id, one_topic, topic, one, high_watermark, log_start, nothing, size = head.unpack_from(frame)
            if one_topic != _ONE_TOPIC or one != _ONE_PARTITION or nothing != _NOTHING_ELSE:
                return None
            at = head.size
            if size > 0x7F:
                size, at = read_uvarint(frame, at - 1)
            if not size or (is_named and topic != NAMED_TOPIC):
                return None
            end = at + size - 1
            leader = _parse_tail(version, frame, end)
        except (IndexError, struct.error):
            return None
        if leader is None:
            return None
        return correlation_id, None if is_named else topic, high_watermark, log_start, *leader, at, end

    return parse


def _parse_tail(version: int, frame: bytes, at: int) -> tuple[int, int] | None:
    """The leader's id and epoch, from the partition's tags on."""
    tags = frame[at]
    at += 1
    leader_id, leader_epoch = -1, -1
    if tags and frame.startswith(_LEADER_TAG, at):
        leader_id, leader_epoch, leader_tags = _LEADER.unpack_from(frame, at + 2)
        at, tags = at + 11, tags - 1 + leader_tags
    topic_tags, more = frame[at], frame[at + 1]
    at += 2
    if version >= 16 and more and frame[at] == _ENDPOINTS_TAG:
        size, at = read_uvarint(frame, at + 1)
        at, more = at + size, more - 1
    return None if tags or topic_tags or more or at != len(frame) else (leader_id, leader_epoch)


def _encoder_maker(version: int) -> ResponseEncoderMaker:
    def make(topic_id: bytes, leader_id: int, leader_epoch: int, host: bytes | None, port: int) -> ResponseEncoder:
        head = _ONE_TOPIC + (NAMED_TOPIC if version < 13 else topic_id) + _ONE_PARTITION
        pack = struct.Struct(f">i{len(head)}sqqq5s").pack
        tail = b"\1" + tagged(1, struct.pack(">iiB", leader_id, leader_epoch, 0)) + b"\0"
        if version >= 16 and host is not None:
            endpoint = struct.pack(">Bi", 2, leader_id) + uvarint(len(host) + 1) + host
            endpoint += struct.pack(">iBB", port, 0, 0)
            tail += b"\1" + tagged(_ENDPOINTS_TAG, endpoint)
        else:
            tail += b"\0"

        def encode(correlation_id: int, high_watermark: int, log_start_offset: int, records: bytes) -> bytes:
            fixed = pack(correlation_id, head, high_watermark, -1, log_start_offset, _NOTHING_ELSE)
            return b"".join((fixed, uvarint(len(records) + 1), records, tail))

        return encode

    return make


RESPONSE_PARSERS: Final = {version: _parser(version) for version in VERSIONS}
RESPONSE_ENCODERS: Final = {version: _encoder_maker(version) for version in VERSIONS}
