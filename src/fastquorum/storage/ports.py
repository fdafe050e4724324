"""What the storage core asks of the outside: a disk, a store for the quorum state, a thread that syncs.

`storage.io` implements them with real files and LMDB, `sim` with durable and volatile bytes apart.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from fastquorum.kernels import OffsetIndex, Producers, SegmentFile
from fastquorum.kernels.loan import LoanState, Zeros
from fastquorum.raft.election import ElectionState
from fastquorum.types import Offset

FileMode = Literal["create", "open", "read"]


class Disk(Protocol):
    """One data directory. Names are relative, `/`-separated.

    Every failure raises StorageFailed (or FsyncFailed), which stops the replica.

    A created, renamed or removed name is durable only after `sync_directory` of its parent.
    """

    @property
    def root(self) -> str:
        """For messages."""

    def open(self, name: str, mode: FileMode = "open") -> SegmentFile: ...
    def exists(self, name: str) -> bool: ...
    def list(self, directory: str = "") -> list[str]:
        """Names in the directory, sorted; empty if it does not exist."""

    def make_directory(self, directory: str) -> None:
        """Create it if missing and sync its parent."""

    def rename(self, source: str, target: str) -> None: ...
    def remove(self, name: str) -> None: ...
    def sync_directory(self, directory: str = "") -> None: ...
    def read_file(self, name: str) -> bytes: ...
    def replace_file(self, name: str, data: bytes) -> None:
        """Atomically and durably: temporary name, write, fsync, rename, fsync of the directory."""


class FlushPort(Protocol):
    """Syncs files away from the caller's thread (kernels.Flusher is one; the simulator delays and fails it)."""

    @property
    def failed(self) -> bool:
        """A sync has failed; true before the failure is reported, so that nothing is sent in between (lane rule 5)."""

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None: ...


class Borrower(Protocol):
    """The native shell, which works on the log's end in place of the log while a lane is open. See `kernels.loan`.

    Thread-safe; what it says is true of one moment.
    """

    @property
    def end_offset(self) -> Offset: ...
    @property
    def flushed_end(self) -> Offset: ...
    @property
    def is_flushing(self) -> bool: ...
    def lend(
        self,
        state: LoanState,
        segments: Sequence[tuple[Offset, SegmentFile, OffsetIndex, int]],
        segment_bytes: int,
        zeros: Zeros,
        producers: Producers,
    ) -> None:
        """`segments` are all there are: base offset, file, index, size in bytes. `producers` is told of every batch
        that is appended."""

    def take_back(self) -> LoanState: ...
    def look(self) -> LoanState: ...
    def read_recent(self, offset: Offset, bytes_max: int) -> bytes | None:
        """Whole batches from the one that contains `offset`, at most bytes_max but at least one; None if they are not
        in memory."""

    def prepare(self, end: int) -> int:
        """Zeros in front of the writer, up to `end` of the active segment; where they end now."""


class StateStore(Protocol):
    """The quorum state. `save` returns only when the state is durable; a failure raises StateStoreFailed (fatal)."""

    def load(self) -> ElectionState | None:
        """None if nothing was ever saved. CorruptionError if the value is damaged or belongs to another replica."""

    def save(self, state: ElectionState) -> None: ...
