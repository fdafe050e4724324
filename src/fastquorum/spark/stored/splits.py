"""How the bytes of many logs are shared out among tasks: large segments are cut, small ones packed together.

A cut lies where the segment's index file says that a batch begins. The index is derived data, so nothing depends on its
being right: whoever reads a piece must find that its last batch ends exactly with it (`spark.stored.reading`).
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from fastquorum.errors import CorruptionError, DirectoryError
from fastquorum.kernels import BATCH_HEADER_BYTES, Kernels, load
from fastquorum.spark.stored.logs import Checkpoint, FoundLog, StoredSegment
from fastquorum.spark.stored.stores import Store, store_of
from fastquorum.storage import names
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.index import decode_index
from fastquorum.types import Offset

SPLIT_BYTES: Final = 64 << 20
_SCAN_BYTES: Final = 8 << 20
_REMOTE: Final = "://"


class Piece(NamedTuple):
    """A range of one file, from where a batch begins to where one ends. Travels to executors."""

    cluster_id: str | None
    node_id: int | None
    directory: str
    kind: LogKind
    path: str
    base_offset: Offset
    """First offset of the segment, or the end offset of the checkpoint."""
    start: int
    end: int
    """Position behind the piece; for a file's last piece, the file's size when it was found."""
    is_tail: bool = False
    """It ends where the log ended: what an interrupted write left may stand there."""
    is_cut: bool = False
    """Its file goes on behind it."""
    end_offset: Offset = -1
    """End offset of its last batch, exclusive, where another segment or piece follows; -1: nothing says it."""

    @property
    def size_bytes(self) -> int:
        return self.end - self.start

    @property
    def is_segment(self) -> bool:
        """Whether the file is a segment. Else it is a checkpoint, whose offsets count its own records."""
        return self.path.endswith(".log")


class Cut(NamedTuple):
    """Where a batch begins inside a segment."""

    position: int
    offset: Offset
    """The batch's own."""


def log_pieces(
    log: FoundLog, offset_min: Offset = 0, offset_max: Offset | None = None, split_bytes: int = SPLIT_BYTES
) -> list[Piece]:
    """Cut the segments that may hold offsets in [offset_min, offset_max) into pieces."""
    pieces: list[Piece] = []
    segments = sorted(log.segments)
    for at, segment in enumerate(segments):
        is_last = at + 1 == len(segments)
        is_before = not is_last and segments[at + 1].base_offset <= offset_min
        is_behind = offset_max is not None and segment.base_offset >= offset_max
        if is_before or is_behind or (is_last and segment.size_bytes == 0):
            continue  # one that is empty before the last lacks what lay in it, and whoever reads it finds that
        behind = Cut(segment.size_bytes, -1 if is_last else segments[at + 1].base_offset)
        for start, end in pairwise([Cut(0, segment.base_offset), *cuts_of(log, segment, split_bytes), behind]):
            is_end = end is behind
            pieces.append(piece_between(log, segment, start, end, is_tail=is_last and is_end, is_cut=not is_end))
    return pieces


def piece_between(log: FoundLog, segment: StoredSegment, start: Cut, end: Cut, *, is_tail: bool, is_cut: bool) -> Piece:
    return Piece(
        log.cluster_id,
        log.node_id,
        log.directory,
        log.kind,
        segment.path,
        segment.base_offset,
        start.position,
        end.position,
        is_tail=is_tail,
        is_cut=is_cut,
        end_offset=end.offset,
    )


def checkpoint_piece(log: FoundLog, checkpoint: Checkpoint) -> Piece:
    """Return a piece that is one of the log's snapshots, whole: its records count only together."""
    path, end_offset, size_bytes = checkpoint.path, checkpoint.id.offset, checkpoint.size_bytes
    return Piece(log.cluster_id, log.node_id, log.directory, LogKind.METADATA, path, end_offset, 0, size_bytes)


def packed(pieces: Iterable[Piece], split_bytes: int = SPLIT_BYTES) -> list[list[Piece]]:
    """Pack pieces, in their order, into tasks of about so many bytes."""
    tasks: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        if not tasks or piece.size_bytes > room:
            tasks.append([])
            room = split_bytes
        tasks[-1].append(piece)
        room -= piece.size_bytes
    return tasks


def cuts_of(log: FoundLog, segment: StoredSegment, split_bytes: int) -> list[Cut]:
    """Places inside a segment at which batches begin, about `split_bytes` from one another."""
    if segment.size_bytes <= split_bytes + split_bytes // 2:
        return []
    try:
        return _cuts(log, segment, split_bytes)
    except DirectoryError:
        return []  # whoever reads it says why it cannot be read


def _cuts(log: FoundLog, segment: StoredSegment, split_bytes: int) -> list[Cut]:
    store = store_of(segment.path)
    positions: Iterable[int] | None = _indexed(store, log, segment)
    if positions is None:
        if _REMOTE in segment.path:
            return []  # to look for batches is to read it all, over the network
        positions = _scanned(store, segment, max(1, min(split_bytes // 4, _SCAN_BYTES)))
    cuts: list[int] = []
    wanted = split_bytes
    for position in positions:
        if position >= wanted and segment.size_bytes - position > split_bytes // 2:
            cuts.append(position)
            wanted = position + split_bytes
    return [cut for cut in (_batch_at(store, segment, each) for each in cuts) if cut is not None]


def _indexed(store: Store, log: FoundLog, segment: StoredSegment) -> list[int] | None:
    """Return the entries of the index file; None if none can be read."""
    name = names.index_name(segment.base_offset)
    path = next((each.path for each in log.files if each.name == name), None)
    if path is None:
        return None
    try:
        return [position for _, position in decode_index(store.read(path), path)]
    except (CorruptionError, DirectoryError):
        return None  # a closed log's is checked by `files`; here it would only have saved time


def _scanned(store: Store, segment: StoredSegment, window_bytes: int) -> Iterator[int]:
    """Yield where batches begin, one in every window: a walk over all headers, checksums aside."""
    kernels: Kernels = load("native")
    position, size = 0, window_bytes
    while position < segment.size_bytes:
        valid = kernels.scan(store.read(segment.path, position, size), verify_crc=False).valid_bytes
        if valid > 0:
            position, size = position + valid, window_bytes
            yield position
        elif position + size < segment.size_bytes:
            size *= 2  # a batch is longer than the window
        else:
            return


def _batch_at(store: Store, segment: StoredSegment, position: int) -> Cut | None:
    """If it looks as if one began there. It is read with all checks later."""
    header = store.read(segment.path, position, BATCH_HEADER_BYTES)
    offset, magic = int.from_bytes(header[:8], "big", signed=True), header[16:17]
    is_one = len(header) == BATCH_HEADER_BYTES and magic == b"\x02" and offset >= segment.base_offset
    return Cut(position, offset) if is_one else None
