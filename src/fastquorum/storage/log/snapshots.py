"""The snapshots of one log directory: the finished ones, served piece by piece, and the one being fetched. KIP-630.

A fetched snapshot is written under a name that recovery sweeps away. Once it is whole it is synced, every byte of it is
checked, and only then does it get its name, durably: a finished snapshot is a good one, unless the disk damages it
later.

One that is not the latest, and turns out to be unreadable, is left out: nobody needs it, and no replica stops for it.

(0, 0) is never among them: it names the first voters and stands for no record (KIP-853). Knows nothing of the log's own
records; what a finished snapshot means for the log is said in `storage.log.recovery` and by `Log.install_snapshot`.
"""

import errno
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeVar

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, StorageFailed
from fastquorum.kernels import Buffer, Kernels, SegmentFile
from fastquorum.storage import names
from fastquorum.storage.log.checkpoint import CheckpointState, check_checkpoint, header_of, read_checkpoint
from fastquorum.storage.ports import Disk
from fastquorum.types import Epoch, Offset, OffsetAndEpoch

Looked = TypeVar("Looked")


def supersedes(snapshot: OffsetAndEpoch, *, start_offset: Offset, end_offset: Offset, last_epoch: Epoch) -> bool:
    """Does a snapshot know more than a log, so that the log has to begin anew at its end?

    It does if it ends behind the log's end, or holds a record of a later epoch than any of the log's: what follows that
    in the log was never committed. Source: Kafka `KafkaRaftLog.truncateToLatestSnapshot`.
    """
    if start_offset == end_offset:
        return snapshot.offset > end_offset
    return snapshot.epoch > last_epoch or (snapshot.epoch == last_epoch and snapshot.offset > end_offset)


def log_end(latest: OffsetAndEpoch | None, end_offset: Offset, last_epoch: Epoch | None) -> OffsetAndEpoch:
    """Where a log ends that its latest snapshot does not supersede, and the epoch of its last record.

    Of a log without a record, for which `last_epoch` is None, it is that of the snapshot which the log begins behind,
    else 0.
    """
    if last_epoch is not None:
        return OffsetAndEpoch(end_offset, last_epoch)
    return latest if latest is not None and latest.offset == end_offset else OffsetAndEpoch(end_offset, 0)


@dataclass(slots=True)
class FoundSnapshots:
    """The finished snapshots of a directory."""

    usable: list[OffsetAndEpoch] = field(default_factory=list)
    """Ascending; of the last every byte was checked."""
    latest_state: CheckpointState | None = None
    damaged: list[tuple[OffsetAndEpoch, CorruptionError]] = field(default_factory=list)
    """Later than the last usable one. They are left where they are, and never served."""

    @property
    def latest(self) -> OffsetAndEpoch | None:
        return self.usable[-1] if self.usable else None

    def add(self, snapshot: OffsetAndEpoch) -> None:
        """One more. (0, 0) is none."""
        if snapshot.offset > 0:
            self.usable.append(snapshot)
            self.usable.sort(key=_age)

    def covering(self, start_offset: Offset) -> OffsetAndEpoch | None:
        """The latest snapshot, if a log that begins at start_offset lacks nothing with it.

        CorruptionError, naming the file, if only a damaged one would do; None if there is none at all.
        """
        latest = self.latest
        if latest is not None and latest.offset >= start_offset:
            return latest
        for snapshot, error in self.damaged:
            if snapshot.offset >= start_offset:
                raise error
        return None


def find_snapshots(disk: Disk, kernels: Kernels, directory: str) -> FoundSnapshots:
    """List the finished snapshots; check the latest, and if it is damaged those before it until one is good."""
    found = FoundSnapshots()
    for name in disk.list(directory):
        if (snapshot := names.parse_checkpoint(name)) is not None:
            found.add(snapshot)
    while found.usable:
        try:
            name = names.join(directory, names.checkpoint_name(found.usable[-1]))
            found.latest_state = read_checkpoint(disk, kernels, name)
            break
        except CorruptionError as error:
            found.damaged.append((found.usable.pop(), error))
    return found


def remove_below(
    disk: Disk, directory: str, start_offset: Offset, usable: Collection[OffsetAndEpoch]
) -> list[OffsetAndEpoch]:
    """Remove the finished snapshots that end below the log's start, good or damaged, and any less than the usable one
    that ends there; their ids.

    (0, 0) stays: what it says of the first voters is part of the directory's identity.
    """
    ids = [found for name in disk.list(directory) if (found := names.parse_checkpoint(name)) is not None]
    least = max((_age(each) for each in usable if each.offset == start_offset), default=(-1, -1))
    stale = [each for each in ids if each.offset > 0 and (each.offset < start_offset or _age(each) < least)]
    for snapshot in stale:
        _remove(disk, names.join(directory, names.checkpoint_name(snapshot)))
    if stale:
        disk.sync_directory(directory)
    return stale


def _remove(disk: Disk, name: str) -> None:
    """A directory of that name is no snapshot, and is left to whoever made it."""
    try:
        disk.remove(name)
    except StorageFailed as error:
        if error.errno_code != errno.EISDIR:
            raise


def is_gone(error: FastQuorumError) -> bool:
    """Whether a file that was listed is not there: its node has done with it meanwhile."""
    return isinstance(error, StorageFailed) and error.errno_code == errno.ENOENT


def _age(snapshot: OffsetAndEpoch) -> tuple[Epoch, Offset]:
    return snapshot.epoch, snapshot.offset


def write_snapshot(
    disk: Disk, kernels: Kernels, directory: str, snapshot: OffsetAndEpoch, batches: Iterable[bytes]
) -> CheckpointState:
    """Write a snapshot of this replica's own: whole, checked and durable when this returns, and to be added then.

    It touches nothing but a file of its own, so that it may run beside the log, in a thread of its own. A crash leaves
    what the next start sweeps away.

    Raises:
        StorageFailed: it could not be written; `can_wait` if the disk is full, or no file can be opened, and then
            nothing is left of it. Any other is final.
        CorruptionError: what was written is not what comes back: final, too.
        Whatever `batches` raises; nothing is left then, either.
    """
    draft = names.join(directory, names.draft_name(snapshot))
    file = disk.open(draft, "create")
    try:
        position = 0
        for batch in batches:
            file.write(position, batch)
            position += len(batch)
        file.sync()
        state = check_checkpoint(kernels, file, snapshot.epoch)
    except BaseException as error:
        file.close()
        is_final = isinstance(error, CorruptionError) or (isinstance(error, StorageFailed) and not error.can_wait)
        if not is_final:
            disk.remove(draft)
        raise
    file.close()
    disk.rename(draft, names.join(directory, names.checkpoint_name(snapshot)))
    disk.sync_directory(directory)
    return state


@dataclass(slots=True)
class _Part:
    """The beginning of a snapshot that is being fetched."""

    snapshot: OffsetAndEpoch
    file: SegmentFile
    size_bytes: int = 0


class Snapshots:
    """The finished snapshots of one log directory, and the one that is being fetched.

    At most one finished snapshot is open at a time. Not thread-safe: called under the replica's lane lock or on its
    thread only, as the log that owns it is.
    """

    def __init__(
        self,
        disk: Disk,
        kernels: Kernels,
        directory: str,
        found: FoundSnapshots,
        latched: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`latched` is entered around every change of the disk: the log stops for good when one fails."""
        self._disk = disk
        self._kernels = kernels
        self._directory = directory
        self._latched = latched
        self._ids = found.usable
        self.latest_state = found.latest_state
        """What the latest snapshot says of the quorum; None if there is none."""
        self._left_out: list[FastQuorumError] = [error for _, error in found.damaged]
        """Why snapshots were left out; nobody was told yet."""
        self._open: tuple[OffsetAndEpoch, SegmentFile] | None = None
        self._part: _Part | None = None

    @property
    def ids(self) -> Sequence[OffsetAndEpoch]:
        """Ascending."""
        return self._ids

    def __contains__(self, snapshot: OffsetAndEpoch) -> bool:
        return snapshot in self._ids

    @property
    def latest(self) -> OffsetAndEpoch | None:
        """The greatest id."""
        return self._ids[-1] if self._ids else None

    @property
    def earliest(self) -> OffsetAndEpoch | None:
        """The smallest id."""
        return self._ids[0] if self._ids else None

    # --- serving ------------------------------------------------------------------------------------------------------

    def size_bytes(self, snapshot: OffsetAndEpoch) -> int:
        """Size of a finished snapshot; -1 if there is none such, or none that can be read."""
        size = self._sparing(snapshot, lambda file: file.size_bytes) if snapshot in self._ids else None
        return -1 if size is None else size

    def read(self, snapshot: OffsetAndEpoch, position: int, bytes_max: int) -> bytes:
        """The bytes from `position` on, at most bytes_max: a raw slice that may begin and end anywhere in a batch, and
        that the receiver checks."""
        assert snapshot in self._ids, f"snapshot {snapshot} is not at hand"
        return self._file(snapshot).read(position, bytes_max)

    def _file(self, snapshot: OffsetAndEpoch) -> SegmentFile:
        if self._open is None or self._open[0] != snapshot:
            self._close_file()
            self._open = snapshot, self._disk.open(self._name(names.checkpoint_name(snapshot)), "read")
        return self._open[1]

    def last_contained_ms(self, snapshot: OffsetAndEpoch) -> int | None:
        """Timestamp of the last record that a finished snapshot covers, as its header says; None: it cannot be read.
        CorruptionError of the latest."""
        header = self._sparing(snapshot, lambda file: header_of(self._kernels, file))
        return None if header is None else header.last_contained_log_timestamp

    def take_left_out(self) -> list[FastQuorumError]:
        """Why snapshots are neither counted nor served, for the operator's log; each once."""
        left_out, self._left_out = self._left_out, []
        return left_out

    def _sparing(self, snapshot: OffsetAndEpoch, look: Callable[[SegmentFile], Looked]) -> Looked | None:
        """Look at a snapshot's file; None: it is damaged, gone, or no file that may be read, and is left out from now
        on. The latest is needed, and raises; so does a disk that fails."""
        try:
            return look(self._file(snapshot))
        except (CorruptionError, DirectoryError, StorageFailed) as error:
            is_disk_failing = isinstance(error, StorageFailed) and not (error.is_refusal or is_gone(error))
            if is_disk_failing or snapshot == self.latest:
                raise
            self._close_file()
            self._ids.remove(snapshot)
            self._left_out.append(error)
            return None

    # --- fetching -----------------------------------------------------------------------------------------------------

    def write_part(self, snapshot: OffsetAndEpoch, position: int, data: Buffer) -> None:
        """Keep the next piece of a snapshot that is being fetched; position 0 begins anew. Nothing is durable yet."""
        if position == 0:
            self.drop_part()
            with self._latched():
                name = self._name(names.part_name(snapshot))
                self._part = _Part(snapshot, self._disk.open(name, "create"))
        part = self._part
        assert part is not None, f"a piece of snapshot {snapshot} from {position} on, without a beginning"
        held = part.snapshot, part.size_bytes
        assert held == (snapshot, position), (
            f"a piece of snapshot {snapshot} from {position} on does not continue {held}"
        )
        with self._latched():
            part.file.write(position, data)
        part.size_bytes += len(data)

    def drop_part(self) -> None:
        """Forget what was fetched and is not finished, if there is any."""
        part, self._part = self._part, None
        if part is not None:
            with self._latched():
                part.file.close()
                self._disk.remove(self._name(names.part_name(part.snapshot)))

    def finish_part(self, snapshot: OffsetAndEpoch) -> CheckpointState:
        """The snapshot is whole: sync it, check every byte, give it its name; all that is durable when this returns.

        CorruptionError if it is damaged: then it is gone, and nothing else has changed.
        """
        part = self._part
        assert part is not None, f"snapshot {snapshot} was not fetched"
        assert part.snapshot == snapshot, f"{part.snapshot} was fetched, not {snapshot}"
        with self._latched():
            part.file.sync()
        try:
            state = check_checkpoint(self._kernels, part.file, snapshot.epoch)
        except CorruptionError:
            self.drop_part()
            raise
        self._part = None
        self._close_file()  # should it be an older copy of the same one
        with self._latched():
            part.file.close()
            name = self._name(names.checkpoint_name(snapshot))
            self._disk.rename(self._name(names.part_name(snapshot)), name)
            self._disk.sync_directory(self._directory)
        self.add(snapshot, state)
        return state

    def add(self, snapshot: OffsetAndEpoch, state: CheckpointState) -> None:
        """There is one more finished snapshot: it was fetched, or `write_snapshot` has written it."""
        if snapshot not in self._ids:
            self._ids.append(snapshot)
            self._ids.sort(key=_age)
        if snapshot == self.latest:
            self.latest_state = state

    # --- with the log -------------------------------------------------------------------------------------------------

    def remove_below(self, start_offset: Offset) -> None:
        """The log begins at start_offset now."""
        self._close_file()
        with self._latched():
            removed = remove_below(self._disk, self._directory, start_offset, self._ids)
        self._ids = [each for each in self._ids if each not in removed]

    def close(self) -> None:
        """Close what is open. Changes nothing on the disk."""
        self._close_file()
        if self._part is not None:
            self._part.file.close()
            self._part = None

    def _close_file(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _name(self, name: str) -> str:
        return names.join(self._directory, name)
