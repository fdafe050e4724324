"""Kinds of hostile connections: what each connection of a crowd sends, and what it does with the answers.

The oldest kinds each do one thing. Of floods, every request is sent in every way (`_WAYS`).
"""

from typing import Final, NamedTuple

from fastquorum.wire.messages.fetch import FetchRequest

from .fuzz.nodes_time import MIB
from .hostile_requests import frame, of_any_log, of_controllers, of_user_logs
from .nodes import TOPIC

PIPELINED: Final = 200
"""Requests that one connection sends at once."""


class Kind(NamedTuple):
    """What each connection of a crowd does."""

    begins_with: bytes = b""
    trickles: bytes = b""
    """Sent a byte at a time, over and over."""
    reconnects: bool = False
    """Closed and made anew all the time."""
    reads_bytes: int = 0
    """Bytes of the responses that are read each turn; after a read all is sent again."""
    half_closes: bool = False
    """It ends its own direction once it has sent all."""
    at_follower: bool = False
    """It asks a follower, not the leader."""


_CLIENT_HELLO: Final = b"\x16\x03\x01\x02\0" + b"\x01\0\x01\xfc\x03\x03" + bytes(range(256)) * 2
"""A TLS record as it begins, whose first four bytes are a length that no frame has."""
_WAYS: Final = {
    "read": Kind(reads_bytes=MIB),
    "unread": Kind(),
    "read by the byte": Kind(reads_bytes=1),
    "half closed": Kind(half_closes=True),
    "not waited for": Kind(reconnects=True),
    "at a follower": Kind(reads_bytes=MIB, at_follower=True),
    "at a follower, not waited for": Kind(reconnects=True, at_follower=True),
}


def _fetch(*, offset: int, wait_ms: int, min_bytes: int) -> bytes:
    part = FetchRequest.FetchTopic.FetchPartition(fetch_offset=offset, partition_max_bytes=8 * MIB)
    topic = FetchRequest.FetchTopic(topic=TOPIC, partitions=[part])
    request = FetchRequest(replica_id=-1, max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=2**31 - 1, topics=[topic])
    return frame(request, 11)


_SHORT_FLOODS: Final = (
    "questions about the quorum",
    "offsets by time",
    "handshakes",
    "SASL's handshakes",
    "SASL's tokens",
    "votes of voters and strangers",
)


def plain() -> dict[str, Kind]:
    """Connections that break rules of the protocol, or have a user log's consumers wait."""
    wait_ms = 2**31 - 1
    waiting = _fetch(offset=0, wait_ms=wait_ms, min_bytes=2**31 - 1)
    end = _fetch(offset=1, wait_ms=wait_ms, min_bytes=2**31 - 1)
    whole = _fetch(offset=0, wait_ms=0, min_bytes=1)
    return {
        "silent": Kind(),
        "one byte": Kind(b"\0"),
        "half of a length": Kind(b"\0\0"),
        "TLS": Kind(_CLIENT_HELLO, reconnects=True),
        "HTTP": Kind(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * PIPELINED, reconnects=True),
        "a length and nothing": Kind((MIB).to_bytes(4, "big")),
        "much of a frame that is announced as huge": Kind((90 * MIB).to_bytes(4, "big") + bytes(MIB // 2)),
        "bytes that trickle": Kind((1_000).to_bytes(4, "big"), trickles=b"\0"),
        "lengths that no frame has": Kind(b"\x7f\xff\xff\xff", reconnects=True),
        "garbage": Kind(b"\0\0\0\x20" + bytes(range(200, 232)), reconnects=True),
        "an unknown API": Kind(b"\0\0\0\x08\x7f\xff\0\0\0\0\0\x07", reconnects=True),
        "connected and closed": Kind(reconnects=True),
        "a part of a frame, half closed": Kind(whole * 3 + whole[:-1], half_closes=True),
        "requests whose answers nobody reads": Kind(whole * PIPELINED),
        "answers read by the byte": Kind(whole * PIPELINED, reads_bytes=1),
        "requests that wait for ever": Kind(waiting * PIPELINED),
        "requests that wait for ever, half closed": Kind(waiting * PIPELINED, half_closes=True),
        "requests behind one that waits": Kind(end + whole * PIPELINED),
    }


def short() -> list[str]:
    """Names of kinds that stand for all, where there is little time."""
    return [*plain(), *(f"{flood}, read" for flood in _SHORT_FLOODS)]


def kinds(*, is_controllers: bool = False, epoch: int = 1) -> dict[str, Kind]:
    """By name. `epoch`: the leader's."""
    floods = of_any_log(epoch) | (of_controllers() if is_controllers else of_user_logs())
    each_way = {
        f"{name}, {way}": kind._replace(begins_with=requests * (PIPELINED // requests_count(requests) or 1))
        for name, requests in floods.items()
        for way, kind in _WAYS.items()
    }
    return plain() | each_way


def requests_count(requests: bytes) -> int:
    """Frames in these bytes."""
    count = at = 0
    while at < len(requests):
        at += 4 + int.from_bytes(requests[at : at + 4], "big")
        count += 1
    return count
