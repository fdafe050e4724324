"""Random messages there and back: ours read and written by Kafka's generated classes, theirs by us, byte for byte.

By both of our codecs, the native one and its twin. `campaign messages` is the long form: so many messages in each
direction, spread evenly over every version of every message. The short form is a test in test_messages.py; both run
`exchange`.
"""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fastquorum.errors import WireError
from fastquorum.kernels import load
from fastquorum.wire import Message, codec_of, decode, encode, from_json, to_json
from tests.wire.golden import blank_records

from .kafka import KAFKA, OLD_CLIENTS, Kafka, find
from .oracle import Made, Oracle, versioned_in
from .random_messages import Census, RandomMessages

BATCH: Final = 64
"""Messages asked about at once."""
NATIVE: Final = codec_of(load("native"))
SHOWN_MAX: Final = 20
"""Differences kept."""

Versioned = Sequence[tuple[type[Message], int]]


@dataclass
class Direction:
    """One way: how much went it, and what it was like."""

    messages: int = 0
    message_bytes: int = 0
    bytes_max: int = 0
    differ: int = 0
    differences: list[str] = field(default_factory=list)
    """The first of them."""
    census: Census = field(default_factory=Census)

    def count(self, cls: type[Message], version: int, size: int, difference: str | None) -> None:
        self.messages += 1
        self.message_bytes += size
        self.bytes_max = max(self.bytes_max, size)
        if difference is not None:
            self.differ += 1
            if len(self.differences) < SHOWN_MAX:
                self.differences.append(f"{cls.__name__} v{version} {difference}"[:2000])

    def as_json(self, versioned: Versioned) -> dict[str, Any]:
        missing = [each for cls, version in versioned for each in self.census.missing(cls, version)]
        return {
            "messages": self.messages,
            "bytes": self.message_bytes,
            "bytes_max": self.bytes_max,
            "messages_with": dict(sorted(self.census.counts.items())),
            "never_occurred": {"count": len(missing), "first": missing[:SHOWN_MAX]},
            "differ": self.differ,
            "differences": self.differences,
        }


@dataclass
class Exchange:
    """Both ways."""

    ours: Direction = field(default_factory=Direction)
    theirs: Direction = field(default_factory=Direction)

    @property
    def differ(self) -> int:
        return self.ours.differ + self.theirs.differ


def exchange(
    oracle: Oracle,
    versioned: Versioned,
    each_version: int,
    seed: int,
    into: Exchange,
    progress: Callable[[], None] = lambda: None,
) -> None:
    """Send `each_version` messages of every version in each direction; what came of it is added to `into`."""
    for cls, version in versioned:
        drawn = RandomMessages(cls, version, seed)
        for first in range(0, each_version, BATCH):
            count = min(BATCH, each_version - first)
            _judge_ours(oracle, drawn, count, into.ours)
            progress()
        for made in oracle.make(cls, version, each_version, seed):
            try:
                difference = _difference(cls, version, made, into.theirs.census)
            except WireError as error:
                difference = f"fails: {error}; {made.raw.hex()}"
            into.theirs.count(cls, version, len(made.raw), difference)
        progress()


def _judge_ours(oracle: Oracle, drawn: RandomMessages, count: int, ours: Direction) -> None:
    cls, version = drawn.cls, drawn.version
    messages = []
    for _ in range(count):
        message = drawn.draw()
        has = ours.census.take(message, version)
        messages.append((message, not has & {"unknown tag", "records"}))
        raw = encode(message, version)
        kept = decode(cls, version, raw) == message == NATIVE.decode(cls, version, raw)
        kept = kept and NATIVE.encode(message, version) == raw
        ours.count(cls, version, len(raw), None if kept else f"comes back otherwise: {message!r}")
    for verdict in oracle.judge(cls, version, messages):
        if verdict is not None:
            ours.differ += 1
            ours.differences = [*ours.differences, f"{cls.__name__} v{version} {verdict}"[:2000]][:SHOWN_MAX]


def _difference(cls: type[Message], version: int, made: Made, census: Census) -> str | None:
    """What we make of it that Kafka does not."""
    message = decode(cls, version, made.raw)
    has = census.take(message, version)
    if NATIVE.decode(cls, version, made.raw) != message or NATIVE.encode(message, version) != made.canonical:
        return f"is another message to the native codec: {made.raw.hex()}"
    if (raw := encode(message, version)) != made.canonical:
        return f"written as {raw.hex()}, by Kafka as {made.canonical.hex()}"
    if decode(cls, version, made.canonical) != message:
        return f"without its tags at their default is another message: {made.raw.hex()}"
    printed = blank_records(to_json(message, version))
    if json.dumps(printed) != json.dumps(made.json):  # the order of the keys counts, too
        return f"printed as {json.dumps(printed)}, by Kafka as {json.dumps(made.json)}"
    if not has & {"unknown tag", "records"} and encode(from_json(cls, version, made.json), version) != made.canonical:
        return f"read otherwise from Kafka's JSON {json.dumps(made.json)}"
    return None


# --- the long form ---------------------------------------------------------------------------------------------------


def campaign(messages: int, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The report; `problems` is what differs."""
    releases = (KAFKA, OLD_CLIENTS)
    versioned = [pair for release in releases for pair in versioned_in(release)]
    each_version = -(-messages // len(versioned))
    began, printed_at, done = time.monotonic(), 0.0, Exchange()

    def progress() -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at > 5:
            printed_at = time.monotonic()
            total = each_version * len(versioned)
            say(f"{done.ours.messages:,} of {total:,} there, {done.theirs.messages:,} back, {done.differ:,} differ")

    with tempfile.TemporaryDirectory() as scratch:
        for release in releases:
            installed: Kafka = find(release)
            with Oracle(installed, Path(scratch)) as oracle:
                exchange(oracle, versioned_in(release), each_version, seed, done, progress)
    return {
        "kafka": {release.name: release.version for release in releases},
        "seed": seed,
        "messages": len({cls for cls, _ in versioned}),
        "versions": len(versioned),
        "each_version": each_version,
        "seconds": round(time.monotonic() - began, 1),
        "ours_through_kafka": done.ours.as_json(versioned),
        "kafkas_through_ours": done.theirs.as_json(versioned),
        "problems": [*done.ours.differences, *done.theirs.differences],
    }
