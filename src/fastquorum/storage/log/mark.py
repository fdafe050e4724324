"""The durable mark: how far the log is known to be synced, in a small checksummed file of its own.

It is what tells a torn tail from corruption at recovery: a sync had succeeded for every byte below the mark, so a bad
batch there is a disk that lost what it had promised, while one at or above it is a write that a crash interrupted. It
is a lower bound, renewed off the commit path; a mark that is missing or damaged costs certainty (recovery then is
more careful), never data. A log that holds nothing is another matter: without its mark nobody can tell whether it
held something once.

It also carries a checksum of the epochs below it: a batch's leader epoch is not under the batch's own CRC. And it
says how much this replica knew to be committed: a node that starts again must not let a leader cut that away, whoever
has lost a disk meanwhile.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fastquorum.errors import DirectoryError
from fastquorum.kernels import Kernels
from fastquorum.storage.names import DURABLE_MARK, KAFKA_STATE, OWN_PROPERTIES, QUORUM_STATE, join
from fastquorum.storage.ports import Disk
from fastquorum.types import Epoch, Offset

MAGIC: Final = b"FQMARK\r\n"
VERSION: Final = 3
_BODY: Final = struct.Struct(">8sIqqqqqI")
_BODY_2: Final = struct.Struct(">8sIqqqqI")
"""The body in version 2, which did not know what is committed."""
_BODY_1: Final = struct.Struct(">8sIqqqI")
"""The body in version 1, which knew no start."""
_HEAD: Final = struct.Struct(">8sI")
_CRC: Final = struct.Struct(">I")
_EPOCH: Final = struct.Struct(">iq")


ANEW: Final = -1
"""A mark's position if a snapshot that ends at `offset` has taken the log's place. Segments that are still there hold
nothing that counts, and are being removed; the log begins anew, empty, at `offset`."""


class LogPosition(NamedTuple):
    """A place in the log between two batches: `offset` comes next, at `position` of segment `segment_base`."""

    offset: Offset
    segment_base: Offset
    position: int


class Mark(NamedTuple):
    """Every byte before `at`, in its segment and in all earlier ones, is synced."""

    at: LogPosition
    epochs_crc: int
    """`epochs_checksum` of the epochs that begin below it."""
    start_offset: Offset = 0
    """The log begins here: segments below hold nothing that counts, and are being removed."""
    committed: Offset = 0
    """All below it is known to be committed; never above `at`. A lower bound."""

    @property
    def is_anew(self) -> bool:
        """See ANEW."""
        return self.at.position == ANEW


def epochs_checksum(kernels: Kernels, entries: Sequence[tuple[Epoch, Offset]], end_offset: Offset) -> int:
    """CRC-32C of the epochs that begin below end_offset."""
    return kernels.crc32c(b"".join(_EPOCH.pack(*entry) for entry in entries if entry[1] < end_offset))


def encode_mark(kernels: Kernels, mark: Mark) -> bytes:
    body = _BODY.pack(MAGIC, VERSION, *mark.at, mark.start_offset, mark.committed, mark.epochs_crc)
    return body + _CRC.pack(kernels.crc32c(body))


def decode_mark(kernels: Kernels, data: bytes, path: str = "") -> Mark | None:
    """None if the bytes are damaged. DirectoryError if a newer version wrote them."""
    body = data[: -_CRC.size]
    if len(body) < _HEAD.size:
        return None
    magic, version = _HEAD.unpack_from(body)
    (stored,) = _CRC.unpack_from(data, len(body))
    if magic != MAGIC or stored != kernels.crc32c(body):
        return None
    if version > VERSION:
        raise DirectoryError(
            f"the durable mark has format version {version}, this fastquorum knows {VERSION}",
            "use the version that wrote it",
            path,
        )
    if version == 1 and len(body) == _BODY_1.size:
        _, _, *at, epochs_crc = _BODY_1.unpack(body)
        return Mark(LogPosition(*at), epochs_crc)
    if version == 2 and len(body) == _BODY_2.size:
        _, _, *at, start_offset, epochs_crc = _BODY_2.unpack(body)
        return Mark(LogPosition(*at), epochs_crc, start_offset)
    if version == VERSION and len(body) == _BODY.size:
        _, _, *at, start_offset, committed, epochs_crc = _BODY.unpack(body)
        return Mark(LogPosition(*at), epochs_crc, start_offset, committed)
    return None


def read_mark(disk: Disk, kernels: Kernels, directory: str) -> Mark | None:
    """The mark of a log directory; None if it is missing or damaged."""
    name = join(directory, DURABLE_MARK)
    return decode_mark(kernels, disk.read_file(name), f"{disk.root}/{name}") if disk.exists(name) else None


def was_marked(exists: Callable[[str], bool]) -> bool:
    """Did the log have a mark once? It is whole before our properties are written, and before the first vote is; only a
    handover to Apache Kafka takes it away. `exists`: of the data directory's files."""
    return not exists(KAFKA_STATE) and any(exists(name) for name in (OWN_PROPERTIES, QUORUM_STATE))


def write_mark(
    disk: Disk,
    kernels: Kernels,
    directory: str,
    at: LogPosition,
    epochs: Sequence[tuple[Epoch, Offset]],
    start_offset: Offset = 0,
    committed: Offset = 0,
) -> Mark:
    """Atomically and durably; `epochs` are those of a log from start_offset on, and may go beyond the mark, as
    `committed` may: what is not synced here is not known to be."""
    mark = Mark(at, epochs_checksum(kernels, epochs, at.offset), start_offset, min(committed, at.offset))
    disk.replace_file(join(directory, DURABLE_MARK), encode_mark(kernels, mark))
    return mark
