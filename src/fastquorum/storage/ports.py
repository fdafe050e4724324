"""What the storage core asks of the outside: a disk, a store for the quorum state, a thread that syncs.

`storage.io` implements them with real files and LMDB, `sim` with durable and volatile bytes apart.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from fastquorum.kernels import SegmentFile
from fastquorum.raft.election import ElectionState

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
        ...

    def submit(self, token: int, files: Sequence[SegmentFile]) -> None: ...


class StateStore(Protocol):
    """The quorum state. `save` returns only when the state is durable; a failure raises StateStoreFailed (fatal)."""

    def load(self) -> ElectionState | None:
        """None if nothing was ever saved. CorruptionError if the value is damaged or belongs to another replica."""

    def save(self, state: ElectionState) -> None: ...
