"""What a kernel set does with files: one segment's, its offset index, and the thread that syncs files.

Callers import it from `fastquorum.kernels`.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from fastquorum.kernels.batches import Buffer


class SegmentFile(Protocol):
    """One segment's file. Positions are bytes. Writes and syncs hold no GIL (native).

    Every failure raises StorageFailed (FsyncFailed for `sync`) with operation, path and errno; short writes and EINTR
    are looped over. After a failed sync every later write and sync raises too (fail-stop).
    """

    def __init__(self, path: str, mode: Literal["create", "open", "read"] = "open") -> None:
        """`create` fails if it exists; `open` reads and writes; `read` only reads."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int:
        """The file's size now (fstat)."""

    @property
    def failed(self) -> bool: ...

    def write(self, position: int, data: Buffer) -> None: ...
    def read(self, position: int, size_bytes: int) -> bytes:
        """Up to size_bytes; shorter only at the end of the file."""

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill the buffer like `read`, and return how many bytes were read. The rest of the buffer stays as it was."""

    def zero_fill(self, start: int, end: int) -> None:
        """Write zeros over [start, end) (real zeros, not a hole)."""

    def allocate(self, start: int, end: int) -> bool:
        """Have the file system give blocks to [start, end), behind the file's end: they read as zeros, and writing
        there cannot find it full. The file then ends no earlier than `end` (fallocate).

        False: it would not, for whatever reason; some of it may have happened. Writing zeros tells why.
        """

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend the file to size_bytes."""

    def sync(self) -> None:
        """One fdatasync."""

    def map(self) -> memoryview:
        """The whole file, read-only, memory-mapped; empty view for an empty file."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class OffsetIndex(Protocol):
    """Where, roughly, an offset lies in a segment's file: about one batch for every INDEX_INTERVAL_BYTES, ascending in
    offset and position. O(log entries) lookups. Source: Kafka's `OffsetIndex`.

    The native one is thread-safe: one thread may add to it while others look up. The pure one is not.
    """

    def __init__(self, base_offset: int) -> None:
        """Make the empty index of the segment that begins with base_offset."""

    def __len__(self) -> int:
        """Entries."""

    @property
    def base_offset(self) -> int: ...
    def add(self, buffer: Buffer, at: int, base_offset: int, position: int) -> None:
        """List the batch at buffer[at:], which begins with base_offset and lies at `position` of the file, unless the
        last listed one (or the file's beginning) is nearer than INDEX_INTERVAL_BYTES.

        Nor is one listed that would not ascend or whose entry does not fit into Kafka's two int32: lookups then find
        an earlier batch. UsageError, and nothing changed, if no batch header fits at `at` when one is due.
        """

    def lookup(self, offset: int) -> int:
        """Position of a batch that holds `offset` or begins before it; the nearest one listed, else 0."""

    def truncate_to(self, position: int) -> None:
        """Drop entries for batches at or beyond `position`."""

    def encode(self) -> bytes:
        """Kafka's index file: for each entry int32 last offset of the batch, relative to base_offset, int32
        position."""


class Flusher(Protocol):
    """One thread that syncs files in the order submitted and reports through an eventfd; native: without the GIL.

    The caller reads `completions` when the eventfd is readable. A failed sync latches `failed` BEFORE it is reported,
    and nothing is synced after it.
    """

    def __init__(self) -> None: ...
    def fileno(self) -> int:
        """The eventfd; readable when completions wait."""

    @property
    def failed(self) -> bool: ...
    def submit(self, token: int, files: Sequence[SegmentFile]) -> None:
        """Sync these files, in order, then report `token`. UsageError when closed."""

    def completions(self) -> list[tuple[int, int]]:
        """(token, errno) of all syncs done since the last call, in order; errno 0 = synced. Drains the eventfd."""

    def close(self) -> None:
        """Finish what was submitted, end the thread. Idempotent."""
