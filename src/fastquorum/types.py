"""The words every room shares: identifiers, offsets, epochs, voters. Values only, no behaviour beyond parsing.

Knows nothing of bytes on the wire, disks or time. Sources: KIP-595 (quorum), KIP-853 (directory ids, endpoints).
"""

import base64
import itertools
import re
from typing import Final, NamedTuple, Self

NodeId = int
"""A replica's id (`node.id`), int32, >= 0. NO_NODE stands for none."""
Epoch = int
"""An election generation (`leader_epoch`), int32, >= 0."""
Offset = int
"""A position in the log, int64. End offsets are exclusive, last offsets inclusive."""
Micros = int
"""Microseconds of a monotonic clock; never wall-clock time."""

NO_NODE: Final = -1
NODE_ID_MAX: Final = 2**31 - 1
UNKNOWN_OFFSET: Final = -1
OFFSET_MAX: Final = 2**63 - 1
VOTERS_MAX: Final = 7
TOPIC_NAME: Final = "__cluster_metadata"
"""The one topic, and one partition (0), that voters replicate."""
LISTENER_NAME: Final = "CONTROLLER"
"""The listener name under which voters publish their endpoints."""


_UUID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_WHOLE_DIGITS_MAX: Final = 19
"""Enough for 64 bits."""


def is_text(name: str) -> bool:
    """Can it be written as UTF-8? A name in the file system need not be."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def is_whole(text: str) -> bool:
    """Digits from 0 to 9, and not too many: Python takes those of every script for numbers, spaces and `_` too."""
    return text.isascii() and text.isdecimal() and len(text) <= _WHOLE_DIGITS_MAX


class Uuid(bytes):
    """Kafka's 16-byte id; its text form is URL-safe base64 without padding, 22 characters (Kafka `Uuid`)."""

    __slots__ = ()

    def __new__(cls, raw: bytes = bytes(16)) -> Self:
        if len(raw) != 16:
            raise ValueError(f"a uuid has 16 bytes, not {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the 22-character text form. Raises ValueError naming the text."""
        if _UUID_TEXT.fullmatch(text) is None:
            raise ValueError(f"{text!r} is not a uuid: expected 22 characters of URL-safe base64 (16 bytes)")
        return cls(base64.urlsafe_b64decode(text + "=="))

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).decode("ascii").rstrip("=")

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"


ZERO_UUID: Final = Uuid()
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")


class ReplicaKey(NamedTuple):
    """The key of a replica: its id and the id of its log directory (KIP-853). ZERO_UUID: the directory is unknown."""

    id: NodeId
    directory_id: Uuid = ZERO_UUID


def address_text(host: str, port: int) -> str:
    """Return `HOST:PORT` as it can be read back: an IPv6 host stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Endpoint(NamedTuple):
    """Where a voter listens; port is uint16."""

    name: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """`HOST:PORT` for people and for options."""
        return address_text(self.host, self.port)

    def __str__(self) -> str:
        return self.address


class OffsetAndEpoch(NamedTuple):
    """An end offset (exclusive) and the epoch of the record before it."""

    offset: Offset
    epoch: Epoch


class Voter(NamedTuple):
    """One entry of the voter set (KRAFT_VOTERS record)."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_version_min: int = 0
    kraft_version_max: int = 1


class VoterSet(tuple[Voter, ...]):
    """The voters, sorted by id, each id once; 1..VOTERS_MAX of them where a quorum is run."""

    __slots__ = ()

    def __new__(cls, voters: "tuple[Voter, ...] | list[Voter]" = ()) -> Self:
        ordered = sorted(voters, key=lambda voter: voter.key.id)
        for a, b in itertools.pairwise(ordered):
            if a.key.id == b.key.id:
                raise ValueError(f"voter id {a.key.id} occurs twice")
        return super().__new__(cls, ordered)

    @property
    def ids(self) -> tuple[NodeId, ...]:
        return tuple(voter.key.id for voter in self)

    @property
    def majority(self) -> int:
        """How many voters make a majority."""
        return len(self) // 2 + 1

    def get(self, node_id: NodeId) -> Voter | None:
        for voter in self:
            if voter.key.id == node_id:
                return voter
        return None

    def is_voter(self, key: ReplicaKey) -> bool:
        """True if `key` is in the set; where the set knows no directory id, the id alone decides (kraft.version 0)."""
        voter = self.get(key.id)
        if voter is None:
            return False
        return voter.key.directory_id in (ZERO_UUID, key.directory_id)
