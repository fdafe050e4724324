"""What a kernel set does with files: one segment's, and the thread that syncs them.

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

    def zero_fill(self, start: int, end: int) -> None:
        """Write zeros over [start, end) (real zeros, not a hole)."""

    def truncate(self, size_bytes: int) -> None: ...
    def sync(self) -> None:
        """One fdatasync."""

    def map(self) -> memoryview:
        """The whole file, read-only, memory-mapped; empty view for an empty file."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


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
