"""Stores a member's metadata in its own directory: a snapshot, from which the next run goes on.

It is written when a registration is answered, before the member catches up, and when it has stopped in good order. The
next run does not read the same metadata again, and accepts no older one: controllers that have lost what is stored here
are refused. The layout is Kafka's, so that tools for a metadata log's directory read this one, too.
Source: the draft beside KIP-500 ("Register Flow"), KIP-630 (snapshots).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from fastquorum.controller.image import Image
from fastquorum.controller.image.fold import Place
from fastquorum.errors import CorruptionError, DirectoryError, FsyncFailed
from fastquorum.kernels import Kernels
from fastquorum.node.io.clock import wall_clock_ms
from fastquorum.node.io.directory import new_directory_id
from fastquorum.storage import names
from fastquorum.storage.format import meta_properties
from fastquorum.storage.identity import Identity, LogKind, is_formatted, read_identity
from fastquorum.storage.images import snapshot_batches
from fastquorum.storage.io.disk import RealDisk, refusals_named
from fastquorum.storage.io.lock import DirectoryLock
from fastquorum.storage.log.checkpoint import CheckpointTimes, read_checkpoint
from fastquorum.storage.ports import Disk
from fastquorum.types import LISTENER_NAME, TOPIC_NAME, NodeId, OffsetAndEpoch, VoterSet

_NEW: Final = frozenset((names.LOCK, names.META_PROPERTIES + names.TEMPORARY_SUFFIX, "lost+found"))
"""The files that a new directory may hold."""


@dataclass(eq=False)
class CopyDamaged(CorruptionError):
    """A member's stored metadata is damaged; nothing is lost, since the controllers have it all."""

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; it is only a copy of what the controllers have: delete it, and the member reads all "
            "of it anew"
        )


class Kept(NamedTuple):
    """A stored snapshot whose bytes were checked."""

    snapshot: OffsetAndEpoch
    data: bytes


class Keeping:
    """One member's directory, opened by `open`, and by no other process."""

    def __init__(self, lock: DirectoryLock, disk: RealDisk, kernels: Kernels) -> None:
        self._lock = lock
        self._disk = disk
        self._kernels = kernels

    @classmethod
    def open(cls, path: str, cluster_id: str, broker_id: NodeId, kernels: Kernels) -> Self:
        """Make the directory if there is none, and lock it.

        Raises:
            DirectoryError: it is in use, cannot be used, or is something else: another broker's, a replica's.
            StorageFailed: it could not be written.
        """
        disk = RealDisk.open_directory(path, kernels, create=True)
        with refusals_named():
            _check_own(disk, cluster_id, broker_id)  # and leave no lock file in what is somebody else's
        lock = DirectoryLock.acquire(disk.root)
        try:
            with refusals_named():
                _check_own(disk, cluster_id, broker_id)
                _make_own(disk, cluster_id, broker_id)
        except BaseException:
            lock.release()
            raise
        return cls(lock, disk, kernels)

    def load(self) -> Kept | None:
        """Load the latest snapshot; None if there is none. CopyDamaged: once it is removed, all is read from the
        controllers.

        StorageFailed.
        """
        latest = max(_snapshots(self._disk), default=None)
        if latest is None:
            return None
        name = _name(latest)
        try:
            read_checkpoint(self._disk, self._kernels, name)
        except CorruptionError as error:
            raise CopyDamaged(
                error.reason, error.position, error.offset, error.stored_crc, error.computed_crc, error.path
            ) from error
        return Kept(latest, self._disk.read_file(name))

    def save(self, image: Image, place: Place) -> None:
        """Store a snapshot; it is durable, and the only one, on return. StorageFailed, FsyncFailed; ImageFailed."""
        snapshot = OffsetAndEpoch(place.end_offset, place.epoch)
        earlier = _snapshots(self._disk)
        if snapshot in earlier:
            return
        times = CheckpointTimes.at(wall_clock_ms())
        data = b"".join(snapshot_batches(self._kernels, image, place, times, 0, None))
        try:
            self._disk.replace_file(_name(snapshot), data)
        except FsyncFailed as error:
            self._lock.condemn(str(error))
            raise
        for each in earlier:
            self._disk.remove(_name(each))

    def close(self) -> None:
        """Idempotent."""
        self._lock.release()


def _name(snapshot: OffsetAndEpoch) -> str:
    return names.join(names.LOG_DIRECTORY, names.checkpoint_name(snapshot))


def _snapshots(disk: Disk) -> list[OffsetAndEpoch]:
    found = map(names.parse_checkpoint, disk.list(names.LOG_DIRECTORY))
    return [each for each in found if each is not None]


def _check_own(disk: Disk, cluster_id: str, broker_id: NodeId) -> None:
    """Raise DirectoryError if the directory is another member's, or not a member's."""
    held = disk.list()  # first: another process may be making it its own, which says last what the rest is
    if is_formatted(disk):
        read_identity(disk, cluster_id=cluster_id, node_id=broker_id)
        is_log = any(names.parse_segment(name) is not None for name in disk.list(names.LOG_DIRECTORY))
    else:
        is_log = not _NEW.issuperset(held)
    if is_log:
        raise DirectoryError("it does not hold a member's metadata", "give an empty directory", disk.root)


def _make_own(disk: Disk, cluster_id: str, broker_id: NodeId) -> None:
    """Format the directory as a member's, if it is not one yet."""
    if not is_formatted(disk):
        identity = Identity(
            cluster_id=cluster_id,
            node_id=broker_id,
            directory_id=new_directory_id(),
            log_kind=LogKind.METADATA,
            topic_name=TOPIC_NAME,
            voters=VoterSet(()),
            kraft_version=0,
            listener_name=LISTENER_NAME,
            format_version=0,
        )
        disk.replace_file(names.META_PROPERTIES, meta_properties(identity))
    disk.make_directory(names.LOG_DIRECTORY)
