"""Mutants, each made from a seed and its number alone (and the live quorum's epoch, leader and ports).

Blind ones change bytes; others know where values, lengths and counts are, or what a record batch is. Frames are then
sent as they should be, with a wrong length, in pieces, or several at once.
"""

import random
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fastquorum.node.clients.server import SERVED
from fastquorum.wire import ApiKey, Message, Struct, decode_request, encode_request
from fastquorum.wire.api import API
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.types import Shape
from tests.wire.golden import frames

from .live import OBSERVER_ID, Live, frame, replica_fetch, requests
from .pieces import Piece, pieces
from .records import mutated
from .values import TEXTS, edge, edge_varint, some_bytes

LARGE: Final = (400, 400, 400, 5_000)
"""Elements of an array blown up; with the last, some requests are larger than they may be."""
LENGTHS: Final = (0, -1, -(2**31), 2**31 - 1, 100 * 1024 * 1024 + 1, 100 * 1024 * 1024, 1 << 20)


class Seed(NamedTuple):
    """A frame to begin with, and the sort it is of."""

    name: str
    raw: bytes
    is_request: bool = True


class Mutant(NamedTuple):
    """Bytes for one connection, and how they were come by."""

    number: int
    node_id: int
    seed: str
    how: tuple[str, ...]
    data: bytes
    cuts: tuple[int, ...] = ()
    """Where one write ends and the next begins."""


class Mutator:
    """All mutants of one seed."""

    def __init__(self, seed: int, live: Live) -> None:
        self.seed = seed
        self._live = live
        well_formed = [Seed(_name(message, version), frame(message, version)) for message, version in requests(live)]
        golden = [each for each in frames() if each.kind == "request"]
        # In a fixed order, whatever the frames hold: a number must name the same mutant again.
        self._pools: tuple[tuple[list[Seed], int], ...] = (
            (well_formed, 50),
            ([Seed(f"golden {each.id}", each.raw) for each in golden if each.api_key in SERVED], 35),
            ([Seed(f"golden {each.id}", each.raw) for each in golden if each.api_key not in SERVED], 8),
            ([Seed(f"golden {each.id}", each.raw, False) for each in frames() if each.kind == "response"], 7),
        )
        self._pieces: dict[bytes, tuple[bytes, list[Piece]]] = {}

    def mutant(self, number: int) -> Mutant:
        chance = random.Random(f"{self.seed} {number}")
        live = self._live
        node_id = chance.choices((live.leader, live.victim, live.quiet), (60, 22, 18))[0]
        if chance.random() < 0.04:
            return self._conversation(number, node_id, chance)
        seed = self._pick(chance)
        how, changed = self._changed(seed, chance)
        data, cuts = struct.pack(">i", len(changed)) + changed, ()
        match chance.choices(("whole", "length", "pieces", "several"), (84, 5, 6, 5))[0]:
            case "length":
                length = chance.choice((*LENGTHS, len(changed) + chance.randrange(1, 9), len(changed) // 2))
                data, how = struct.pack(">i", length) + changed, (*how, f"length {length}")
            case "pieces":
                cuts = tuple(sorted(chance.randrange(1, len(data)) for _ in range(chance.randrange(1, 6))))
                how = (*how, "in pieces")
            case "several":
                others = [self._changed(self._pick(chance), chance)[1] for _ in range(chance.randrange(1, 8))]
                data = b"".join(struct.pack(">i", len(each)) + each for each in (changed, *others))
                how = (*how, f"and {len(others)} more")
        return Mutant(number, node_id, seed.name, how, data, cuts)

    def _pick(self, chance: random.Random) -> Seed:
        pool = chance.choices([pool for pool, _ in self._pools], [weight for _, weight in self._pools])[0]
        return chance.choice(pool)

    def _changed(self, seed: Seed, chance: random.Random) -> tuple[tuple[str, ...], bytes]:
        if chance.random() < 0.03:
            return ("as it is",), seed.raw
        raw, how = seed.raw, []
        for round_ in range(chance.choice((1, 1, 1, 2, 3))):
            name, change = self._way(seed if round_ == 0 else seed._replace(is_request=False), chance)
            raw = change(raw, chance)
            how.append(name)
        return tuple(how), raw

    def _way(self, seed: Seed, chance: random.Random) -> tuple[str, Callable[[bytes, random.Random], bytes]]:
        """Choose a mutation. Those that know the layout come first, as only they can find it."""
        if seed.is_request and chance.random() < 0.75:
            ways: tuple[tuple[str, Callable[[bytes, random.Random], bytes]], ...] = (
                ("a piece", self._piece),
                ("a value", _value),
                ("a value", _value),
                ("header", _header),
            )
            if seed.raw[:2] == b"\x00\x00":
                ways = (*ways, ("records", _records), ("records", _records), ("records", _records))
            return chance.choice(ways)
        return chance.choice((*_BLIND, ("splice", self._splice)))

    # --- by layout ----------------------------------------------------------------------------------------------------

    def _piece(self, raw: bytes, chance: random.Random) -> bytes:
        """One value, length, count, tag or string is another; what stands around it is not adjusted."""
        head, parts = self._pieces.get(raw) or self._pieces.setdefault(raw, _cut(raw))
        if not parts:
            return raw
        at = chance.randrange(len(parts))
        return b"".join((head, *(each.data for each in parts[:at]), _other(parts[at], chance))) + b"".join(
            each.data for each in parts[at + 1 :]
        )

    def _splice(self, raw: bytes, chance: random.Random) -> bytes:
        other = self._pick(chance).raw
        return raw[: chance.randrange(len(raw) + 1)] + other[chance.randrange(len(other) + 1) :]

    def _conversation(self, number: int, node_id: int, chance: random.Random) -> Mutant:
        """A replica is admitted; what it asks next goes to the lane first, which has a decoder of its own."""
        live = self._live
        version = chance.randrange(12, 19)
        who = chance.choice((live.victim, live.victim, OBSERVER_ID, OBSERVER_ID + chance.randrange(2000)))
        message = replica_fetch(live, version, who)
        message.max_wait_ms = 0
        frames = [frame(message, version, 1)]
        for turn in range(2, chance.randrange(4, 8)):
            raw = frame(message, version, turn)
            if chance.random() < 0.7:
                _, change = chance.choice((("a piece", self._piece), ("a value", _value), *_BLIND[:2]))
                raw = change(raw, chance)
            frames.append(raw)
        data = b"".join(struct.pack(">i", len(each)) + each for each in frames)
        return Mutant(number, node_id, f"Fetch {version} of replica {who}", ("a conversation",), data)


def _name(message: Message, version: int) -> str:
    return f"{type(message).__name__} {version}"


def _cut(raw: bytes) -> tuple[bytes, list[Piece]]:
    header, message = decode_request(raw)
    parts = pieces(message, header.request_api_version)
    return raw[: len(raw) - sum(len(each.data) for each in parts)], parts


def _other(piece: Piece, chance: random.Random) -> bytes:
    match piece.kind:
        case "fixed" | "size":
            return edge(piece.data, chance)
        case "usize" | "tag":
            return edge_varint(piece.data, chance)
    return chance.choice((chance.choice(TEXTS), some_bytes(chance, 40), piece.data[1:], piece.data * 2))


# --- by message -------------------------------------------------------------------------------------------------------


def _value(raw: bytes, chance: random.Random) -> bytes:
    """One field has another value that it may have; the frame is in order."""
    header, message = decode_request(raw)
    version = header.request_api_version
    flexible = API[header.request_api_key].flexible.has(version)
    target = chance.choice(_structs(message, version))
    fields = [each for each in type(target).__wire__.fields if each.versions.has(version)]
    if not fields or (flexible and chance.random() < 0.1):
        if flexible:
            target.unknown_tags = ((100, some_bytes(chance, 30)), (2**31 - 1, b""))
        return encode_request(header, message)
    each = chance.choice(fields)
    if each.is_nullable(version) and chance.random() < 0.2:
        setattr(target, each.name, None)
    else:
        setattr(target, each.name, _another(getattr(target, each.name), each.type, chance))
    return encode_request(header, message)


def _structs(value: Struct, version: int) -> list[Struct]:
    """It and all in it."""
    found = [value]
    for each in type(value).__wire__.fields:
        if each.versions.has(version):
            inner = getattr(value, each.name)
            for item in inner if isinstance(inner, list) else (inner,):
                if isinstance(item, Struct):
                    found += _structs(item, version)
    return found


def _another(value: Any, wire_type: Any, chance: random.Random) -> Any:
    match wire_type.shape:
        case Shape.FIXED:
            if wire_type.name == "uuid":
                return type(value)(edge(value, chance))
            return struct.unpack(f">{wire_type.code}", edge(struct.pack(f">{wire_type.code}", value), chance))[0]
        case Shape.STRING:
            return chance.choice(TEXTS).decode("utf-8", "replace")[:10_000]
        case Shape.BYTES:
            return some_bytes(chance, 100)
        case Shape.ARRAY:
            held = value or []
            large = held * (chance.choice(LARGE) // len(held)) if held and chance.random() < 0.1 else []
            return chance.choice((large, held * 2, held[1:]))
    return value


def _header(raw: bytes, chance: random.Random) -> bytes:
    """Another API, version, correlation id or client id over the same body."""
    data = bytearray(raw)
    match chance.randrange(5):
        case 0:
            data[:2] = struct.pack(">h", chance.choice([*ApiKey]))
        case 1:
            data[2:4] = struct.pack(">h", chance.choice((-1, 0, 1, chance.randrange(20), 32_767)))
        case 2:
            at = chance.choice((0, 2))
            data[at : at + 2] = edge(data[at : at + 2], chance)
        case 3:
            data[4:8] = edge(data[4:8], chance)
        case _:
            data[8:10] = edge(data[8:10], chance)
    return bytes(data)


def _records(raw: bytes, chance: random.Random) -> bytes:
    header, message = decode_request(raw)
    assert isinstance(message, ProduceRequest)
    for topic in message.topic_data:
        for part in topic.partition_data:
            part.records = mutated(part.records or b"", chance)
    return encode_request(header, message)


# --- blind ------------------------------------------------------------------------------------------------------------


def _flip(raw: bytes, chance: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 8)) if data else 0):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def _set(raw: bytes, chance: random.Random) -> bytes:
    if not raw:
        return raw
    width = chance.choice((1, 2, 4, 8))
    at = chance.randrange(len(raw))
    return raw[:at] + edge(raw[at : at + width], chance) + raw[at + width :]


def _truncate(raw: bytes, chance: random.Random) -> bytes:
    return raw[: chance.randrange(len(raw) + 1)]


def _extend(raw: bytes, chance: random.Random) -> bytes:
    return raw + some_bytes(chance, 200)


def _repeat(raw: bytes, chance: random.Random) -> bytes:
    at, size = chance.randrange(len(raw) + 1), chance.randrange(1, 60)
    return raw[:at] + raw[at : at + size] * chance.choice((2, 2, 3, 50)) + raw[at + size :]


def _remove(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + raw[at + chance.randrange(1, 20) :]


def _noise(raw: bytes, chance: random.Random) -> bytes:
    return raw[: chance.choice((0, 4, 8, 10, 20))] + some_bytes(chance, 200)


_BLIND: Final[tuple[tuple[str, Callable[[bytes, random.Random], bytes]], ...]] = (
    ("bits flipped", _flip),
    ("bytes set", _set),
    ("cut", _truncate),
    ("extended", _extend),
    ("repeated", _repeat),
    ("removed", _remove),
    ("noise", _noise),
)
