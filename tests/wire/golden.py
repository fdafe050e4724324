"""The golden data of Apache Kafka 4.3.0, parsed as far as these tests need it. See tests/golden/README.md."""

import functools
import gzip
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "kafka-4.3.0"
CLUSTER = GOLDEN / "cluster"


class Frame(NamedTuple):
    """One golden frame, and what Kafka made of it."""

    api: str
    api_key: int
    version: int
    kind: str
    raw: bytes
    header_version: int
    header: dict[str, Any] | None
    json: dict[str, Any]

    @property
    def id(self) -> str:
        return f"{self.api}-v{self.version}-{self.kind}"


@functools.cache
def frames() -> tuple[Frame, ...]:
    found = []
    with gzip.open(GOLDEN / "wire.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            for kind in ("request", "response"):
                found.append(
                    Frame(
                        pair["api"],
                        pair["api_key"],
                        pair["api_version"],
                        kind,
                        bytes.fromhex(pair[kind]),
                        pair[f"{kind}_header_version"],
                        pair.get(f"{kind}_header"),
                        pair[f"{kind}_json"],
                    )
                )
    return tuple(found)


@functools.cache
def smallest_frames() -> tuple[Frame, ...]:
    """One frame of every API, version and kind: the shortest with something in it."""
    best: dict[str, Frame] = {}
    for frame in sorted(frames(), key=lambda each: len(each.raw)):
        if frame.id not in best or len(best[frame.id].raw) < 60:
            best[frame.id] = frame
    return tuple(best.values())


def blank_records(value: Any) -> Any:
    """Kafka's converters were run without record bytes: they print every record field as an empty string."""
    if isinstance(value, dict):
        return {
            key: "" if key in ("records", "unalignedRecords") and inner is not None else blank_records(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [blank_records(each) for each in value]
    return value


class LogRecord(NamedTuple):
    """One record of a v2 batch."""

    offset: int
    control: bool
    key: bytes | None
    value: bytes


def log_records(path: Path) -> Iterator[LogRecord]:
    """Walk the v2 batches of a segment or checkpoint. Just enough of a parser, so that it shares nothing with ours."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        base, length = struct.unpack_from(">qi", data, at)
        (attributes,) = struct.unpack_from(">h", data, at + 21)
        (count,) = struct.unpack_from(">i", data, at + 57)
        position = at + 61
        for _ in range(count):
            size, position = _zigzag(data, position)
            end = position + size
            position += 1
            _, position = _zigzag(data, position)
            delta, position = _zigzag(data, position)
            key_size, position = _zigzag(data, position)
            key = None if key_size < 0 else data[position : position + key_size]
            position += max(key_size, 0)
            value_size, position = _zigzag(data, position)
            yield LogRecord(base + delta, bool(attributes & 0x20), key, data[position : position + value_size])
            position = end
        at += 12 + length


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position


def dumped_records(name: str) -> list[tuple[int, str]]:
    """(offset, what follows `headerKeys: []`) of every record that kafka-dump-log printed."""
    with gzip.open(CLUSTER / name, "rt", encoding="utf-8") as dump:
        text = dump.read()
    pattern = re.compile(r"^\| offset: (\d+) .*? headerKeys: \[\] (.*)$", re.MULTILINE)
    return [(int(match[1]), match[2]) for match in pattern.finditer(text)]
